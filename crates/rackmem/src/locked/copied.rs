//! Locks in coherent memory with copies ([`crate::RegionSpec::survives`]): they do not die with the
//! node that serves their home.
//!
//! What a majority has of such a lock is its record: the descriptor, whether the lock is *out*, and
//! what it protects, with a stamp at the end. A record lies in one block, so it changes at one
//! moment, and only who is inside to write changes it. The directory is the keeper's, and is made
//! anew with each epoch from what members tell (`gcp::settle`).
//!
//! | who | does |
//! |---|---|
//! | enters, and has nothing of what is protected | takes it from the record, which is out from here on |
//! | does so, and the record was out | is told `OwnerDied`: who had the lock is dead, and everybody who had it before |
//! | enters, and is told of a death | takes what is newer by its stamp: what is here, or the record |
//! | leaves as a writer, where writes survive | writes the record first |
//! | brings the lock to rest | writes the record, which is not out, and keeps nothing |
//!
//! Locks of an array in such a region ([`super::pages`]) have another record, which is never out.
//!
//! A stamp is the fencing token of the last writer. Readers take nothing from a record: a writer
//! has to put it in place for all.

use super::descriptor::{self, Descriptor, Name};
use super::handle::{HEAD, Handle, Inside, locks};
use crate::error::{AccessError, LockError, LockShape, RegionError};
use crate::host::locks::seat::Content;
use crate::host::locks::table::Origin;
use crate::node::places;
use crate::region::Region;
use rackmem_fabric::words;
use rackmem_proto::gcp::{Access, Life, MAX_LOCKED};
use rackmem_proto::membership::Survives;
use rackmem_proto::wire::{Reason, Tag};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Of a record: nodes have the lock, and what they do to it is not here.
const OUT: u64 = 1;
/// Between two attempts to write a record.
const PAUSE: Duration = Duration::from_millis(1);
/// The life of each of these locks: they are not freed.
fn life() -> Life {
    Life::NONE.next().unwrap_or_default()
}

/// Bytes of the record of a lock over so many.
const fn record(len: usize) -> usize {
    descriptor::size(0) + 8 + HEAD + len.next_multiple_of(8) + 8
}

/// Bytes that a lock over so many takes in a region: at multiples of this, none is in two blocks.
pub(super) const fn room(len: usize) -> usize {
    record(len).next_power_of_two()
}

/// What a majority has, behind the descriptor.
pub(super) struct Record {
    pub out: bool,
    pub stamp: u64,
    pub content: Vec<u8>,
}

impl Handle {
    /// The lock at this byte of a region with copies, made by whoever asks first.
    pub fn in_region(
        region: &Region,
        at: usize,
        what: &Descriptor,
        fill: impl Fn(&[AtomicU64]),
    ) -> Result<Self, RegionError> {
        let node = region.node();
        let (block, len) = (node.inner.block, record(what.len));
        let bad = |why| RegionError::Lock(LockError::BadShape { why });
        if !region.has_home() {
            return Err(bad(LockShape::NoCopies));
        }
        if !at.is_multiple_of(16) || at % block + len > block {
            return Err(bad(LockShape::TwoBlocks { block }));
        }
        let addr = places::lock_at(region.within(at, len)?);
        match Handle::attach(node, addr, what) {
            Err(LockError::NoLock { .. }) => {}
            found => return Ok(found?),
        }
        let cell = locks(node).open(Tag(addr), MAX_LOCKED as usize, Origin::Heard)?;
        let place = Handle::new(node, cell, what.len, Life::NONE, Name::NONE);
        let inside = place.enter(Access::Write, node.inner.access.patience)?;
        let inside = inside.ok_or(LockError::Busy { addr })?;
        let made = place.make_record(what, inside.token(), fill);
        inside.decline();
        made?;
        Ok(Handle::attach(node, addr, what)?)
    }

    /// Writes the first record of a lock at rest, unless somebody has.
    fn make_record(
        &self,
        what: &Descriptor,
        token: u64,
        fill: impl Fn(&[AtomicU64]),
    ) -> Result<(), LockError> {
        let (node, addr) = (&self.node, self.addr());
        match Descriptor::read(node, addr) {
            Err(LockError::NoLock { .. }) => {}
            found => return found.map(drop),
        }
        let content: Vec<AtomicU64> = (0..self.words).map(|_| AtomicU64::new(0)).collect();
        content[0].store(life().to_word(), Relaxed);
        content[content.len() - 1].store(token, Relaxed);
        fill(&content);
        let mut bytes = what.head(life(), Name::NONE);
        bytes.extend(0u64.to_le_bytes());
        bytes.extend(content.iter().flat_map(|w| w.load(Relaxed).to_le_bytes()));
        Ok(self.put_record(0, &bytes)?)
    }

    /// Writes a part of the record. It is with a majority when this returns.
    fn put_record(&self, at: usize, bytes: &[u8]) -> Result<(), AccessError> {
        let addr = places::memory_of(self.addr()) + at as u64;
        let put = || {
            self.node.write(addr, bytes).map_err(|bulk| bulk.error)?;
            self.node.evict(addr).map(drop)
        };
        loop {
            match put() {
                // Whether or not it has happened, this thread is still inside.
                Err(AccessError::Interrupted { .. }) => {}
                done => return done,
            }
        }
    }

    /// As many bytes of it.
    pub(super) fn record_bytes(&self, len: usize) -> Result<Vec<u8>, AccessError> {
        let addr = places::memory_of(self.addr());
        let mut bytes = vec![0; len];
        loop {
            match self.node.read(addr, &mut bytes) {
                Err(AccessError::Interrupted { .. }) => {}
                read => return read.map(|()| bytes),
            }
        }
    }

