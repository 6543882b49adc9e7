//! Operations on all keys: scanning, choosing, counting, and the sweep that ends what is over.
//!
//! A scan's cursor is a bucket's number, which is counted from the highest bit down: the buckets
//! that come of one by splitting follow one another. A bucket is read as it is at one moment, so a
//! key that is there from a scan's start to its end is found, and found once unless buckets are
//! merged meanwhile.

use super::bucket::{At, Bucket};
use super::core::Core;
use super::db::Db;
use super::lock::Scope;
use super::lookup::MAX_CHAIN;
use crate::error::Result;
use crate::layout::kind::Kind;
use crate::layout::page::Page;
use crate::layout::superblock::MOST_DEPTH;
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

    fn append(&mut self, more: &Keys) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&more.bytes);
        self.ends.extend(more.ends.iter().map(|end| start + end));
        self.kinds.extend_from_slice(&more.kinds);
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
        let budget = SCAN_BUCKETS.saturating_add(count.saturating_mul(SCAN_FACTOR));
        let wanted = keys.len().saturating_add(count.max(1));
        let mut cursor = cursor;
        for _ in 0..budget {
            cursor = self.core.collect(self.scope, cursor, self.number, keys)?;
            if cursor == 0 || keys.len() >= wanted {
                break;
            }
        }
        Ok(cursor)
    }

    /// A key chosen at random: first a bucket, then a key in it or after it.
    pub fn random_key(&self) -> Result<Option<Vec<u8>>> {
        let mut cursor = fastrand::u64(..) & ((1 << MOST_DEPTH) - 1);
        let mut keys = Keys::default();
        let mut ends = 0;
        // From there to the end, and from the beginning to the end.
        while ends < 2 {
            let next = self
                .core
                .collect(self.scope, cursor, self.number, &mut keys)?;
            if !keys.is_empty() {
                let chosen = fastrand::usize(..keys.len());
                return Ok(keys.iter().nth(chosen).map(<[u8]>::to_vec));
            }
            ends += usize::from(next == 0);
            cursor = next;
        }
        Ok(None)
    }
}

/// The cursor behind a bucket whose number has so many bits, 0 at the end: one more, counted from
/// the highest bit down.
fn behind(cursor: u64, depth: u8) -> u64 {
    let above = !((1 << depth) - 1);
    (cursor | above)
        .reverse_bits()
        .wrapping_add(1)
        .reverse_bits()
}

impl<M: Memory> Core<M> {
    /// Shows `f` the bucket that a cursor is at; says what it found, and which cursor is next.
    pub fn at_cursor<R>(
        &self,
        scope: Scope<'_, M>,
        cursor: u64,
        mut f: impl FnMut(&Bucket<'_, M>) -> Result<R>,
    ) -> (Result<R>, u64) {
        let found = self.reading_key(scope, cursor, |bucket| Ok((f(bucket)?, bucket.depth())));
        match found {
            Ok((found, depth)) => (Ok(found), behind(cursor, depth)),
            Err(error) => {
                let depth = self.buckets.used().depth(cursor);
                (Err(error), behind(cursor, depth))
            }
        }
    }

    /// Adds the live keys of one database in the bucket that a cursor is at, as they are at one
    /// moment. Says which cursor is next.
    fn collect(&self, scope: Scope<'_, M>, cursor: u64, db: u8, keys: &mut Keys) -> Result<u64> {
        let start = keys.len();
        let (collected, next) = self.at_cursor(scope, cursor, |bucket| {
            keys.truncate(start);
            bucket.collect(db, keys)
        });
        match collected {
            // The keys in there are unknown.
            Err(error) if error.is_node_lost() && scope.is_alone() => {
                keys.truncate(start);
                Ok(next)
            }
            collected => collected.map(|()| next),
        }
    }
}

impl<M: Memory> Bucket<'_, M> {
    /// The cursor behind it.
    pub fn cursor_behind(&self, cursor: u64) -> u64 {
        behind(cursor, self.depth())
    }

    /// [`Self::all_pages`], if no flush has ended what they hold of a database.
    pub fn each_page<R>(
        &self,
        db: u8,
        f: impl FnMut(&Page<'_>) -> R,
        take: impl FnMut(R),
    ) -> Result<()> {
        match self.era(db)?.flushed > self.head().epoch() {
            true => Ok(()),
            false => self.all_pages(f, take),
        }
    }

    /// Shows `f` its pages one after the other; `take` gets what it says of each. `f` may see a
    /// page several times, and its last word counts.
    pub fn all_pages<R>(
        &self,
        mut f: impl FnMut(&Page<'_>) -> R,
        mut take: impl FnMut(R),
    ) -> Result<()> {
        let mut next = Some(At::Head);
        for _ in 0..MAX_CHAIN {
            let Some(at) = next else {
                return Ok(());
            };
            let (said, further) = self.look(at, |page| (f(page), page.next()))?;
            take(said);
            next = At::next(further);
        }
        Err(Error::Corrupt("a chain of pages does not end"))
    }

    fn collect(&self, db: u8, keys: &mut Keys) -> Result<()> {
        let now = self.core.clock.now();
        let of_page = |page: &Page<'_>| {
            let mut some = Keys::default();
            some.collect(page, db, now);
            some
        };
        self.each_page(db, of_page, |some| keys.append(&some))
    }
}

/// Between two rounds of a sweep, at least; twice as long after each that could not clean what is
/// due, because its memory is away.
const REST: u64 = 100;
/// Between two rounds at most, in milliseconds: a key whose node died before it had counted it
/// takes memory for so long.
const LONGEST_REST: u64 = 600_000;

/// Where a sweep over this node's buckets stands.
///
/// It goes in rounds through all of them, and rests between: until the next key that it has seen
/// expires, or a node counts that one expires before those of its bucket, or a flush comes.
/// So what it costs ends, whatever has died: what cannot be cleaned is looked at more and more
/// rarely.
#[derive(Debug, Default)]
pub struct Sweep {
    bucket: usize,
    /// The slab that it is in, if it is this node's.
    slab: Option<usize>,
    /// Buckets left in this round, which began with a flush or with keys that expire.
    left: usize,
    epoch: u64,
    /// This round began with a flush: what nodes keep of buckets is of no use any more.
    flushed: bool,
    /// Buckets cleaned in this round; none: there is no round.
    cleaned: Option<usize>,
    /// The earliest moment at which there is more to clean, as this round has found.
    soonest: Option<u64>,
    /// How often nodes had counted, when it began, that a bucket's first expiry came nearer.
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

