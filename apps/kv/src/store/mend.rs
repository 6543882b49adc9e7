//! Living through the death of nodes: finding out what has died with one,
//! and going on with the rest.
//!
//! | what an operation meets | what is done | the keys |
//! |---|---|---|
//! | a bucket whose home is away: its lock is gone | nothing: the operation fails ([`MemoryError::NodeLost`]) | unknown until it is back |
//! | the same, and the home is back with new memory | the slab gets new locks there | absent |
//! | a bucket whose lock was last with another node that has died, inside or not | it begins anew, empty | absent |
//! | a page further down the chain whose last content died with a node's cache | the chain ends before it | those of that page, and behind it, absent |
//! | a value in an extent, the same, or in memory of a node that is back | its record goes | absent |
//!
//! What a lock's page was when the lock was last handed on would be there in the third case, but an
//! older value is worse than none: the newer one was acknowledged to its writer.
//!
//! The address of new memory is never one of old memory, because it contains the incarnation of its
//! home. So an address in the table of slabs is its own generation, and whoever has an old one
//! finds out by its failing.

use std::collections::HashMap;

use super::bucket::{At, Bucket};
use super::buckets::Slab;
use super::bus::News;
use super::core::Core;
use super::lock::Scope;
use super::lookup::MAX_CHAIN;
use super::open::waiting_for_members;
use crate::error::{Error, Result};
use crate::layout::counters::Counts;
use crate::layout::kind::Kind;
use crate::layout::page::Page;
use crate::layout::superblock::{Losses, SETTINGS_BYTES};
use crate::memory::{Fate, Memory, MemoryError};

/// Attempts at something in the superblock between which a loss was accepted.
const ATTEMPTS: usize = 8;
/// Bytes of an extent looked at in one piece.
const PIECE: usize = 64 << 10;

/// A record as mending sees it.
struct Seen {
    db: u8,
    key: Vec<u8>,
    stamp: u64,
    extent: Option<(u64, usize)>,
    /// Of a collection.
    head: Option<(Kind, Vec<u8>)>,
}

impl<M: Memory> Core<M> {
    /// After an operation on a bucket that no transaction holds has failed, before it has
    /// changed anything: mends what can be mended. `Ok` when trying again makes sense;
    /// the error otherwise.
    #[cold]
    pub fn recover(&self, bucket: usize, error: Error) -> Result<()> {
        let (number, _) = self.map.place(bucket);
        let Some(slab) = self.buckets.get(number) else {
            return Err(error);
        };
        let (slab, addr) = (number, slab.addr());
        if error.is_node_lost() && self.memory.fate(addr) == Fate::Gone {
            return self.replace(slab, addr);
        }
        // Its home has moved it before it left.
        if error.is_node_lost()
            && self.memory.fate(addr) == Fate::Away
            && self.look_again(slab, addr)?
        {
            return Ok(());
        }
        // The home was away, or had not been heard of, and is a member by now.
        if matches!(error, Error::Memory(MemoryError::NodeLost(node)) if node == self.home(slab))
            && self.memory.fate(addr) == Fate::Live
        {
            return Ok(());
        }
        match self.lost_in_bucket(error)? {
            true => self.writing(Scope::ALONE, bucket, |bucket| bucket.mend().map(|_| ())),
            false => Ok(()),
        }
    }

    /// [`Self::recover`], after the lock could not be entered.
    #[cold]
    pub(super) fn unbar(&self, bucket: usize, error: MemoryError) -> Result<()> {
        let slab = self.buckets.get(self.map.place(bucket).0);
        let there = slab.is_some_and(|slab| self.memory.fate(slab.addr()) == Fate::Live);
        match error {
            // Meanwhile it is known where it is: its old home has left.
            MemoryError::NodeLost(_) if there => Ok(()),
            error => self.recover(bucket, error.into()),
        }
    }

    /// Whether an error says that something has died of what a bucket's head page points to.
    /// `false`: it was in the superblock, which goes on.
    pub fn lost_in_bucket(&self, error: Error) -> Result<bool> {
        match error {
            Error::Memory(MemoryError::Lost(addr)) if self.in_superblock(addr) => {
                self.memory.accept(addr)?;
                Ok(false)
            }
            Error::Memory(MemoryError::Lost(_)) => Ok(true),
            error => Err(error),
        }
    }

    fn in_superblock(&self, addr: u64) -> bool {
        (self.base..self.base + self.map.region_len() as u64).contains(&addr)
    }

