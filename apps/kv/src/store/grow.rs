//! Buckets split when they are full, and are merged when they are empty: so a store takes the
//! memory that its keys take.
//!
//! Whoever has filled a bucket splits it, after the operation that did. It is inside of the locks
//! of the bucket and of the one that comes of it meanwhile; all others go on. Nothing is asked of
//! other nodes, and nothing told them: a bucket says by itself that it was split (`locate.rs`).
//!
//! The records of both are put together beside the old ones, which go last. So a split that fails,
//! or whose node dies, leaves the bucket as it was, or lost with all that the node had last.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::bucket::{At, Bucket};
use super::core::Core;
use super::lock::Scope;
use super::lookup::MAX_CHAIN;
use crate::error::{Error, Result};
use crate::hash::hash;
use crate::layout::counters::Counts;
use crate::layout::page::{HEADER, Page};
use crate::layout::superblock::{self, FLUSH_BYTES, MOST_DEPTH};
use crate::memory::{Access, Memory};

/// Bytes of a page from which on its bucket splits. With less there would be more locks than
/// content; with more, keys would share locks that have little to do with each other.
const CROWDED: usize = 1024;
/// Fewer records than these do not make a bucket split: there are long ones among them.
const FEW: usize = 4;
/// Steps that one operation takes to balance a bucket, at most: each halves it, or joins two.
const STEPS: usize = 2 * MOST_DEPTH as usize;
/// After an attempt to split or merge that failed, because there is no memory or a node is away,
/// there is none for so long, in milliseconds.
const REST: u64 = 100;

/// When buckets split.
pub(crate) struct Growth {
    /// Bits of a bucket's number at most.
    pub most: u8,
    /// Bytes of a page in use from which on the bucket splits.
    pub crowded: usize,
    /// No attempt before.
    rest_until: AtomicU64,
}

impl Growth {
    /// Of a store whose buckets' numbers have so many bits at most, with pages so long, of which
    /// the memory takes less when they are not full (`saves`), or not.
    pub fn new(most: u8, page: usize, saves: bool) -> Self {
        Growth {
            most: most.min(MOST_DEPTH),
            crowded: match saves {
                true => CROWDED.min(page),
                false => page - page / 8,
            },
            rest_until: AtomicU64::new(0),
        }
    }

    /// Whether a bucket should split.
    #[inline]
    pub fn is_crowded(&self, head: &Page<'_>) -> bool {
        let much = head.used() > self.crowded && head.count() >= FEW;
        (much || head.next() != 0) && head.depth() < self.most
    }

    /// Whether a bucket should join another one.
    #[inline]
    pub fn is_empty(&self, head: &Page<'_>, root_depth: u8) -> bool {
        head.count() == 0 && head.next() == 0 && head.depth() > root_depth
    }
}

/// A bucket's records, as its pages have them.
#[derive(Default)]
struct Records {
    /// Of each page: its records, and how many there are.
    pages: Vec<(Vec<u8>, usize)>,
    soonest: u64,
}

impl Records {
    fn push(&mut self, record: &[u8], expiry: u64, room: usize) {
        if expiry != 0 && (self.soonest == 0 || expiry < self.soonest) {
            self.soonest = expiry;
        }
        let full = |(bytes, _): &(Vec<u8>, usize)| bytes.len() + record.len() > room;
        if self.pages.last().is_none_or(full) {
            self.pages.push((Vec::new(), 0));
        }
        if let Some((bytes, count)) = self.pages.last_mut() {
            bytes.extend_from_slice(record);
            *count += 1;
        }
    }
}

impl<M: Memory> Core<M> {
    /// Splits or merges the bucket of a hash, as it needs. What fails is tried again by a later
    /// operation.
    #[cold]
    pub fn balance(&self, hash: u64) {
        let now = self.clock.now();
        if now < self.growth.rest_until.load(Relaxed) {
            return;
        }
        for _ in 0..STEPS {
            match self.balance_once(hash) {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => return self.growth.rest_until.store(now + REST, Relaxed),
            }
        }
    }