    /// The next bucket.
    fn next(&mut self) -> usize {
        let bucket = self.bucket;
        self.skip(1);
        bucket
    }

    fn skip(&mut self, buckets: usize) {
        let buckets = buckets.min(self.left);
        self.left -= buckets;
        self.bucket += buckets;
    }

    /// Begins a round of so many buckets, or goes on with them all from the one it was at.
    fn begin(&mut self, buckets: usize, counted: u64, flushed: bool) {
        (self.left, self.counted, self.flushed) = (buckets, counted, flushed);
        (self.bucket, self.slab) = (0, None);
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
            let (_, counted) = self.counted_expiries()?;
            sweep.epoch = epoch;
            sweep.begin(self.numbers()?, counted, true);
        }
        if sweep.left == 0 {
            sweep.rest(now);
            // Asked once a round: the answer costs a look at every node's counters.
            let (any, counted) = self.counted_expiries()?;
            let changed = counted != sweep.counted;
            // Where a node has died, what it had counted may have died with it.
            let nothing = !any && self.memory.undisturbed();
            if nothing || !changed && now < sweep.next {
                return Ok(Swept::default());
            }
            sweep.begin(self.numbers()?, counted, false);
        }
        let mut swept = Swept::default();
        while sweep.left != 0 && swept.looked < budget {
            let bucket = sweep.next();
            let (slab, index) = self.map.place(bucket);
            if index == 0 || sweep.slab.is_none() {
                let mine = self.memory.looks_after(self.home_now(slab)?);
                sweep.slab = match mine {
                    true => self.known_slab(slab)?.map(|_| slab),
                    false => None,
                };
            }
            if sweep.slab.is_none() {
                sweep.skip(self.map.slab_buckets(slab) - index - 1);
                continue;
            }
            swept.looked += 1;
            // One that no node has used is as clean as can be.
            if self.at_head(bucket, |heads, index| heads.is_known(index)) != Some(true) {
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
        let mut empty = false;
        if due || flushed {
            (left, empty) = self.writing(Scope::ALONE, bucket, |bucket| {
                match due {
                    true => bucket.clean()?,
                    false => bucket.vacate()?,
                }
                let (head, root_depth) = (bucket.head(), self.map.root_depth());
                let empty = bucket.is_certain() && self.growth.is_empty(&head, root_depth);
                Ok((head.soonest(), empty))
            })?;
        }
        if empty {
            self.balance(bucket as u64);
        }
        if flushed {
            self.at_head(bucket, |heads, index| heads.tell_home(index));
        }
        Ok((due, left))
    }

    /// Whether any key expires, and how often a bucket's first expiry has come nearer, both as all
    /// nodes have counted it. Wrong by what has died with nodes.
    fn counted_expiries(&self) -> Result<(bool, u64)> {
        let flushes = self.newest_flushes()?;
        let (mut any, mut nearer) = (false, 0u64);
        for (db, flushed) in flushes.flushed.iter().take(DATABASES).enumerate() {
            let counts = self.counted(db as u8, *flushed)?;
            any |= counts.expires != 0;
            nearer = nearer.wrapping_add(u64::from(counts.nearer));
        }
        Ok((any, nearer))
    }

    fn at_head<R>(&self, bucket: usize, f: impl FnOnce(&M::Pages, usize) -> R) -> Option<R> {
        let (slab, index) = self.map.place(bucket);
        let slabs = self.buckets.now();
        let slab = slabs.get(slab)?;
        Some(f(&slab.heads, index))
    }

    /// Numbers that buckets may have, from 0 on.
    pub(super) fn numbers(&self) -> Result<usize> {
        Ok(1 << self.deepest()?)
    }

    /// Forgets what this node knows of buckets of which it keeps nothing, if there are so many that
    /// it is worth while to look for the others anew.
    pub fn shed(&self) -> Result<()> {
        let known = self.slab_buckets(|_| true);
        if self.memory.idle_pages() <= known / IDLE {
            return Ok(());
        }
        let _alone = self.alone();
        for (number, slab) in self.buckets.now().iter() {
            self.attach(number, slab.entry)?;
        }
        self.catch_up();
        self.memory.forget_pages();
        Ok(())
    }

    /// The thread lets go of the buckets as they were when it used some last.
    pub fn catch_up(&self) {
        drop(self.buckets.used());
    }
}