    /// Does something in the superblock again, after it has failed. A block of it whose last
    /// content has died goes on with what was published of it.
    #[cold]
    pub fn insist<R>(
        &self,
        error: MemoryError,
        mut f: impl FnMut() -> std::result::Result<R, MemoryError>,
    ) -> Result<R> {
        insist(&self.memory, error, &mut f)
    }

    /// Gives a slab new addresses, unless another node has; learns where it is.
    pub fn replace(&self, slab: usize, mine: u64) -> Result<()> {
        let _alone = self.alone();
        if self
            .buckets
            .get(slab)
            .is_some_and(|slab| slab.addr() != mine)
        {
            return Ok(()); // another thread has just replaced it
        }
        let (at, known) = self.entry_of(slab)?;
        if Slab::<M>::addr_of(known) != mine {
            return self.attach(slab, known).map(|_| ());
        }
        let buckets = self.map.slab_buckets(slab);
        let fresh = self.memory.alloc_pages(self.home(slab), buckets)?;
        let entry = Slab::<M>::replacing(fresh);
        let mine = self.install(at, known, entry, self.map.slab_len(slab))?;
        self.attach(slab, self.load_word(at)?)?;
        match mine {
            true => self.note_losses(buckets as u64, 0),
            false => Ok(()),
        }
    }

    /// Gives new addresses to all slabs whose old ones have died with an incarnation of their node.
    /// A slab whose node dies once more meanwhile stays as it is: its keys are away,
    /// the others are not.
    pub fn replace_all(&self) -> Result<()> {
        for (number, slab) in self.buckets.now().iter() {
            waiting_for_members(self.patience, || match self.memory.fate(slab.addr()) {
                Fate::Gone => self.replace(number, slab.addr()),
                Fate::Live | Fate::Away => Ok(()),
            })?;
        }
        Ok(())
    }

    /// Buckets whose home is no member.
    pub fn buckets_away(&self) -> usize {
        for (number, slab) in self.buckets.now().iter() {
            // Nobody has used it since its home has moved it and left.
            if self.memory.fate(slab.addr()) == Fate::Away {
                let _ = self.look_again(number, slab.addr());
            }
        }
        self.slab_buckets(|slab| self.memory.fate(slab.addr()) == Fate::Away)
    }

    /// Bytes of this node's memory that are addresses of locks: nobody touches them.
    pub fn own_addresses(&self) -> usize {
        let slabs = self.buckets.now();
        let mine = |slab: usize| self.home(slab) == self.memory.id();
        let mine = slabs.iter().filter(|(number, _)| mine(*number));
        mine.map(|(number, _)| self.map.slab_len(number)).sum()
    }

    /// Buckets of these slabs.
    pub fn slab_buckets(&self, of: impl Fn(&Slab<M>) -> bool) -> usize {
        let slabs = self.buckets.now();
        let slabs = slabs.iter().filter(|(_, slab)| of(slab));
        slabs.map(|(number, _)| self.map.slab_buckets(number)).sum()
    }

    /// Adds to what was lost since the store was made.
    pub fn note_losses(&self, buckets: u64, values: u64) -> Result<()> {
        let add = || {
            let at = self.map.settings(self.base);
            self.memory.update(at, SETTINGS_BYTES, |view| {
                Losses::add(view, buckets, values);
            })
        };
        add().or_else(|error| self.insist(error, add))
    }

    /// What was lost since the store was made.
    pub fn losses(&self) -> Result<Losses> {
        let at = self.map.settings(self.base);
        let look = || self.memory.snapshot(at, SETTINGS_BYTES, Losses::load);
        look().or_else(|error| self.insist(error, look))
    }

    /// The keys of a database, counted one by one: what nodes had added up may have died with one
    /// of them.
    pub fn tally(&self, scope: Scope<'_, M>, db: u8, flushed: u64) -> Counts {
        let now = self.clock.now();
        let mut sum = Counts::default();
        let mut cursor = 0;
        loop {
            let counted = self.at_cursor(scope, cursor, |bucket| {
                let mut counts = Counts::default();
                if flushed > bucket.head().epoch() {
                    return Ok(counts);
                }
                let of_page = |page: &Page<'_>| {
                    let mine = page
                        .records()
                        .filter(|r| r.db() == db && !r.expired(|| now));
                    mine.fold(Counts::default(), |sum, record| {
                        sum.plus(Counts::record(true, record.expiry != 0))
                    })
                };
                bucket.each_page(db, of_page, |more| counts = counts.plus(more))?;
                Ok(counts)
            });
            // The content of an unreadable one is unknown; it counts as empty.
            let (counted, next) = counted;
            sum = sum.plus(counted.unwrap_or_default());
            cursor = next;
            if cursor == 0 {
                return sum;
            }
        }
    }
}

