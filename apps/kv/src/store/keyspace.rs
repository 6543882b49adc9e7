//! Operations on all keys: scanning, choosing, counting, and the sweep that ends what is over.
//!
//! A scan's cursor is a bucket's number. Keys never change their bucket and a bucket is read as it
//! is at one moment, so a key that is there from a scan's start to its end is found, once.

use super::bucket::{At, Bucket};
use super::buckets::Slab;
use super::core::Core;
use super::db::Db;
use super::lock::Scope;
use super::lookup::MAX_CHAIN;
use crate::Error;
use crate::error::Result;
use crate::layout::page::Page;
use crate::memory::{Memory, Pages};

/// Buckets looked at in one step of a scan, besides those its count asks for.
const SCAN_BUCKETS: usize = 1024;
/// Buckets a step may look at per key asked for.
const SCAN_FACTOR: usize = 16;

/// Of so many buckets one may be idle before idle ones are forgotten, which looks at all of them.
const IDLE: usize = 512;

/// Keys, packed. Reusable.
#[derive(Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// The keys.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.bytes[start..*end])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Adds the live keys of one page.
    fn collect(&mut self, page: &Page<'_>, db: u8, now: u64) {
        for record in page
            .records()
            .filter(|r| r.db() == db && !r.expired(|| now))
        {
            let start = self.bytes.len();
            self.bytes.resize(start + record.key_len(), 0);
            page.view.read(record.key_at(), &mut self.bytes[start..]);
            self.ends.push(self.bytes.len());
        }
    }
}

impl<M: Memory> Db<'_, M> {
    /// How many keys there are. Exact when nothing changes meanwhile;
    /// keys past their expiry count until they are removed.
    pub fn len(&self) -> Result<usize> {
        Ok(self.core.counts(self.scope, self.number)?.keys as usize)
    }

    /// Whether [`Db::len`] is 0.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// How many keys have an expiry; as exact as [`Db::len`].
    pub fn expiring(&self) -> Result<usize> {
        Ok(self.core.counts(self.scope, self.number)?.expires as usize)
    }

    /// Adds to `keys` those of the buckets from `cursor` on, about `count`; says where to go on,
    /// 0 at the end.
    pub fn scan(&self, cursor: u64, count: usize, keys: &mut Keys) -> Result<u64> {
        let buckets = self.core.map.buckets;
        let budget = SCAN_BUCKETS.saturating_add(count.saturating_mul(SCAN_FACTOR));
        let first = usize::try_from(cursor).unwrap_or(buckets).min(buckets);
        let wanted = keys.len().saturating_add(count.max(1));
        for bucket in first..buckets.min(first.saturating_add(budget)) {
            self.core.collect(self.scope, bucket, self.number, keys)?;
            if keys.len() >= wanted {
                return Ok(self.cursor(bucket + 1));
            }
        }
        Ok(self.cursor(first.saturating_add(budget)))
    }

    fn cursor(&self, next: usize) -> u64 {
        if next >= self.core.map.buckets {
            0
        } else {
            next as u64
        }
    }

    /// A key chosen at random: first a bucket, then a key in it or after it.
    pub fn random_key(&self) -> Result<Option<Vec<u8>>> {
        let buckets = self.core.map.buckets;
        let first = fastrand::usize(..buckets);
        let mut keys = Keys::default();
        for i in 0..buckets {
            self.core
                .collect(self.scope, (first + i) % buckets, self.number, &mut keys)?;
            if !keys.is_empty() {
                let chosen = fastrand::usize(..keys.len());
                return Ok(keys.iter().nth(chosen).map(<[u8]>::to_vec));
            }
        }
        Ok(None)
    }
}

impl<M: Memory> Core<M> {
    /// Adds a bucket's live keys of one database, as they are at one moment.
    fn collect(&self, scope: Scope<'_, M>, bucket: usize, db: u8, keys: &mut Keys) -> Result<()> {
        let start = keys.len();
        let collected = self.reading(scope, bucket, |bucket| {
            keys.truncate(start);
            bucket.collect(db, keys)
        });
        match collected {
            // The keys in there are unknown.
            Err(error) if error.is_node_lost() && scope.is_alone() => {
                keys.truncate(start);
                Ok(())
            }
            collected => collected,
        }
    }
}

