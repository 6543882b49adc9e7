//! Transactions: buckets held together, so that everything done to them is one step.

use std::cell::Cell;

use super::Store;
use super::core::{Core, Scope};
use super::db::{Db, Mark};
use super::lock::{Held, is_dead};
use crate::error::{Error, Result};
use crate::layout::superblock::{self, FLUSH_BYTES, FLUSH_LOCK, Flushes};
use crate::memory::Memory;

/// What a transaction is going to touch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// All keys there are, not only those named.
    pub whole: bool,
    /// It may flush databases.
    pub flush: bool,
}

/// Buckets held, and the flushes the transaction goes by. Dropping it makes everything visible at once.
pub struct Transaction<'a, M: Memory> {
    core: &'a Core<M>,
    /// Dropped after this value's own `drop`, which needs the buckets.
    held: Held<'a, M>,
    /// Outlives `held`: buckets are let go before the right to flush is.
    _right: Option<FlushRight<'a, M>>,
    pinned: Cell<Flushes>,
    began: u64,
}

impl<M: Memory> Store<M> {
    /// Takes what `keys` and `plan` name; waits for others to let go of it, not for ever.
    ///
    /// Keys that were not named cannot be touched: such an operation ends as [`Error::Busy`].
    pub fn transaction<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8]>,
        plan: Plan,
    ) -> Result<Transaction<'_, M>> {
        let core = &*self.core;
        let buckets = if plan.whole {
            (0..core.map.buckets).collect()
        } else {
            keys.into_iter()
                .map(|key| Ok(core.bucket(&core.id(0, key)?)))
                .collect::<Result<Vec<_>>>()?
        };
        let token = core.token();
        let right = if plan.flush {
            Some(FlushRight::take(core, token)?)
        } else {
            None
        };
        let held = core.hold_as(token, buckets)?;
        let pinned = core.flushes(Scope::ALONE)?;
        Ok(Transaction {
            core,
            held,
            _right: right,
            pinned: Cell::new(pinned),
            began: pinned.epoch,
        })
    }
}

impl<M: Memory> Transaction<'_, M> {
    /// A database as the transaction sees it; `None` when there is none of that number.
    pub fn db(&self, number: u8) -> Option<Db<'_, M>> {
        let scope = Scope {
            token: self.held.token,
            pinned: Some(&self.pinned),
        };
        Db {
            core: self.core,
            scope,
            number: 0,
        }
        .select(number)
    }

    /// Whether a key is still what it was when marked.
    pub fn unchanged(&self, db: u8, key: &[u8], mark: &Mark) -> Result<bool> {
        Ok(self
            .db(db)
            .map(|db| db.mark(key))
            .transpose()?
            .is_some_and(|now| now == *mark))
    }
}

impl<M: Memory> Drop for Transaction<'_, M> {
    fn drop(&mut self) {
        if self.pinned.get().epoch == self.began {
            return;
        }
        // Others may still act as if before our flush, and must then not see what we did before it.
        let scope = Scope {
            token: self.held.token,
            pinned: Some(&self.pinned),
        };
        for bucket in self.held.buckets() {
            // Fails only when the memory is gone.
            let _ = self.core.refresh(scope, *bucket);
        }
    }
}

/// The right to flush, kept for the length of a transaction that flushes in its middle.
struct FlushRight<'a, M: Memory> {
    core: &'a Core<M>,
    token: u64,
}

impl<'a, M: Memory> FlushRight<'a, M> {
    fn take(core: &'a Core<M>, token: u64) -> Result<Self> {
        let mut patience = core.patience();
        loop {
            let taken = core.memory.update(core.base, FLUSH_BYTES, |view| {
                let holder = view.u64(FLUSH_LOCK);
                let free = holder == 0 || is_dead(&core.memory, holder);
                if free {
                    view.set_u64(FLUSH_LOCK, token);
                }
                free
            })?;
            if taken {
                return Ok(Self { core, token });
            }
            patience.pause()?;
        }
    }
}

impl<M: Memory> Drop for FlushRight<'_, M> {
    fn drop(&mut self) {
        // Fails only when the memory is gone.
        let _ = self
            .core
            .memory
            .update(self.core.base, FLUSH_BYTES, |view| {
                if view.u64(FLUSH_LOCK) == self.token {
                    view.set_u64(FLUSH_LOCK, 0);
                }
            });
    }
}

impl<M: Memory> Db<'_, M> {
    /// Removes every key of this database.
    pub fn flush(&self) -> Result<()> {
        self.flush_some(Some(self.number))
    }

    /// Removes every key of every database.
    pub fn flush_all(&self) -> Result<()> {
        self.flush_some(None)
    }

    fn flush_some(&self, db: Option<u8>) -> Result<()> {
        let (core, mut patience) = (self.core, self.core.patience());
        let inside = self.scope.token != 0;
        loop {
            let done = core.memory.update(core.base, FLUSH_BYTES, |view| {
                let holder = view.u64(FLUSH_LOCK);
                let dead = !inside && is_dead(&core.memory, holder);
                if dead {
                    view.set_u64(FLUSH_LOCK, 0);
                }
                let go = dead || holder == self.scope.token;
                if go {
                    superblock::flush(view, db);
                }
                go.then(|| Flushes::load(view))
            })?;
            if done.is_some() {
                // What was flushed must not come back with what home still has of this block.
                core.memory.publish(core.base)?;
            }
            match (done, self.scope.pinned) {
                (Some(flushes), Some(pinned)) => {
                    pinned.set(flushes);
                    return Ok(());
                }
                (Some(_), None) => return Ok(()),
                (None, _) if inside => {
                    return Err(Error::BadOption("the transaction was not planned to flush"));
                }
                (None, _) => patience.pause()?,
            }
        }
    }
}
