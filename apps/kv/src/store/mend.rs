//! Living through the death of nodes: finding out what has died with one, and going on with the rest.
//!
//! | what an operation meets | what is done | the keys |
//! |---|---|---|
//! | a bucket in the memory of a node that is away | nothing: the operation fails ([`MemoryError::NodeLost`]) | unknown until it is back |
//! | the same, and the node is back with new memory | the slab gets new memory there | absent |
//! | a head page whose last content died with another node's cache | it begins anew, empty | absent |
//! | a page further down the chain, the same | the chain ends before it | those of that page, and behind it, absent |
//! | a value in an extent, the same, or in memory of a node that is back | its record goes | absent |
//! | a bucket held by a process that has died | it is taken over, looked through and let go of | as the holder left them |
//!
//! The address of new memory is never one of old memory, because it contains the incarnation of its home. So an address in
//! the table of slabs is its own generation, and whoever has an old one finds out by its failing.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use super::core::Core;
use super::lock::Held;
use super::lookup::MAX_CHAIN;
use crate::error::{Error, Result};
use crate::layout::counters::Counts;
use crate::layout::page_mut::PageMut;
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
}

impl<M: Memory> Core<M> {
    /// After an operation on a bucket has failed, before it has changed anything: mends what can be mended. `Ok` when
    /// trying again makes sense; the error otherwise. `token`: that of whoever holds the bucket, or 0.
    #[cold]
    pub fn recover(&self, token: u64, bucket: usize, error: Error) -> Result<()> {
        let addr = match &error {
            Error::Memory(MemoryError::Lost(addr)) => Some(*addr),
            Error::Memory(MemoryError::NodeLost(_)) => None,
            _ => return Err(error),
        };
        if let Some(addr) = addr.filter(|addr| self.in_superblock(*addr)) {
            return Ok(self.memory.accept(addr, false)?);
        }
        let head = self.head(bucket);
        let block = self.geometry.block as u64;
        match (self.memory.fate(head), addr) {
            // The lock went with the bucket, and with it whatever the holder relies on.
            (Fate::Gone, _) if token != 0 => Err(error),
            (Fate::Gone, _) => self.replace(bucket / self.map.slab_pages, head),
            (Fate::Live, Some(addr)) if addr / block == head / block => {
                if token != 0 {
                    return Err(error);
                }
                self.memory.accept(head, true)?;
                self.note_losses(1, 0)
            }
            (Fate::Live, Some(_)) if token != 0 => self.mend(bucket),
            (Fate::Live, Some(_)) => {
                let _held = self.hold(vec![bucket])?;
                self.mend(bucket)
            }
            _ => Err(error),
        }
    }

    fn in_superblock(&self, addr: u64) -> bool {
        (self.base..self.base + self.map.region_len() as u64).contains(&addr)
    }

    /// Does something in the superblock again, after it has failed. A block of it whose last content has died goes on with
    /// what was published of it.
    #[cold]
    pub fn insist<R>(
        &self,
        error: MemoryError,
        mut f: impl FnMut() -> std::result::Result<R, MemoryError>,
    ) -> Result<R> {
        insist(&self.memory, error, &mut f)
    }

    /// Gives a slab new memory, unless somebody has; learns where it is.
    pub fn replace(&self, slab: usize, head: u64) -> Result<()> {
        let _alone = self
            .replacing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (at, len) = (
            self.map.slab_table(self.base) + slab as u64 * 8,
            self.map.slab_pages * self.geometry.block,
        );
        let look = || self.memory.snapshot(at, 8, |view| view.u64(0));
        let known = look().or_else(|error| self.insist(error, look))?;
        let mine = self.slabs[slab].load(Relaxed);
        if known != mine {
            self.slabs[slab].store(known, Relaxed);
            return Ok(());
        }
        if !(known..known + len as u64).contains(&head) {
            return Ok(()); // another thread has just replaced it
        }
        let home = (slab % self.map.nodes) as u16;
        let fresh = self.memory.alloc_on(home, len)?;
        if self.map.slab_pages == 1 {
            // Pages of chains have this size, too: it may be one that was freed, and still look like one.
            self.memory.write(fresh, &[0; 8])?;
        }
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
        if found != known {
            self.slabs[slab].store(found, Relaxed);
            return Ok(self.memory.free(fresh, len)?);
        }
        self.memory.publish(at)?;
        self.slabs[slab].store(fresh, Relaxed);
        self.note_losses(self.map.slab_pages as u64, 0)
    }

    /// Gives new memory to all slabs whose old memory has died with an incarnation of its node.
    pub fn replace_all(&self) -> Result<()> {
        for slab in 0..self.slabs.len() {
            let addr = self.slabs[slab].load(Relaxed);
            if self.memory.fate(addr) == Fate::Gone {
                self.replace(slab, addr)?;
            }
        }
        Ok(())
    }

