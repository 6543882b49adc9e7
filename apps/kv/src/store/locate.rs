//! Finding the bucket of a key when the guess was wrong.
//!
//! A bucket that a thread is inside of tells how many bits of hashes are its number, and so whether
//! it was split; then the way goes on to the one that came of it. A page that was never written
//! tells nothing. Then the way begins at the key's root, and whoever comes to a bucket by way of
//! the one that it was split from knows that there must be one.
//!
//! A page that has died with a node is empty, and nobody knows any more how often its bucket was
//! split. It is taken to have been split as often as any: then those that came of it are found, and
//! those that did not begin empty when somebody comes to them.

use std::sync::{Arc, PoisonError};

use super::Store;
use super::bucket::Standing;
use super::buckets::Slab;
use super::core::Core;
use super::db::Db;
use super::held::next_on_path;
use super::lock::Scope;
use crate::error::Result;
use crate::layout::page::KeyId;
use crate::memory::{Access, Fate, Memory, PAGE_STRIDE};

impl<M: Memory> Store<M> {
    /// See [`Core::home_of_bucket`].
    pub(crate) fn home_of(&self, bucket: usize) -> Option<u16> {
        self.core.home_of_bucket(bucket)
    }

    /// A number that another store hardly has.
    pub(crate) fn identity(&self) -> u64 {
        self.core.seed ^ self.core.base.rotate_left(32)
    }

    /// Whether this node moves what it has to others.
    pub(crate) fn leaves(&self) -> bool {
        self.core.leaving.is_on()
    }
}

impl<M: Memory> Db<'_, M> {
    /// The bucket that a key is in, as this node knows.
    pub(crate) fn bucket_of(&self, key: &[u8]) -> Option<usize> {
        Some(self.core.guess(&self.core.id(self.number, key).ok()?))
    }
}

impl<M: Memory> Core<M> {
    /// The bucket that a key is in, as this node knows.
    pub fn guess(&self, id: &KeyId<'_>) -> usize {
        self.buckets.used().guess(id.hash)
    }

    /// A key was looked for in a bucket that does not have it.
    pub fn learn(&self, bucket: usize, standing: Standing, hash: u64) -> Result<()> {
        match standing {
            Standing::Owner => Ok(()),
            Standing::Split(depth) => {
                self.buckets.learn_at_least(bucket as u64, depth);
                let next = next_on_path(bucket, depth, hash);
                let depth = self.map.birth_depth(next);
                self.buckets.learn_at_least(hash, depth);
                Ok(())
            }
            Standing::Unknown => self.locate(hash),
        }
    }

    /// A key was looked for in a bucket of which this node does not know where it is.
    pub fn look_up(&self, bucket: usize, hash: u64) -> Result<()> {
        match self.known_slab(self.map.place(bucket).0)? {
            Some(_) => Ok(()),
            None => self.locate(hash),
        }
    }

    /// Learns which bucket has the keys of a hash, by way of the root.
    #[cold]
    pub fn locate(&self, hash: u64) -> Result<()> {
        let root = hash as usize & (self.map.roots - 1);
        let (mut number, mut patience) = (root, self.patience());
        loop {
            let (standing, depth) = self.reading(Scope::ALONE, number, |bucket| {
                Ok((bucket.standing(hash), bucket.depth()))
            })?;
            match standing {
                Standing::Owner => {
                    self.buckets.learn(hash, depth);
                    return Ok(());
                }
                Standing::Split(depth) => {
                    let next = next_on_path(number, depth, hash);
                    if !self.is_certain(next)? {
                        self.make_certain(next)?;
                    }
                    number = next;
                }
                Standing::Unknown if number == root => {
                    self.writing(Scope::ALONE, root, |bucket| match bucket.is_certain() {
                        true => Ok(()),
                        false => bucket.begin(false),
                    })?;
                }
                // It was merged since.
                Standing::Unknown => number = root,
            }
            patience.follow()?;
        }
    }

    fn is_certain(&self, bucket: usize) -> Result<bool> {
        match self.known_slab(self.map.place(bucket).0)? {
            Some(_) => self.reading(Scope::ALONE, bucket, |bucket| Ok(bucket.is_certain())),
            None => Ok(false),
        }
    }

    /// Makes certain that there is a bucket, if its parent was split so often.
    fn make_certain(&self, bucket: usize) -> Result<()> {
        let Some(parent) = self.map.parent(bucket) else {
            return Ok(());
        };
        self.make_slab(self.map.place(bucket).0)?;
        let held = self.hold_numbers(|_| vec![parent, bucket], Access::Write)?;
        let scope = Scope(Some(&held));
        let split = self.reading(scope, parent, |parent| {
            Ok(parent.is_certain() && parent.depth() >= self.map.birth_depth(bucket))
        })?;
        if !split {
            return Ok(());
        }
        self.writing(scope, bucket, |bucket| {
            if bucket.is_certain() {
                return Ok(());
            }
            if !bucket.head().initialized() {
                return bucket.begin(false);
            }
            let depth = bucket.depth();
            bucket.change_head(|page| page.set_depth(depth, false))
        })
    }

