//! What all operations share: what time it is, which flushes there were, who counts and who frees.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::buckets::Buckets;
use super::bus::Bus;
use super::grow::Growth;
use super::leave::Leaving;
use super::lock::Scope;
use super::right::LastRight;
use crate::Error;
use crate::clock::Clock;
use crate::error::Result;
use crate::hash::hash;
use crate::layout::counters::{self, Counts};
use crate::layout::page::{Geometry, KeyId};
use crate::layout::superblock::{self, ALL_DATABASES, Era, FLUSH_BYTES, Flushes, Map};
use crate::memory::Memory;

/// A store as one node has it open.
pub(crate) struct Core<M: Memory> {
    pub memory: M,
    pub clock: Clock,
    /// How long to wait for a bucket's lock.
    pub patience: Duration,
    pub geometry: Geometry,
    pub map: Map,
    /// Address of the superblock.
    pub base: u64,
    pub seed: u64,
    pub buckets: Buckets<M>,
    pub growth: Growth,
    /// The lock of those who flush.
    pub right: LastRight<M>,
    /// One thread at a time gives a slab new memory.
    pub replacing: Mutex<()>,
    /// What nodes tell each other.
    pub bus: Bus,
    /// Whether this node leaves.
    pub leaving: Leaving,
    /// Keys that clients see and that this node has removed because their time was over.
    pub expired: AtomicU64,
}

impl<M: Memory> Core<M> {
    /// Checks the key's length and computes its hash.
    #[inline]
    pub fn id<'k>(&self, db: u8, key: &'k [u8]) -> Result<KeyId<'k>> {
        let limit = self.geometry.key_max();
        if key.len() > limit {
            return Err(Error::KeyTooLong {
                len: key.len(),
                limit,
            });
        }
        debug_assert!(usize::from(db) < ALL_DATABASES);
        Ok(KeyId {
            key,
            db,
            hash: hash(self.seed, key),
        })
    }

    /// Bits of the deepest bucket's number: no bucket was split more often, anywhere.
    pub fn deepest(&self) -> Result<u8> {
        let known = self.newest_flushes()?.depth;
        Ok(known.max(self.map.root_depth()))
    }

    /// The flushes of one database so far.
    #[inline]
    pub fn newest_era(&self, db: u8) -> Result<Era> {
        let look = || {
            self.memory.snapshot(self.base, FLUSH_BYTES, |view| {
                superblock::load_era(view, db)
            })
        };
        look().or_else(|error| self.insist(error, look))
    }

    /// All databases' flushes so far.
    pub fn newest_flushes(&self) -> Result<Flushes> {
        let look = || self.memory.snapshot(self.base, FLUSH_BYTES, Flushes::load);
        look().or_else(|error| self.insist(error, look))
    }

    /// Adds to this node's counters.
    #[inline]
    pub fn count(&self, db: u8, flushed: u64, change: Counts) -> Result<()> {
        if change.is_zero() || counters::is_uncounted(db) {
            return Ok(());
        }
        let addr = self.map.counters(self.base, usize::from(self.memory.id()));
        let add = || {
            self.memory.update(addr, counters::BYTES, |view| {
                counters::add(view, db, flushed, change)
            })
        };
        add().or_else(|error| self.insist(error, add))
    }

    /// The sum of all nodes' counters.
    pub fn counts(&self, scope: Scope<'_, M>, db: u8) -> Result<Counts> {
        let flushed = match scope.0 {
            Some(held) => held.pinned.get().era(db).flushed,
            None => self.newest_era(db)?.flushed,
        };
        if !self.memory.undisturbed() {
            return Ok(self.tally(scope, db, flushed));
        }
        self.counted(db, flushed)
    }

    /// What nodes have counted since this flush, without what has died with some of them.
    pub fn counted(&self, db: u8, flushed: u64) -> Result<Counts> {
        let mut sum = Counts::default();
        for node in 0..self.map.nodes {
            let addr = self.map.counters(self.base, node);
            let look = || {
                self.memory.snapshot(addr, counters::BYTES, |view| {
                    counters::load(view, db, flushed)
                })
            };
            sum = sum.plus(look().or_else(|error| self.insist(error, look))?);
        }
        Ok(sum)
    }
}