impl<M: Memory> Bucket<'_, M> {
    /// Its pages one after the other, if no flush has ended what they hold of a database.
    pub fn each_page(&self, db: u8, mut f: impl FnMut(&Page<'_>)) -> Result<()> {
        if self.era(db)?.flushed > self.head().epoch() {
            return Ok(());
        }
        let mut next = Some(At::Head);
        for _ in 0..MAX_CHAIN {
            let Some(at) = next else {
                return Ok(());
            };
            next = At::next(self.look(at, |page| {
                f(page);
                page.next()
            })?);
        }
        Err(Error::Corrupt("a chain of pages does not end"))
    }

    fn collect(&self, db: u8, keys: &mut Keys) -> Result<()> {
        let now = self.core.clock.now();
        self.each_page(db, |page| keys.collect(page, db, now))
    }
}

/// Where a sweep over this node's buckets stands.
#[derive(Debug, Default)]
pub struct Sweep {
    bucket: usize,
    /// Buckets left in this round, which began with a flush or with keys that expire.
    left: usize,
    epoch: u64,
    /// This round began with a flush: what nodes keep of buckets is of no use any more.
    flushed: bool,
}

impl Sweep {
    /// Whether there are buckets that it has yet to look at.
    pub fn is_under_way(&self) -> bool {
        self.left != 0
    }
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Buckets looked at; 0 when there is nothing to sweep.
    pub looked: usize,
    /// Buckets cleaned.
    pub cleaned: usize,
}

impl<M: Memory> Core<M> {
    /// Looks at up to `budget` buckets whose memory is at this node, and cleans those that need it.
    /// Does nothing while no key expires and no flush is left to be cleaned up after.
    pub fn sweep(&self, sweep: &mut Sweep, budget: usize) -> Result<Swept> {
        let epoch = self.newest_flushes()?.epoch;
        if epoch != sweep.epoch {
            (sweep.epoch, sweep.left) = (epoch, self.map.buckets);
            sweep.flushed = true;
        }
        if sweep.left == 0 {
            // Asked once a round: the answer costs a look at every node's counters.
            if !self.anything_expires()? {
                return Ok(Swept::default());
            }
            sweep.left = self.map.buckets;
            sweep.flushed = false;
        }
        let (now, mut swept) = (self.clock.now(), Swept::default());
        while sweep.left != 0 && swept.looked < budget {
            let bucket = sweep.bucket % self.map.buckets;
            sweep.bucket = (bucket + 1) % self.map.buckets;
            sweep.left -= 1;
            let (slab, _) = self.map.place(bucket);
            if self.map.home(slab) != self.memory.id() {
                continue;
            }
            swept.looked += 1;
            // One that no node has used is as clean as can be.
            if !self.at_head(bucket, |heads, index| heads.is_known(index)) {
                continue;
            }
            let flushed = sweep.flushed;
            let due = self.reading(Scope::ALONE, bucket, |bucket| {
                let page = bucket.head();
                let expired = page.soonest() != 0 && page.soonest() <= now;
                let flushed = page.epoch() < epoch && (page.count() != 0 || page.next() != 0);
                Ok(expired || flushed)
            });
            match due {
                Ok(false) if flushed => {
                    self.writing(Scope::ALONE, bucket, |bucket| bucket.vacate())?;
                }
                Ok(false) | Err(Error::Busy(_)) => continue,
                Ok(true) => {
                    self.writing(Scope::ALONE, bucket, |bucket| bucket.clean())?;
                    swept.cleaned += 1;
                }
                Err(error) => return Err(error),
            }
            if flushed {
                self.at_head(bucket, |heads, index| heads.tell_home(index));
            }
        }
        Ok(swept)
    }

    fn at_head<R>(&self, bucket: usize, f: impl FnOnce(&M::Pages, usize) -> R) -> R {
        let (slab, index) = self.map.place(bucket);
        self.buckets.with(|slabs| f(&slabs[slab].heads, index))
    }

    /// Forgets what this node knows of buckets of which it keeps nothing, if there are so many that
    /// it is worth while to look for the others anew.
    pub fn shed(&self) -> Result<()> {
        if self.memory.idle_pages() <= self.map.buckets / IDLE {
            return Ok(());
        }
        let _alone = self.replacing.lock();
        for (number, slab) in self.buckets.now().iter().enumerate() {
            let fresh = Slab::new(&self.memory, &self.map, self.geometry.page, slab.addr)?;
            self.buckets.replace(number, fresh);
        }
        self.catch_up();
        self.memory.forget_pages();
        Ok(())
    }

    /// The thread lets go of the buckets as they were when it used some last.
    pub fn catch_up(&self) {
        self.buckets.with(|_| ());
    }

    fn anything_expires(&self) -> Result<bool> {
        if !self.memory.undisturbed() {
            return Ok(true); // looking through all buckets is what the sweep itself does
        }
        for db in 0..crate::DATABASES as u8 {
            if self.counts(Scope::ALONE, db)?.expires != 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