    /// Whether there was something to do.
    fn balance_once(&self, hash: u64) -> Result<bool> {
        let root_depth = self.map.root_depth();
        let (number, depth, crowded, empty) = self.reading_key(Scope::ALONE, hash, |bucket| {
            let head = bucket.head();
            let crowded = self.growth.is_crowded(&head);
            let empty = self.growth.is_empty(&head, root_depth);
            Ok((bucket.number, bucket.depth(), crowded, empty))
        })?;
        if crowded {
            return self.split(number, depth);
        }
        if !empty {
            return Ok(false);
        }
        if depth > self.map.birth_depth(number) {
            return self.merge(number, number + (1 << (depth - 1)));
        }
        match self.map.parent(number) {
            Some(parent) => self.merge(parent, number),
            None => Ok(false),
        }
    }

    /// Says that buckets may be so deep.
    fn deepen(&self, depth: u8) -> Result<()> {
        if self.deepest()? >= depth {
            return Ok(());
        }
        let note = || {
            self.memory.update(self.base, FLUSH_BYTES, |view| {
                superblock::deepen(view, depth);
            })
        };
        note().or_else(|error| self.insist(error, note))?;
        // A bucket that is lost must know later how deep those may be that came of it.
        Ok(self.memory.publish(self.base)?)
    }

    /// Splits a bucket of this depth. Whether it was to be split.
    fn split(&self, number: usize, depth: u8) -> Result<bool> {
        let other = number + (1 << depth);
        self.deepen(depth + 1)?;
        self.make_slab(self.map.place(other).0)?;
        let held = self.hold_numbers(|_| vec![number, other], Access::Write)?;
        let scope = Scope(Some(&held));
        let done = self.writing(scope, number, |from| {
            let same = from.is_certain() && from.depth() == depth;
            if !same || !self.growth.is_crowded(&from.head()) {
                return Ok(false);
            }
            self.writing(scope, other, |to| from.split_into(to))?;
            Ok(true)
        })?;
        drop(held);
        if done {
            self.buckets.learn(number as u64, depth + 1);
            self.buckets.learn(other as u64, depth + 1);
        }
        Ok(done)
    }

    /// Puts what is in a bucket into the one that it was split from last, if it is little.
    /// Whether it was.
    fn merge(&self, parent: usize, number: usize) -> Result<bool> {
        if self.known_slab(self.map.place(number).0)?.is_none() {
            return Ok(false);
        }
        let depth = self.map.birth_depth(number);
        let held = self.hold_numbers(|_| vec![parent, number], Access::Write)?;
        let scope = Scope(Some(&held));
        let done = self.writing(scope, parent, |to| {
            self.writing(scope, number, |from| {
                let fits = |bucket: &Bucket<'_, M>| bucket.is_certain() && bucket.depth() == depth;
                if !fits(to) || !fits(from) {
                    return Ok(false);
                }
                from.merge_into(to)
            })
        })?;
        drop(held);
        if done {
            self.buckets.learn(parent as u64, depth - 1);
        }
        Ok(done)
    }
}

