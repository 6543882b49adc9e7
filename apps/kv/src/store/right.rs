//! The right to flush: one holder in the rack, for a flush must not come between two steps of a
//! transaction that flushes, too.
//!
//! It is a lock in some node's memory, whose address is in the superblock. Where its node has died
//! it gets another one; then a holder that still lives has it no more, and finds out when it
//! flushes: the address is in the block that a flush changes, and is compared in the same step.

use std::sync::{Arc, Mutex, PoisonError};

use super::bucket::Inside;
use super::core::Core;
use super::lock::Patience;
use crate::error::Result;
use crate::layout::superblock::{self, FLUSH_BYTES, Flushes, RIGHT};
use crate::memory::{Access, Fate, Memory, MemoryError, PAGE_STRIDE, Pages};

/// Bytes that the lock protects: unused.
const BYTES: usize = 8;

/// The lock at an address, as this node knows.
type Lock<M> = (u64, Arc<<M as Memory>::Pages>);

/// Which lock it was last.
pub(crate) struct LastRight<M: Memory>(Mutex<Option<Lock<M>>>);

impl<M: Memory> Default for LastRight<M> {
    fn default() -> Self {
        LastRight(Mutex::new(None))
    }
}

/// The right to flush. Dropping it leaves the lock.
pub(crate) struct Right<M: Memory> {
    lock: Lock<M>,
    /// Until this is dropped.
    inside: Option<Inside<M>>,
}

impl<M: Memory> Drop for Right<M> {
    fn drop(&mut self) {
        if let Some(inside) = self.inside.take() {
            self.lock.1.leave(inside);
        }
    }
}

impl<M: Memory> Core<M> {
    /// Waits for the right to flush, not for ever.
    pub fn flush_right(&self) -> Result<Right<M>> {
        let mut patience = Patience::new(self.patience);
        loop {
            let lock = match self.right_lock(self.right_at()?) {
                Err(error) if error.is_node_lost() => {
                    patience.pause().map_err(|_| error)?;
                    continue;
                }
                lock => lock?,
            };
            match lock.1.enter(0, Access::Write, self.patience) {
                Ok(None) => return Err(self.busy()),
                // What its page has matters to nobody, and so do those who have died inside.
                Ok(inside) => {
                    let right = Right { lock, inside };
                    if self.right_at()? == right.lock.0 {
                        return Ok(right);
                    }
                }
                // Its node has died, or has left: then it is elsewhere by now, or becomes so.
                Err(MemoryError::NodeLost(_) | MemoryError::Lost(_)) => {}
                Err(error) => return Err(error.into()),
            }
            patience.pause()?;
        }
    }

    /// Where the lock is; 0: there is none yet.
    pub(super) fn right_at(&self) -> Result<u64> {
        self.load_word(self.base + RIGHT as u64)
    }

    /// There is a lock from now on: who flushes full memory must find one.
    pub(super) fn make_right(&self) -> Result<()> {
        match self.right_at()? {
            0 => self.new_right(0).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Another lock, in the memory of any node that has room for it. Where it is.
    fn new_right(&self, known: u64) -> Result<u64> {
        let first = usize::from(self.home_for(0)?);
        let mut fresh = Err(MemoryError::OutOfMemory);
        for node in (0..self.map.nodes).map(|nth| (first + nth) % self.map.nodes) {
            fresh = fresh.or_else(|_| self.memory.alloc_pages(node as u16, 1));
        }
        self.install(self.base + RIGHT as u64, known, fresh?, PAGE_STRIDE)?;
        self.right_at()
    }

    /// The lock at an address; another one where it has died.
    fn right_lock(&self, known: u64) -> Result<Lock<M>> {
        let addr = match known != 0 && self.memory.fate(known) == Fate::Live {
            true => known,
            false => self.new_right(known)?,
        };
        let mut last = self.right.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(lock) if lock.0 == addr => Ok(lock.clone()),
            _ => {
                let lock = (addr, Arc::new(self.memory.pages(addr, 1, BYTES)?));
                Ok(last.insert(lock).clone())
            }
        }
    }

    /// Flushes one database, or all that clients see.
    ///
    /// # Errors
    /// [`Error::Busy`]: the lock has died with its node while the caller was inside.
    pub(super) fn flush(&self, db: Option<u8>, right: u64) -> Result<Flushes> {
        let flush = || {
            self.memory.update(self.base, FLUSH_BYTES, |view| {
                (view.u64(RIGHT) == right).then(|| {
                    superblock::flush(view, db);
                    Flushes::load(view)
                })
            })
        };
        let flushes = flush().or_else(|error| self.insist(error, flush))?;
        let flushes = flushes.ok_or_else(|| self.busy())?;
        // What was flushed must not come back with what home still has of this block. Who has taken
        // the block over before it was there may have died with it.
        self.memory.publish(self.base)?;
        match self.newest_flushes()?.epoch >= flushes.epoch {
            true => Ok(flushes),
            false => Err(self.busy()),
        }
    }

    /// The lock moves to a node that stays if it is this node's.
    pub(super) fn move_right(&self) -> Result<()> {
        if self.memory.home_of(self.right_at()?) != Some(self.memory.id()) {
            return Ok(());
        }
        let right = self.flush_right()?;
        let fresh = self.alloc_elsewhere(|node| self.memory.alloc_pages(node, 1))?;
        let old = right.lock.0;
        self.install(self.base + RIGHT as u64, old, fresh, PAGE_STRIDE)?;
        self.leaving.retire(old, PAGE_STRIDE);
        Ok(())
    }
}

impl<M: Memory> Right<M> {
    /// Which lock it is.
    pub fn addr(&self) -> u64 {
        self.lock.0
    }
}
