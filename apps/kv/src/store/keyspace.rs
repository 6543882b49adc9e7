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
use crate::error::Result;
use crate::layout::kind::Kind;
use crate::layout::page::Page;
use crate::memory::{Memory, Pages};
use crate::{DATABASES, Error};

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
    kinds: Vec<Kind>,
}

impl Keys {
    /// The keys.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.bytes[start..*end])
    }

    /// The keys, and what each holds.
    pub fn with_kinds(&self) -> impl Iterator<Item = (&[u8], Kind)> {
        self.iter().zip(self.kinds.iter().copied())
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
        self.kinds.truncate(len);
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
            self.kinds.push(record.kind);
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

/// Between two rounds of a sweep, at least; twice as long after each that could not clean what is
/// due, because its memory is away.
const REST: u64 = 100;
/// Between two rounds at most, in milliseconds: a key whose expiry has come nearer meanwhile takes
/// memory for so long.
const LONGEST_REST: u64 = 600_000;

/// Where a sweep over this node's buckets stands.
///
/// It goes in rounds through all of them, and rests between: until the next key that it has seen
/// expires, or a node counts other keys that expire, or a flush comes. So what it costs ends,
/// whatever has died: what cannot be cleaned is looked at more and more rarely.
#[derive(Debug, Default)]
pub struct Sweep {
    bucket: usize,
    /// Buckets left in this round, which began with a flush or with keys that expire.
    left: usize,
    epoch: u64,
    /// This round began with a flush: what nodes keep of buckets is of no use any more.
    flushed: bool,
    /// Buckets cleaned in this round; none: there is no round.
    cleaned: Option<usize>,
    /// The earliest moment at which there is more to clean, as this round has found.
    soonest: Option<u64>,
    /// What nodes counted of keys that expire when it began.
    counted: u64,
    rest: u64,
    /// Nothing begins before, unless something is counted or flushed.
    next: u64,
}
impl Sweep {
    /// Whether there are buckets that it has yet to look at.
    pub fn is_under_way(&self) -> bool {
        self.left != 0
    }

    /// There is something to clean in a bucket at this moment, or later.
    fn due(&mut self, at: u64) {
        self.soonest = Some(self.soonest.map_or(at, |soonest| soonest.min(at)));
    }

    fn begin(&mut self, buckets: usize, counted: u64, flushed: bool) {
        (self.left, self.counted, self.flushed) = (buckets, counted, flushed);
        (self.cleaned, self.soonest) = (Some(0), None);
    }

    /// A round is over: says when the next one begins by itself.
    fn rest(&mut self, now: u64) {
        let Some(cleaned) = self.cleaned.take() else {
            return;
        };
        self.rest = match self.soonest {
            Some(at) if at <= now && cleaned == 0 => (2 * self.rest).clamp(REST, LONGEST_REST),
            _ => REST,
        };
        let soonest = self.soonest.unwrap_or(u64::MAX);
        let last = now.saturating_add(LONGEST_REST);
        self.next = soonest.clamp(now.saturating_add(self.rest), last);
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
        let now = self.clock.now();
        if epoch != sweep.epoch {
            let counted = self.counted_expiries()?;
            sweep.epoch = epoch;
            sweep.begin(self.map.buckets, counted, true);
        }
        if sweep.left == 0 {
            sweep.rest(now);
            // Asked once a round: the answer costs a look at every node's counters.
            let counted = self.counted_expiries()?;
            let changed = counted != sweep.counted;
            // Where a node has died, what it had counted may have died with it.
            let nothing = counted == 0 && self.memory.undisturbed();
            if nothing || !changed && now < sweep.next {
                return Ok(Swept::default());
            }
            sweep.begin(self.map.buckets, counted, false);
        }
        let mut swept = Swept::default();
        while sweep.left != 0 && swept.looked < budget {
            let bucket = sweep.bucket % self.map.buckets;
            sweep.bucket = (bucket + 1) % self.map.buckets;
            sweep.left -= 1;
            let (slab, _) = self.map.place(bucket);
            if !self.memory.looks_after(self.map.home(slab)) {
                continue;
            }
            swept.looked += 1;
            // One that no node has used is as clean as can be.
            if !self.at_head(bucket, |heads, index| heads.is_known(index)) {
                continue;
            }
            match self.sweep_bucket(bucket, epoch, sweep.flushed) {
                Ok((cleaned, soonest)) => {
                    swept.cleaned += usize::from(cleaned);
                    sweep.cleaned = sweep.cleaned.map(|all| all + usize::from(cleaned));
                    let more = soonest != 0;
                    more.then(|| sweep.due(soonest));
                }
                Err(error) => {
                    sweep.due(now);
                    if !matches!(error, Error::Busy(_)) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(swept)
    }

    /// Cleans a bucket if it needs that: whether it did, and when its next key expires, or 0.
    fn sweep_bucket(&self, bucket: usize, epoch: u64, flushed: bool) -> Result<(bool, u64)> {
        let now = self.clock.now();
        let (due, soonest) = self.reading(Scope::ALONE, bucket, |bucket| {
            let page = bucket.head();
            let expired = page.soonest() != 0 && page.soonest() <= now;
            let flushed = page.epoch() < epoch && (page.count() != 0 || page.next() != 0);
            Ok((expired || flushed, page.soonest()))
        })?;
        let mut left = soonest;
        if due {
            left = self.writing(Scope::ALONE, bucket, |bucket| {
                bucket.clean()?;
                Ok(bucket.head().soonest())
            })?;
        } else if flushed {
            self.writing(Scope::ALONE, bucket, |bucket| bucket.vacate())?;
        }
        if flushed {
            self.at_head(bucket, |heads, index| heads.tell_home(index));
        }
        Ok((due, left))
    }

    /// What all nodes have counted of keys that expire: another number when there are others, and 0
    /// where there is none. Wrong by what has died with nodes.
    fn counted_expiries(&self) -> Result<u64> {
        let flushes = self.newest_flushes()?;
        let mut sum = 0u64;
        for (db, flushed) in flushes.flushed.iter().take(DATABASES).enumerate() {
            let expires = self.counted(db as u8, *flushed)?.expires;
            // By database, so that a key that moves between two is seen.
            sum = sum.wrapping_add(u64::from(expires).wrapping_mul(2 * db as u64 + 1));
        }
        Ok(sum)
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
}