impl<M: Memory> Bucket<'_, M> {
    /// All records, each given to `f` with what it needs to choose a place for it. They are clean.
    fn each_record(&self, mut f: impl FnMut(&[u8], u64, u64)) -> Result<Vec<u64>> {
        let (mut behind, mut next) = (Vec::new(), Some(At::Head));
        let (mut key, mut bytes, mut found) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(at) = next {
            if behind.len() == MAX_CHAIN {
                return Err(Error::Corrupt("a chain of pages does not end"));
            }
            let seed = self.core.seed;
            let addr = self.look(at, |page| {
                found.clear();
                bytes.clear();
                for record in page.records() {
                    key.resize(record.key_len().min(page.view.len()), 0);
                    page.view.read(record.key_at(), &mut key);
                    let start = bytes.len();
                    bytes.resize(start + record.size, 0);
                    page.view.read(record.at, &mut bytes[start..]);
                    found.push((start..bytes.len(), hash(seed, &key), record.expiry));
                }
                page.next()
            })?;
            for (range, hash, expiry) in found.drain(..) {
                f(&bytes[range], hash, expiry);
            }
            next = At::next(addr);
            behind.extend((addr != 0).then_some(addr));
        }
        Ok(behind)
    }

    /// Gives the records whose hashes have one more bit to `to`. Both are held.
    fn split_into(&mut self, to: &mut Bucket<'_, M>) -> Result<()> {
        self.refresh()?;
        let (depth, room) = (self.depth(), self.core.geometry.page - HEADER);
        let (mut stays, mut goes) = (Records::default(), Records::default());
        let behind = self.each_record(|record, hash, expiry| {
            let half = match hash >> depth & 1 {
                0 => &mut stays,
                _ => &mut goes,
            };
            half.push(record, expiry, room);
        })?;
        // Of a split that came to nothing because its node died.
        let left_over = to.each_record(|_, _, _| ())?;
        let mut made = Vec::new();
        let chains = self
            .put_chain(&stays, &mut made)
            .and_then(|own| Ok((own, to.put_chain(&goes, &mut made)?)));
        let (own, others) = match chains {
            Ok(chains) => chains,
            Err(error) => {
                self.free_pages(&made)?;
                return Err(error);
            }
        };
        let head = self.head();
        let header: [u64; HEADER / 8] = std::array::from_fn(|word| head.view.u64(word * 8));
        let doubt = self.core.memory.pages_survive();
        to.change_head(|page| {
            page.set_header(&header);
            page.set_depth(depth + 1, doubt);
        })?;
        to.put_head(&goes, others)?;
        self.put_head(&stays, own)?;
        self.change_head(|page| page.set_depth(depth + 1, false))?;
        self.free_pages(&behind)?;
        self.free_pages(&left_over)
    }

    /// Gives all records to `to`, if there are few in both. Both are held.
    fn merge_into(&mut self, to: &mut Bucket<'_, M>) -> Result<bool> {
        self.refresh()?;
        to.refresh()?;
        let used = self.head().used() + to.head().used() - HEADER;
        let chains = self.head().next() != 0 || to.head().next() != 0;
        // What survives its writer's death is written page by page, the higher number first.
        let moves = self.head().count() != 0;
        if chains
            || used > self.core.growth.crowded / 4
            || moves && self.core.memory.pages_survive()
        {
            return Ok(false);
        }
        let mut all = Records::default();
        let room = self.core.geometry.page - HEADER;
        for bucket in [&*to, &*self] {
            bucket.each_record(|record, _, expiry| all.push(record, expiry, room))?;
        }
        let mine = self.head();
        let (version, deleted) = (mine.version(), mine.deleted());
        let watchers = mine.watchers();
        let depth = to.depth() - 1;
        to.put_head(&all, 0)?;
        to.change_head(|page| {
            page.set_watchers(page.page().watchers() | watchers);
            let (known, lost) = (page.page().version(), page.page().deleted());
            page.set_version(known.max(version));
            page.set_deleted(lost.max(deleted));
            page.set_depth(depth, false);
        })?;
        self.give_up_head()?;
        Ok(true)
    }

    /// Writes all but the first page of records to memory: where the second one is, or 0.
    fn put_chain(&self, records: &Records, made: &mut Vec<u64>) -> Result<u64> {
        let (home, len) = (self.home(), self.core.geometry.page);
        let mut next = 0;
        for (bytes, count) in records.pages.iter().skip(1).rev() {
            let addr = self.core.alloc_near(home, len)?;
            made.push(addr);
            self.core.memory.update(addr, len, |view| {
                let mut page = crate::layout::page_mut::PageMut::new(view, &self.core.geometry);
                page.format();
                page.replace_records(bytes, *count, next);
            })?;
            next = addr;
        }
        Ok(next)
    }

    /// Writes the first page of records.
    fn put_head(&mut self, records: &Records, next: u64) -> Result<()> {
        let none = (Vec::new(), 0);
        let (bytes, count) = records.pages.first().unwrap_or(&none);
        self.change_head(|page| {
            page.replace_records(bytes, *count, next);
            page.set_soonest(records.soonest);
        })?;
        // Who sweeps this bucket may not have swept the one that the records come from.
        let nearer = Counts::nearer(records.soonest != 0);
        self.core.count(0, self.era(0)?.flushed, nearer)
    }

    fn free_pages(&self, pages: &[u64]) -> Result<()> {
        let len = self.core.geometry.page;
        pages
            .iter()
            .try_for_each(|addr| Ok(self.core.memory.free(*addr, len)?))
    }
}