impl<M: Memory> Bucket<'_, M> {
    /// Looks through the bucket: what is lost leaves it, and so does the older of two records of
    /// one key, which somebody leaves who fails while moving one. How many pages and records are
    /// lost.
    pub fn mend(&mut self) -> Result<u64> {
        if !self.head().initialized() {
            return Ok(0);
        }
        let (mut at, mut before, mut dropped) = (At::Head, At::Head, 0);
        let mut newest: HashMap<(u8, Vec<u8>), (u64, At)> = HashMap::new();
        for round in 0.. {
            if round == MAX_CHAIN {
                return Err(Error::Corrupt("a chain of pages does not end"));
            }
            let (records, next) = match self.survey(at) {
                Ok(found) => found,
                Err(Error::Memory(MemoryError::Lost(_))) if at != At::Head => {
                    self.change(before, |page| page.set_next(0))?;
                    dropped += 1;
                    break;
                }
                Err(error) => return Err(error),
            };
            for record in records {
                if !self.core.has_all_of(&record)? {
                    self.drop_record(at, record.db, &record.key)?;
                    dropped += 1;
                    continue;
                }
                let (db, key, stamp) = (record.db, record.key, record.stamp);
                match newest.get(&(db, key.clone())).copied() {
                    Some((other, _)) if other > stamp => self.drop_record(at, db, &key)?,
                    other => {
                        if let Some((_, page)) = other {
                            self.drop_record(page, db, &key)?;
                        }
                        newest.insert((db, key), (stamp, at));
                    }
                }
            }
            let Some(behind) = At::next(next) else {
                break;
            };
            (before, at) = (at, behind);
        }
        self.news.push(News::everything());
        self.change_head(|page| {
            let version = page.page().version() + 1;
            page.set_version(version);
            page.set_deleted(version);
        })?;
        if dropped > 0 {
            self.core.note_losses(0, dropped)?;
        }
        Ok(dropped)
    }

    /// The records of a page, and where the next page is.
    fn survey(&self, at: At) -> Result<(Vec<Seen>, u64)> {
        self.look(at, |page| {
            let records = page.records().map(|record| {
                let mut key = vec![0; record.key_len().min(self.core.geometry.key_max())];
                page.view.read(record.key_at(), &mut key);
                Seen {
                    db: record.db(),
                    key,
                    stamp: record.stamp,
                    extent: record.extent.map(|extent| (extent.addr, record.val_len)),
                    head: (record.kind != Kind::String)
                        .then(|| (record.kind, page.inline_value(&record))),
                }
            });
            (records.collect(), page.next())
        })
    }

    fn drop_record(&mut self, at: At, db: u8, key: &[u8]) -> Result<()> {
        let id = self.core.id(db, key)?;
        self.change(at, |page| {
            if let Some(record) = page.page().find(&id) {
                page.remove(&record);
            }
        })
    }
}

impl<M: Memory> Core<M> {
    /// Whether all that a record points to is still there, or may come back.
    fn has_all_of(&self, record: &Seen) -> Result<bool> {
        match (&record.extent, &record.head) {
            (Some((extent, len)), _) => self.readable(*extent, *len),
            (None, Some((kind, head))) => self.is_whole(*kind, head),
            (None, None) => Ok(true),
        }
    }

    /// Whether all of a value is still there, or may come back.
    pub fn readable(&self, addr: u64, len: usize) -> Result<bool> {
        let mut bytes = vec![0; len.min(PIECE)];
        let mut done = 0;
        while done < len {
            let n = (len - done).min(bytes.len());
            match self.memory.read(addr + done as u64, &mut bytes[..n]) {
                Ok(()) => done += n,
                Err(MemoryError::Lost(_)) => return Ok(false),
                Err(MemoryError::NodeLost(_)) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

/// [`Core::insist`], where there is no store yet.
pub(super) fn insist<M: Memory, R>(
    memory: &M,
    mut error: MemoryError,
    f: &mut impl FnMut() -> std::result::Result<R, MemoryError>,
) -> Result<R> {
    for _ in 0..ATTEMPTS {
        let MemoryError::Lost(addr) = error else {
            break;
        };
        memory.accept(addr)?;
        match f() {
            Ok(done) => return Ok(done),
            Err(next) => error = next,
        }
    }
    Err(error.into())
}
