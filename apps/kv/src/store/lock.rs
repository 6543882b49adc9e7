//! Holding buckets: one operation's right to change a bucket in several steps.
//!
//! A bucket is held while its head page's lock word shows the holder's token. Everybody else, readers
//! too, waits; so whoever holds all the buckets it touches is alone with them, and what it does to them
//! is one step to everybody else. Buckets are taken in rising order, so holders never wait in a circle.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::core::{Core, Scope};
use crate::Error;
use crate::error::Result;
use crate::layout::page_mut::PageMut;
use crate::memory::Memory;

/// Rounds of waiting that only spin, then those that yield the processor, before sleeping.
const SPINS: u32 = 64;
const YIELDS: u32 = 64;
const SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Unique in the process; the node's number makes it unique in the rack.
static TOKENS: AtomicU64 = AtomicU64::new(1);

/// Waiting with an end to it.
pub(crate) struct Patience {
    limit: Duration,
    since: Option<Instant>,
    rounds: u32,
}

impl Patience {
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            since: None,
            rounds: 0,
        }
    }

    /// Waits a little, longer each time.
    pub fn pause(&mut self) -> Result<()> {
        let round = self.rounds;
        self.rounds = round.saturating_add(1);
        if round < SPINS {
            std::hint::spin_loop();
            return Ok(());
        }
        if round < SPINS + YIELDS {
            std::thread::yield_now();
            return Ok(());
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.limit {
            return Err(Error::Busy(self.limit));
        }
        std::thread::sleep((SLEEP * (round - SPINS - YIELDS + 1)).min(LONGEST_SLEEP));
        Ok(())
    }
}

/// A token is `node + 1`: 6 bits, the node's incarnation: 22 bits, a number: 36 bits.
const NODE_SHIFT: u32 = 58;
const INCARNATION_SHIFT: u32 = 36;
const INCARNATIONS: u64 = (1 << (NODE_SHIFT - INCARNATION_SHIFT)) - 1;

/// A token nobody else has. It tells which process made it, so that others know when that one has died.
pub(super) fn token<M: Memory>(memory: &M) -> u64 {
    let number = TOKENS.fetch_add(1, Ordering::Relaxed) & ((1 << INCARNATION_SHIFT) - 1);
    let incarnation = u64::from(memory.incarnation()) & INCARNATIONS;
    (u64::from(memory.id()) + 1) << NODE_SHIFT | incarnation << INCARNATION_SHIFT | number
}

/// Whether the process that made a token has died.
pub(super) fn is_dead<M: Memory>(memory: &M, token: u64) -> bool {
    let Some(node) = (token >> NODE_SHIFT).checked_sub(1) else {
        return false;
    };
    let incarnation = token >> INCARNATION_SHIFT & INCARNATIONS;
    memory.has_died(node as u16, incarnation as u32)
}

/// Buckets held. Dropping it lets them go.
pub(crate) struct Held<'a, M: Memory> {
    core: &'a Core<M>,
    pub token: u64,
    buckets: Vec<usize>,
}

impl<'a, M: Memory> Held<'a, M> {
    /// A bucket that this token holds already.
    pub fn of(core: &'a Core<M>, token: u64, bucket: usize) -> Self {
        Held {
            core,
            token,
            buckets: vec![bucket],
        }
    }

    /// The buckets, in rising order.
    pub fn buckets(&self) -> &[usize] {
        &self.buckets
    }
}

impl<M: Memory> Drop for Held<'_, M> {
    fn drop(&mut self) {
        for bucket in self.buckets.drain(..) {
            let failed = match self.core.unlock(bucket, self.token) {
                // With its memory the bucket and its lock are gone.
                Err(error) => !error.is_node_lost(),
                Ok(()) => false,
            };
            if failed {
                self.core.orphans().push((bucket, self.token));
            }
        }
    }
}

impl<M: Memory> Core<M> {
    pub fn patience(&self) -> Patience {
        Patience::new(self.patience)
    }

    /// A token nobody else has.
    pub fn token(&self) -> u64 {
        token(&self.memory)
    }

    /// Waits until the bucket's lock shows `token` (0: until it is free).
    pub fn await_lock(&self, bucket: usize, token: u64, patience: &mut Patience) -> Result<()> {
        loop {
            patience.pause()?;
            let seen = match self.look(self.head(bucket), |page| page.lock()) {
                Ok(seen) => seen,
                Err(error) => {
                    self.recover(token, bucket, error)?;
                    continue;
                }
            };
            if seen == token {
                return Ok(());
            }
            if is_dead(&self.memory, seen)
                && let Err(error) = self.take_over(bucket, seen)
            {
                self.recover(token, bucket, error)?;
            }
        }
    }

    fn lock(&self, bucket: usize, token: u64) -> Result<()> {
        let mut patience = self.patience();
        loop {
            let taken = self
                .memory
                .update(self.head(bucket), self.geometry.block, |view| {
                    let mut page = PageMut::new(view, &self.geometry);
                    let free = page.page().lock() == 0;
                    if free {
                        page.set_lock(token);
                    }
                    free
                });
            match taken {
                Ok(true) => return Ok(()),
                Ok(false) => self.await_lock(bucket, 0, &mut patience)?,
                Err(error) => {
                    patience.pause()?;
                    self.recover(0, bucket, error.into())?;
                }
            }
        }
    }

    pub fn unlock(&self, bucket: usize, token: u64) -> Result<()> {
        self.memory
            .update(self.head(bucket), self.geometry.block, |view| {
                let mut page = PageMut::new(view, &self.geometry);
                if page.page().lock() == token {
                    page.set_lock(0);
                }
            })?;
        Ok(())
    }

    /// Takes all of `buckets`, or none.
    pub fn hold(&self, buckets: Vec<usize>) -> Result<Held<'_, M>> {
        self.hold_as(self.token(), buckets)
    }

    /// [`Core::hold`] under a token that the caller also uses elsewhere.
    pub fn hold_as(&self, token: u64, mut buckets: Vec<usize>) -> Result<Held<'_, M>> {
        buckets.sort_unstable();
        buckets.dedup();
        let mut held = Held {
            core: self,
            token,
            buckets: Vec::with_capacity(buckets.len()),
        };
        for bucket in buckets {
            self.lock(bucket, held.token)?;
            held.buckets.push(bucket);
        }
        Ok(held)
    }

    /// Runs `f` with the bucket held: by `scope` already, or for the length of `f`. A flush that comes
    /// meanwhile takes effect after `f`.
    pub fn with_bucket<R>(
        &self,
        scope: Scope<'_>,
        bucket: usize,
        f: impl FnOnce(Scope<'_>) -> Result<R>,
    ) -> Result<R> {
        if scope.token != 0 {
            return f(scope);
        }
        let held = self.hold(vec![bucket])?;
        let pinned = Cell::new(self.flushes(Scope::ALONE)?);
        f(Scope {
            token: held.token,
            pinned: Some(&pinned),
        })
    }
}