    /// Adds to what was lost since the store was made.
    fn note_losses(&self, buckets: u64, values: u64) -> Result<()> {
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

    /// Takes a bucket over from a process that has died holding it.
    #[cold]
    pub fn take_over(&self, bucket: usize, dead: u64) -> Result<()> {
        let token = self.token();
        let taken = self
            .memory
            .update(self.head(bucket), self.geometry.block, |view| {
                let mut page = PageMut::new(view, &self.geometry);
                let taken = page.page().lock() == dead;
                if taken {
                    page.set_lock(token);
                }
                taken
            })?;
        if !taken {
            return Ok(());
        }
        let _held = Held::of(self, token, bucket);
        self.mend(bucket)
    }

    /// Looks through a held bucket: what is lost leaves it, and so does the older of two records of one key, which
    /// somebody leaves who dies while moving one.
    fn mend(&self, bucket: usize) -> Result<()> {
        let head = self.head(bucket);
        let (mut addr, mut before, mut dropped) = (head, head, 0);
        let mut newest: HashMap<(u8, Vec<u8>), (u64, u64)> = HashMap::new();
        for round in 0.. {
            if round == MAX_CHAIN {
                return Err(Error::Corrupt("a chain of pages does not end"));
            }
            let (records, next) = match self.survey(addr) {
                Ok(found) => found,
                Err(Error::Memory(MemoryError::Lost(_))) if addr != head => {
                    self.memory.update(before, self.geometry.block, |view| {
                        PageMut::new(view, &self.geometry).set_next(0);
                    })?;
                    dropped += 1;
                    break;
                }
                Err(error) => return Err(error),
            };
            for record in records {
                if let Some((at, len)) = record.extent
                    && !self.readable(at, len)?
                {
                    self.drop_record(addr, record.db, &record.key)?;
                    dropped += 1;
                    continue;
                }
                let (db, key, mine) = (record.db, record.key, (record.stamp, addr));
                match newest.get(&(db, key.clone())).copied() {
                    Some(other) if other.0 > mine.0 => self.drop_record(addr, db, &key)?,
                    other => {
                        if let Some((_, page)) = other {
                            self.drop_record(page, db, &key)?;
                        }
                        newest.insert((db, key), mine);
                    }
                }
            }
            if next == 0 {
                break;
            }
            (before, addr) = (addr, next);
        }
        self.memory.update(head, self.geometry.block, |view| {
            let mut page = PageMut::new(view, &self.geometry);
            let version = page.page().version() + 1;
            page.set_version(version);
            page.set_deleted(version);
        })?;
        match dropped {
            0 => Ok(()),
            dropped => self.note_losses(0, dropped),
        }
    }

    /// The records of a page, and where the next page is.
    fn survey(&self, addr: u64) -> Result<(Vec<Seen>, u64)> {
        self.look(addr, |page| {
            let records = page.records().map(|record| {
                let mut key = vec![0; record.key_len().min(self.geometry.key_max())];
                page.view.read(record.key_at(), &mut key);
                Seen {
                    db: record.db(),
                    key,
                    stamp: record.stamp,
                    extent: record.extent.map(|extent| (extent.addr, record.val_len)),
                }
            });
            (records.collect(), page.next())
        })
    }

    fn drop_record(&self, page: u64, db: u8, key: &[u8]) -> Result<()> {
        let id = self.id(db, key)?;
        self.memory.update(page, self.geometry.block, |view| {
            let mut page = PageMut::new(view, &self.geometry);
            if let Some(record) = page.page().find(&id) {
                page.remove(&record);
            }
        })?;
        Ok(())
    }

    /// Whether all of a value is still there, or may come back.
    fn readable(&self, addr: u64, len: usize) -> Result<bool> {
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

    /// Lets go of buckets that could not be let go of when it was time.
    pub fn settle_orphans(&self) {
        let orphans = std::mem::take(&mut *self.orphans());
        for (bucket, token) in orphans {
            if self.unlock(bucket, token).is_err()
                && self.memory.fate(self.head(bucket)) == Fate::Live
            {
                self.orphans().push((bucket, token));
            }
        }
    }

    /// The keys of a database, counted one by one: what nodes had added up may have died with one of them.
    pub fn tally(&self, db: u8, flushed: u64) -> Counts {
        let now = self.clock.now();
        let mut sum = Counts::default();
        for bucket in 0..self.map.buckets {
            let (mut addr, mut pages, mut live) = (self.head(bucket), 0, true);
            while addr != 0 && pages < MAX_CHAIN && live {
                let first = pages == 0;
                let found = self.look(addr, |page| {
                    if first && flushed > page.epoch() {
                        return (Counts::default(), 0);
                    }
                    let mine = page
                        .records()
                        .filter(|r| r.db() == db && !r.expired(|| now));
                    let count = |sum: Counts, r: crate::layout::page::Record| {
                        sum.plus(Counts::record(true, r.expiry != 0))
                    };
                    (mine.fold(Counts::default(), count), page.next())
                });
                match found {
                    Ok((counts, next)) => (sum, addr) = (sum.plus(counts), next),
                    // Nobody can say what is in there; it counts as nothing.
                    Err(_) => live = false,
                }
                pages += 1;
            }
        }
        sum
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
        memory.accept(addr, false)?;
        match f() {
            Ok(done) => return Ok(done),
            Err(next) => error = next,
        }
    }
    Err(error.into())
}
