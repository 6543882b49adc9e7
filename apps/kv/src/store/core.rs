//! What all operations share: where buckets are, what time it is, who counts and who frees.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rackmem::view::View;

use super::value::Extents;
use crate::clock::Clock;
use crate::error::Result;
use crate::hash::hash;
use crate::layout::counters::{self, Counts};
use crate::layout::page::{Geometry, KeyId, Page};
use crate::layout::superblock::{self, Era, FLUSH_BYTES, Flushes, Map};
use crate::memory::Memory;
use crate::{DATABASES, Error};

/// A store as one node has it open.
pub(crate) struct Core<M> {
    pub memory: M,
    pub clock: Clock,
    /// How long to wait for a bucket that somebody else holds.
    pub patience: Duration,
    pub geometry: Geometry,
    pub map: Map,
    /// Address of the superblock.
    pub base: u64,
    pub seed: u64,
    /// Address of each slab of bucket pages.
    pub slabs: Box<[AtomicU64]>,
    /// One thread at a time gives a slab new memory.
    pub replacing: Mutex<()>,
    /// Buckets that could not be let go of, and the tokens that hold them.
    pub orphans: Mutex<Vec<(usize, u64)>>,
}

/// On whose behalf an operation runs: for itself, or as a part of something that holds its buckets.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// What a bucket's lock must show for the operation to go on: 0, or the holder's token.
    pub token: u64,
    /// The flushes the whole transaction goes by, so that nobody else's falls into its middle.
    pub pinned: Option<&'a Cell<Flushes>>,
}

impl Scope<'_> {
    /// An operation of its own.
    pub const ALONE: Scope<'static> = Scope {
        token: 0,
        pinned: None,
    };
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
        debug_assert!(usize::from(db) < DATABASES);
        Ok(KeyId {
            key,
            db,
            hash: hash(self.seed, key),
        })
    }

    /// The bucket of a key.
    #[inline]
    pub fn bucket(&self, id: &KeyId<'_>) -> usize {
        id.hash as usize & (self.map.buckets - 1)
    }

    /// The address of a bucket's head page.
    #[inline]
    pub fn head(&self, bucket: usize) -> u64 {
        let (slab, page) = (bucket / self.map.slab_pages, bucket % self.map.slab_pages);
        self.slabs[slab].load(Relaxed) + (page * self.geometry.block) as u64
    }

    /// The node whose memory holds a bucket's head page.
    pub fn home(&self, bucket: usize) -> u16 {
        (bucket / self.map.slab_pages % self.map.nodes) as u16
    }

    /// One snapshot of a page.
    #[inline]
    pub fn look<R>(&self, addr: u64, mut f: impl FnMut(&Page<'_>) -> R) -> Result<R> {
        let look = |view: &View<'_>| f(&Page::new(*view, &self.geometry));
        Ok(self.memory.snapshot(addr, self.geometry.block, look)?)
    }

    /// What the operation must know about flushes.
    #[inline]
    pub fn era(&self, scope: Scope<'_>, db: u8) -> Result<Era> {
        match scope.pinned {
            Some(pinned) => Ok(pinned.get().era(db)),
            None => {
                let look = || {
                    self.memory.snapshot(self.base, FLUSH_BYTES, |view| {
                        superblock::load_era(view, db)
                    })
                };
                look().or_else(|error| self.insist(error, look))
            }
        }
    }

    /// All databases' flushes.
    pub fn flushes(&self, scope: Scope<'_>) -> Result<Flushes> {
        match scope.pinned {
            Some(pinned) => Ok(pinned.get()),
            None => {
                let look = || self.memory.snapshot(self.base, FLUSH_BYTES, Flushes::load);
                look().or_else(|error| self.insist(error, look))
            }
        }
    }

    /// Adds to this node's counters.
    #[inline]
    pub fn count(&self, db: u8, flushed: u64, change: Counts) -> Result<()> {
        if change.is_zero() {
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
    pub fn counts(&self, scope: Scope<'_>, db: u8) -> Result<Counts> {
        let flushed = self.era(scope, db)?.flushed;
        if !self.memory.undisturbed() {
            return Ok(self.tally(db, flushed));
        }
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

    /// See the field.
    pub fn orphans(&self) -> MutexGuard<'_, Vec<(usize, u64)>> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees what a change left behind. A reader may still look at it: it will find the bucket changed
    /// and read again.
    pub fn free(&self, extents: &Extents) -> Result<()> {
        for extent in extents.iter() {
            self.memory.free(extent.addr, extent.capacity)?;
        }
        Ok(())
    }
}