    /// A slab, if there is one.
    pub fn known_slab(&self, slab: usize) -> Result<Option<Arc<Slab<M>>>> {
        if let Some(known) = self.buckets.get(slab) {
            return Ok(Some(known));
        }
        let (_, entry) = self.entry_of(slab)?;
        if entry == 0 {
            return Ok(None);
        }
        let addr = Slab::<M>::addr_of(entry);
        if self.memory.fate(addr) == Fate::Gone {
            self.replace(slab, addr)?;
            return Ok(self.buckets.get(slab));
        }
        let _alone = self.alone();
        match self.buckets.get(slab) {
            None => self.attach(slab, entry).map(Some),
            known => Ok(known),
        }
    }

    pub(super) fn alone(&self) -> std::sync::MutexGuard<'_, ()> {
        self.replacing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// This node knows of a slab from now on.
    pub(super) fn attach(&self, slab: usize, entry: u64) -> Result<Arc<Slab<M>>> {
        let page = self.geometry.page;
        let new = Slab::new(&self.memory, &self.map, page, (slab, entry))?;
        self.buckets.put(slab, new.clone());
        Ok(new)
    }

    /// Looks up whether a slab is elsewhere than at `mine` by now: then this node knows where.
    #[cold]
    pub(super) fn look_again(&self, slab: usize, mine: u64) -> Result<bool> {
        let _alone = self.alone();
        let known = self.buckets.get(slab);
        if known.is_some_and(|known| known.addr() != mine) {
            return Ok(true); // another thread has looked
        }
        let (_, entry) = self.entry_of(slab)?;
        let other = entry != 0 && Slab::<M>::addr_of(entry) != mine;
        if other {
            self.attach(slab, entry)?;
        }
        Ok(other)
    }

    /// The node whose memory a slab is, as this node knows.
    pub(super) fn home(&self, slab: usize) -> u16 {
        let known = self.buckets.get(slab);
        let home = known.and_then(|known| self.memory.home_of(known.addr()));
        home.unwrap_or_else(|| self.map.home(slab))
    }

    /// The node whose memory a bucket's lock is, as this node knows: none where it is no single
    /// one's, or where this node has not looked it up.
    pub(super) fn home_of_bucket(&self, bucket: usize) -> Option<u16> {
        let slab = self.map.place(bucket).0;
        let addr = self.buckets.used().get(slab)?.addr();
        self.memory.home_of(addr)
    }

    /// The same, as the store's tables say where this node's knowledge may be old.
    pub(super) fn home_now(&self, slab: usize) -> Result<u16> {
        let known = self.buckets.get(slab);
        if known.is_some_and(|known| self.memory.fate(known.addr()) == Fate::Live) {
            return Ok(self.home(slab));
        }
        let (_, entry) = self.entry_of(slab)?;
        let home = self.memory.home_of(Slab::<M>::addr_of(entry));
        Ok(home
            .filter(|_| entry != 0)
            .unwrap_or_else(|| self.map.home(slab)))
    }

    /// Where a slab's entry is in the store's tables, and what it says; 0: there is no slab.
    pub(super) fn entry_of(&self, slab: usize) -> Result<(u64, u64)> {
        let at = self.map.entry(self.base, slab);
        Ok((at, self.load_word(at)?))
    }

    pub(super) fn load_word(&self, at: u64) -> Result<u64> {
        let look = || self.memory.snapshot(at, 8, |view| view.u64(0));
        look().or_else(|error| self.insist(error, look))
    }

    /// A slab, made at its home if there is none yet, or at another node if that one leaves.
    pub fn make_slab(&self, slab: usize) -> Result<()> {
        self.make_slab_at(slab, || self.home_for(slab))
    }

    pub(super) fn make_slab_at(&self, slab: usize, home: impl Fn() -> Result<u16>) -> Result<()> {
        if self.known_slab(slab)?.is_some() {
            return Ok(());
        }
        let _alone = self.alone();
        let (at, known) = self.entry_of(slab)?;
        if known == 0 {
            let fresh = self
                .memory
                .alloc_pages(home()?, self.map.slab_buckets(slab))?;
            self.install(at, 0, fresh, self.map.slab_len(slab))?;
        }
        let entry = self.load_word(at)?;
        self.attach(slab, entry).map(|_| ())
    }

    /// Bytes that all nodes have allocated for locks.
    pub fn lock_bytes(&self) -> Result<usize> {
        let deepest = self.deepest()?;
        let slabs = self.map.place((1 << deepest) - 1).0 + 1;
        let right = usize::from(self.right_at()? != 0) * PAGE_STRIDE;
        (0..slabs).try_fold(right, |sum, slab| {
            let (_, known) = self.entry_of(slab)?;
            Ok(sum + usize::from(known != 0) * self.map.slab_len(slab))
        })
    }

    /// Puts the entry of fresh memory where `known` stands; whether it did. If it does not stand
    /// there any more, the memory is freed.
    pub(super) fn install(&self, at: u64, known: u64, fresh: u64, len: usize) -> Result<bool> {
        let swap = || {
            self.memory.update(at, 8, |view| {
                let now = view.u64(0);
                if now == known {
                    view.set_u64(0, fresh);
                }
                now
            })
        };
        let found = swap().or_else(|error| self.insist(error, swap))?;
        match found == known {
            true => self.memory.publish(at)?,
            false => self.memory.free(Slab::<M>::addr_of(fresh), len)?,
        }
        Ok(found == known)
    }
}