    fn read_record(&self) -> Result<Record, LockError> {
        if self.is_page {
            return Ok(self.read_page()?);
        }
        let len = descriptor::size(0) + 8 + self.words as usize * 8;
        let mut bytes = self.record_bytes(len)?;
        let content = bytes.split_off(descriptor::size(0) + 8);
        let word = |at: usize| bytes[at..].first_chunk().copied().unwrap_or_default();
        if u64::from_le_bytes(word(descriptor::size(0) - 8)) != life().to_word() {
            return Err(LockError::NoLock { addr: self.addr() });
        }
        Ok(Record {
            out: u64::from_le_bytes(word(descriptor::size(0))) == OUT,
            stamp: u64::from_le_bytes(content.last_chunk().copied().unwrap_or_default()),
            content,
        })
    }

    /// The word of what is here that says who has written last: where it is, if anything is.
    #[inline]
    fn stamp_word(&self) -> Option<&AtomicU64> {
        let at = match self.is_page {
            true => 0,
            false => self.words as usize - 1,
        };
        self.cell.words().get(at)
    }

    /// The token of the last writer of what is here; 0: nothing is here.
    fn stamp(&self) -> u64 {
        self.stamp_word().map_or(0, |word| word.load(Relaxed))
    }

    /// A writer has entered: what it leaves is its own.
    #[inline]
    pub(super) fn begin_to_write(&self, token: u64) {
        if let Some(word) = self.stamp_word() {
            word.store(token, Relaxed);
        }
    }

    /// A thread is inside and finds nothing, or is told of a death: what is newest is here when
    /// this returns. `None`: that took too long.
    #[cold]
    pub(super) fn look_for<'a>(
        &'a self,
        mut inside: Inside<'a>,
        at_most: Duration,
    ) -> Result<Option<Inside<'a>>, LockError> {
        let (began, access) = (Instant::now(), inside.access());
        let left = || at_most.saturating_sub(began.elapsed());
        let place = self.place();
        loop {
            let found = match self.read_record() {
                Ok(record) => record,
                Err(error) => {
                    inside.decline();
                    return Err(error);
                }
            };
            if found.stamp <= self.stamp() || access == Access::Write {
                if let Err(error) = self.take(&found, &mut inside) {
                    inside.decline();
                    return Err(error.into());
                }
                return Ok(Some(inside));
            }
            inside.decline();
            let Some(mut writer) = place.enter(Access::Write, left())? else {
                return Ok(None);
            };
            let found = self.read_record();
            let put = found.and_then(|found| Ok(self.take(&found, &mut writer)?));
            writer.decline();
            put?;
            let Some(reader) = place.enter(Access::Read, left())? else {
                return Ok(None);
            };
            inside = self.inside_as(reader);
        }
    }

    /// Puts a record in place if it is newer than what is here, which only a writer is told to do.
    fn take(&self, found: &Record, inside: &mut Inside<'_>) -> Result<(), AccessError> {
        let here = self.stamp();
        let nothing = self.is_page && self.cell.words().is_empty();
        if found.stamp > here || nothing && inside.access() == Access::Write {
            if self.is_page {
                // Its record is never out.
            } else if !found.out {
                self.put_record(descriptor::size(0), &OUT.to_le_bytes())?;
            } else if here == 0 && inside.content() == Content::Current {
                let locks = locks(&self.node);
                locks.look(&self.cell, |state| state.lock.found(Reason::OwnerDied));
                inside.tell(Content::OwnerDied);
            }
            self.cell.content.renew(found.content.len() / 8);
            words::write(self.cell.words(), &found.content);
        }
        // Where writes survive, nothing is older than the last release.
        if self.copied == Some(Survives::Writes) && inside.content() == Content::Lost {
            inside.tell(Content::OwnerDied);
        }
        if inside.access() == Access::Write {
            self.begin_to_write(inside.token());
        }
        Ok(())
    }

    fn state(&self, out: bool) -> Vec<u8> {
        let mut bytes = u64::from(out).to_le_bytes().to_vec();
        let words = self.cell.words().iter().take(self.words as usize);
        bytes.extend(words.flat_map(|word| word.load(Relaxed).to_le_bytes()));
        bytes
    }

    /// The writer inside is about to leave, and what it has written survives: a majority has it
    /// when this returns, or this process is no member any more. Without a majority nobody leaves.
    #[cold]
    pub(super) fn keep(&self) {
        // Whatever is the matter, nobody is to be told of it any more.
        let _ = self.keep_within(Duration::MAX);
    }

    /// The same; why not, where no majority has it after this time.
    #[cold]
    pub(super) fn keep_within(&self, at_most: Duration) -> Result<(), LockError> {
        let (at, bytes) = match self.is_page {
            true => (0, self.page_record()),
            false => (descriptor::size(0), self.state(true)),
        };
        let began = Instant::now();
        loop {
            let Err(error) = self.put_record(at, &bytes) else {
                return Ok(());
            };
            if let Some(error) = self.ended() {
                return Err(error.into());
            }
            self.is_there()?;
            if began.elapsed() >= at_most {
                return Err(error.into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Brings it to rest: a majority has what it protects, and no node anything that counts.
    pub fn rest(&self) -> Result<(), LockError> {
        if self.copied.is_none() {
            return Ok(());
        }
        let addr = self.addr();
        let inside = self.enter(Access::Write, self.node.inner.access.patience)?;
        let inside = inside.ok_or(LockError::Busy { addr })?;
        self.put_record(descriptor::size(0), &self.state(false))?;
        self.cell.content.clear();
        inside.leave_as_it_is();
        Ok(())
    }
}
