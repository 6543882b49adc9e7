//! Being inside of buckets' locks: for one operation, or for several that are one step together.
//!
//! A bucket's lock has readers inside or one writer, and its head page comes with it. Whoever is
//! inside of the locks of all the buckets that it touches is alone with them, or with readers, and
//! its effect is one step for all others. Buckets are entered in rising order, so
//! nobody waits in a circle, and by nobody twice: what is done on behalf of a holder finds the lock
//! in the [`Scope`].
//!
//! Which bucket a key is in is a guess until one is inside. Whoever finds that it was wrong leaves,
//! and begins anew with a better one (`locate.rs`).

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bucket::{Bucket, Inside, Standing};
use super::buckets::{Slab, Slabs};
use super::bus::News;
use super::core::Core;
use crate::error::{Error, Result};
use crate::layout::superblock::Flushes;
use crate::memory::{Access, Memory, MemoryError, Pages};

/// The longest of the pauses between attempts that a death has made futile, which double.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
const FIRST_PAUSE: Duration = Duration::from_micros(10);
/// As often does a thread go on to the next bucket at once: a bucket is split no more often.
const HOPS: u8 = 32;

/// How long a wait for a lock lasts before the lock's home is asked whether it is there. Whoever
/// waits longer goes to the end of the queue.
const ASK: Duration = Duration::from_millis(500);

/// Of the buckets that a transaction has filled or emptied, so many are split or merged after it.
const MOST_UNBALANCED: usize = 1024;

const UNPLANNED: Error = Error::BadOption("the transaction was not planned to touch this key");

type Entering<M> = std::result::Result<Option<Inside<M>>, MemoryError>;

/// Attempts that come to an end.
pub(crate) struct Patience {
    limit: Duration,
    since: Option<Instant>,
    pause: Duration,
    hops: u8,
}

impl Patience {
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            since: None,
            pause: FIRST_PAUSE,
            hops: HOPS,
        }
    }

    /// The bucket of a key has turned out to be another one. There is nothing to wait for, but for
    /// the end of this if it does not end.
    pub fn follow(&mut self) -> Result<()> {
        match self.hops {
            0 => self.pause(),
            _ => {
                self.hops -= 1;
                Ok(())
            }
        }
    }

    /// Waits a little, longer each time.
    pub fn pause(&mut self) -> Result<()> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.limit {
            return Err(Error::Busy(self.limit));
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// Buckets held. Dropping it leaves them.
pub(crate) struct Held<'a, M: Memory> {
    pub core: &'a Core<M>,
    slabs: Arc<Slabs<M>>,
    pub access: Access,
    buckets: Vec<usize>,
    /// Of each bucket; nothing while a [`Bucket`] has it.
    inside: Vec<Cell<Option<Inside<M>>>>,
    /// The flush count that the holder uses, so that no other flush falls into its middle.
    pub pinned: Cell<Flushes>,
    /// Whether the holder may flush.
    pub may_flush: bool,
    /// What is told when the buckets have been left.
    pub news: RefCell<Vec<News>>,
    /// Whether all buckets that there are are held.
    pub whole: bool,
    /// Hashes of keys whose buckets are to be split or merged once they are let go.
    unbalanced: RefCell<Vec<u64>>,
}

/// On whose behalf an operation runs: for itself, or as a part of something that holds its buckets.
pub(crate) struct Scope<'a, M: Memory>(pub Option<&'a Held<'a, M>>);

impl<M: Memory> Clone for Scope<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Memory> Copy for Scope<'_, M> {}

impl<M: Memory> Scope<'_, M> {
    /// An operation of its own.
    pub const ALONE: Scope<'static, M> = Scope(None);

    pub fn is_alone(&self) -> bool {
        self.0.is_none()
    }
}

impl<M: Memory> Held<'_, M> {
    /// The buckets, in rising order.
    pub fn buckets(&self) -> &[usize] {
        &self.buckets
    }

    fn bucket(&self, number: usize, access: Access) -> Result<Bucket<'_, M>> {
        let enough = access == Access::Read || self.access == Access::Write;
        let place = self.buckets.binary_search(&number).ok();
        let Some(place) = place.filter(|_| enough) else {
            return Err(UNPLANNED);
        };
        self.bucket_at(place)
    }

    fn bucket_at(&self, place: usize) -> Result<Bucket<'_, M>> {
        let number = self.buckets[place];
        let (slab, _) = self.core.map.place(number);
        let slab = self.slabs.get(slab).ok_or(UNPLANNED)?;
        let inside = self.inside[place].take();
        let inside = inside.ok_or(Error::BadOption("the bucket is in use"))?;
        Ok(Bucket::held(self, (number, place), slab, inside))
    }

    /// What a bucket is to a key; `None`: it is not held.
    fn standing(&self, number: usize, hash: u64) -> Result<Option<Standing>> {
        match self.buckets.binary_search(&number) {
            Ok(place) => Ok(Some(self.bucket_at(place)?.standing(hash))),
            Err(_) => Ok(None),
        }
    }

    /// The bucket of a key, which is held.
    pub fn owner(&self, hash: u64) -> Result<usize> {
        let guess = self.slabs.guess(hash);
        if self.standing(guess, hash)? == Some(Standing::Owner) {
            return Ok(guess);
        }
        let mut number = hash as usize & (self.core.map.roots - 1);
        loop {
            match self.standing(number, hash)? {
                Some(Standing::Owner) => return Ok(number),
                Some(Standing::Split(depth)) => number = next_on_path(number, depth, hash),
                _ => return Err(UNPLANNED),
            }
        }
    }

    /// A bucket that is not held, on the way to the one of a key, if it is known.
    pub fn missing(&self, hash: u64) -> Result<Option<usize>> {
        let mut number = self.slabs.guess(hash);
        loop {
            match self.standing(number, hash)? {
                None => return Ok(Some(number)),
                Some(Standing::Split(depth)) => number = next_on_path(number, depth, hash),
                Some(_) => return Ok(None),
            }
        }
    }

    /// Those that came of held ones when their numbers had so many bits; or which bucket does not
    /// say whether it was split.
    pub fn children(&self, depth: u8) -> Result<std::result::Result<Vec<usize>, usize>> {
        let mut children = Vec::new();
        for (place, number) in self.buckets.iter().copied().enumerate() {
            if number >> depth != 0 {
                break;
            }
            let bucket = self.bucket_at(place)?;
            if !bucket.is_certain() {
                return Ok(Err(number));
            }
            if bucket.depth() > depth {
                children.push(number + (1 << depth));
            }
        }
        Ok(Ok(children))
    }

    /// The bucket of a key is to be split or merged when it is let go.
    pub fn note_unbalanced(&self, hash: u64) {
        let mut noted = self.unbalanced.borrow_mut();
        if noted.len() < MOST_UNBALANCED {
            noted.push(hash);
        }
    }

    /// A bucket is not in use any more.
    pub fn give_back(&self, place: usize, inside: Option<Inside<M>>) {
        self.inside[place].set(inside);
    }
}

impl<M: Memory> Drop for Held<'_, M> {
    fn drop(&mut self) {
        // What a bucket has got from another one, of a lower number, is in safety before it is gone
        // from there.
        for (bucket, inside) in self.buckets.iter().zip(&self.inside).rev() {
            let (slab, _) = self.core.map.place(*bucket);
            if let (Some(inside), Some(slab)) = (inside.take(), self.slabs.get(slab)) {
                slab.heads.leave(inside);
            }
        }
        self.core.tell_all(&self.news.take());
        for hash in self.unbalanced.take() {
            self.core.balance(hash);
        }
    }
}

/// The bucket below `number`, which was split until it had so many bits, on the way to the bucket
/// of this hash.
pub(super) fn next_on_path(number: usize, depth: u8, hash: u64) -> usize {
    let other = (hash as usize ^ number) & ((1 << depth) - 1);
    let bits = other.trailing_zeros() + 1;
    hash as usize & ((1usize << bits) - 1)
}

/// What has become of an operation on one bucket.
enum Tried<R> {
    Done(Result<R>),
    /// The bucket's lock could not be entered.
    Barred(MemoryError),
    /// A reader found it outdated.
    Outdated,
    /// This node has not looked the slab up.
    Unknown,
    /// The key may be elsewhere.
    Elsewhere(Standing),
}

impl<R> Tried<R> {
    /// Whether the bucket was another one, or its place was not known.
    fn is_a_move(&self) -> bool {
        matches!(self, Tried::Unknown | Tried::Elsewhere(_))
    }
}

impl<M: Memory> Core<M> {
    pub fn patience(&self) -> Patience {
        Patience::new(self.patience)
    }

    fn busy(&self) -> Error {
        Error::Busy(self.patience)
    }

    /// Runs `f` inside of a bucket's lock to read. Whatever fails and can be mended is,
    /// and `f` runs again.
    pub fn reading<R>(
        &self,
        scope: Scope<'_, M>,
        bucket: usize,
        mut f: impl FnMut(&Bucket<'_, M>) -> Result<R>,
    ) -> Result<R> {
        if let Some(held) = scope.0 {
            return self.reading_held(held, bucket, &mut f);
        }
        let mut patience = self.patience();
        loop {
            let look = &mut |bucket: &mut Bucket<'_, M>| f(bucket);
            let tried = self
                .buckets
                .with(|slabs| self.try_inside(slabs, bucket, None, Access::Read, look));
            let moved = tried.is_a_move();
            if let Some(done) = self.after_reading(tried, bucket, bucket as u64)? {
                return Ok(done);
            }
            match moved {
                true => patience.follow()?,
                false => patience.pause()?,
            }
        }
    }

    /// The same in the bucket of a key.
    #[inline]
    pub fn reading_key<R>(
        &self,
        scope: Scope<'_, M>,
        hash: u64,
        mut f: impl FnMut(&Bucket<'_, M>) -> Result<R>,
    ) -> Result<R> {
        if let Some(held) = scope.0 {
            return self.reading_held(held, held.owner(hash)?, &mut f);
        }
        let mut patience = self.patience();
        loop {
            let look = &mut |bucket: &mut Bucket<'_, M>| f(bucket);
            let (tried, bucket) = self.buckets.with(|slabs| {
                let bucket = slabs.guess(hash);
                let tried = self.try_inside(slabs, bucket, Some(hash), Access::Read, look);
                (tried, bucket)
            });
            if let Tried::Done(Ok(done)) = tried {
                return Ok(done);
            }
            let moved = tried.is_a_move();
            if let Some(done) = self.after_reading(tried, bucket, hash)? {
                return Ok(done);
            }
            match moved {
                true => patience.follow()?,
                false => patience.pause()?,
            }
        }
    }

    /// What a reader does about what has become of its attempt, before the next one.
    #[cold]
    fn after_reading<R>(&self, tried: Tried<R>, bucket: usize, hash: u64) -> Result<Option<R>> {
        let error = match tried {
            Tried::Done(Ok(done)) => return Ok(Some(done)),
            Tried::Done(Err(error)) => error,
            Tried::Barred(error) => error.into(),
            Tried::Outdated => {
                self.writing(Scope::ALONE, bucket, |_| Ok(()))?;
                return Ok(None);
            }
            Tried::Unknown => {
                self.look_up(bucket, hash)?;
                return Ok(None);
            }
            Tried::Elsewhere(standing) => {
                self.learn(bucket, standing, hash)?;
                return Ok(None);
            }
        };
        self.recover(bucket, error)?;
        Ok(None)
    }

    #[cold]
    fn reading_held<R>(
        &self,
        held: &Held<'_, M>,
        number: usize,
        f: &mut impl FnMut(&Bucket<'_, M>) -> Result<R>,
    ) -> Result<R> {
        let mut bucket = held.bucket(number, Access::Read)?;
        let mut patience = self.patience();
        loop {
            match f(&bucket) {
                Err(error) if held.access == Access::Write => bucket.recover(error)?,
                done => return done,
            }
            patience.pause()?;
        }
    }

    /// Runs `f`, once, inside of a bucket's lock to write.
    pub fn writing<R>(
        &self,
        scope: Scope<'_, M>,
        bucket: usize,
        f: impl FnOnce(&mut Bucket<'_, M>) -> Result<R>,
    ) -> Result<R> {
        if let Some(held) = scope.0 {
            return f(&mut held.bucket(bucket, Access::Write)?);
        }
        let mut patience = self.patience();
        let mut f = Some(f);
        loop {
            let mut once = |bucket: &mut Bucket<'_, M>| match f.take() {
                Some(f) => f(bucket),
                None => Err(self.busy()),
            };
            let tried = self
                .buckets
                .with(|slabs| self.try_inside(slabs, bucket, None, Access::Write, &mut once));
            let moved = tried.is_a_move();
            if let Some(done) = self.after_writing(tried, bucket, bucket as u64)? {
                return Ok(done);
            }
            match moved {
                true => patience.follow()?,
                false => patience.pause()?,
            }
        }
    }

    /// The same in the bucket of a key.
    #[inline]
    pub fn writing_key<R>(
        &self,
        scope: Scope<'_, M>,
        hash: u64,
        f: impl FnOnce(&mut Bucket<'_, M>) -> Result<R>,
    ) -> Result<R> {
        if let Some(held) = scope.0 {
            return f(&mut held.bucket(held.owner(hash)?, Access::Write)?);
        }
        let mut patience = self.patience();
        let mut f = Some(f);
        loop {
            let mut once = |bucket: &mut Bucket<'_, M>| match f.take() {
                Some(f) => f(bucket),
                None => Err(self.busy()),
            };
            let (tried, bucket) = self.buckets.with(|slabs| {
                let bucket = slabs.guess(hash);
                let tried = self.try_inside(slabs, bucket, Some(hash), Access::Write, &mut once);
                (tried, bucket)
            });
            if let Tried::Done(done) = tried {
                return done;
            }
            let moved = tried.is_a_move();
            if let Some(done) = self.after_writing(tried, bucket, hash)? {
                return Ok(done);
            }
            match moved {
                true => patience.follow()?,
                false => patience.pause()?,
            }
        }
    }

    /// What a writer does about what has become of its attempt, before the next one.
    #[cold]
    fn after_writing<R>(&self, tried: Tried<R>, bucket: usize, hash: u64) -> Result<Option<R>> {
        match tried {
            Tried::Done(done) => return done.map(Some),
            Tried::Barred(error) => self.recover(bucket, error.into())?,
            Tried::Outdated => {}
            Tried::Unknown => self.look_up(bucket, hash)?,
            Tried::Elsewhere(standing) => self.learn(bucket, standing, hash)?,
        }
        Ok(None)
    }

    /// Enters a bucket; of a key, if it is the one that has it.
    #[inline]
    fn try_inside<R>(
        &self,
        slabs: &Slabs<M>,
        number: usize,
        hash: Option<u64>,
        access: Access,
        f: &mut impl FnMut(&mut Bucket<'_, M>) -> Result<R>,
    ) -> Tried<R> {
        let (slab, index) = self.map.place(number);
        let Some(slab) = slabs.get(slab) else {
            return Tried::Unknown;
        };
        let inside = match self.enter(slab, index, access) {
            Ok(Some(inside)) => inside,
            Ok(None) => return Tried::Done(Err(self.busy())),
            Err(error) => return Tried::Barred(error),
        };
        let outdated = slab.heads.is_outdated(&inside);
        let mut bucket = Bucket::entered(self, number, slab, inside);
        if outdated {
            if access == Access::Read {
                return Tried::Outdated;
            }
            if let Err(error) = bucket.begin_anew() {
                return Tried::Done(Err(error));
            }
        }
        if let Some(hash) = hash {
            match bucket.standing(hash) {
                Standing::Owner => {}
                standing => return Tried::Elsewhere(standing),
            }
        }
        Tried::Done(f(&mut bucket))
    }

    /// Enters a bucket's lock.
    #[inline]
    fn enter(&self, slab: &Slab<M>, index: usize, access: Access) -> Entering<M> {
        match slab.heads.enter(index, access, ASK.min(self.patience))? {
            None => self.enter_slowly(slab, index, access),
            inside => Ok(inside),
        }
    }

    /// In a rack without membership no member declares a lock's home dead.
    /// So those who wait ask it.
    #[cold]
    fn enter_slowly(&self, slab: &Slab<M>, index: usize, access: Access) -> Entering<M> {
        let mut left = self.patience.saturating_sub(ASK);
        while !left.is_zero() {
            self.memory.accept(slab.addr())?;
            match slab.heads.enter(index, access, ASK.min(left))? {
                None => left = left.saturating_sub(ASK),
                inside => return Ok(inside),
            }
        }
        Ok(None)
    }

    /// Enters the locks of the buckets of keys, or none.
    pub fn hold(&self, hashes: &[u64], access: Access) -> Result<Held<'_, M>> {
        let mut patience = self.patience();
        loop {
            let guess = |slabs: &Slabs<M>| hashes.iter().map(|hash| slabs.guess(*hash)).collect();
            let held = self.hold_numbers(guess, access)?;
            let elsewhere = |hash: &&u64| held.owner(**hash).is_err();
            let Some(hash) = hashes.iter().find(elsewhere).copied() else {
                return Ok(held);
            };
            // Another node has split its bucket, or merged it.
            drop(held);
            self.locate(hash)?;
            patience.follow()?;
        }
    }

    /// Enters the locks of all these buckets, or of none.
    pub fn hold_numbers(
        &self,
        buckets: impl Fn(&Slabs<M>) -> Vec<usize>,
        access: Access,
    ) -> Result<Held<'_, M>> {
        let mut patience = self.patience();
        loop {
            let mut held = self.holding(access);
            let mut buckets = buckets(&held.slabs);
            buckets.sort_unstable();
            buckets.dedup();
            let tried = self.enter_all(&mut held, &buckets)?;
            if let Some(held) = self.after_entering(held, tried, &mut patience)? {
                return Ok(held);
            }
        }
    }

    /// Enters the locks of all buckets that there are.
    pub fn hold_all(&self, access: Access) -> Result<Held<'_, M>> {
        let mut patience = self.patience();
        loop {
            let mut held = self.holding(access);
            let tried = self.enter_tree(&mut held)?;
            if let Some(held) = self.after_entering(held, tried, &mut patience)? {
                return Ok(held);
            }
        }
    }

    /// Nothing is held yet.
    fn holding(&self, access: Access) -> Held<'_, M> {
        Held {
            core: self,
            slabs: self.buckets.now(),
            access,
            buckets: Vec::new(),
            inside: Vec::new(),
            pinned: Cell::default(),
            may_flush: false,
            whole: false,
            news: RefCell::default(),
            unbalanced: RefCell::default(),
        }
    }

    /// All were entered, or what could not be is mended.
    fn after_entering<'a>(
        &'a self,
        held: Held<'a, M>,
        tried: Option<(usize, Tried<()>)>,
        patience: &mut Patience,
    ) -> Result<Option<Held<'a, M>>> {
        let Some((bucket, tried)) = tried else {
            held.pinned.set(self.newest_flushes()?);
            return Ok(Some(held));
        };
        // Repairing a bucket takes its lock to write.
        drop(held);
        let moved = tried.is_a_move();
        self.after_reading(tried, bucket, bucket as u64)?;
        match moved {
            true => patience.follow()?,
            false => patience.pause()?,
        }
        Ok(None)
    }

    /// [`Self::enter_all`] of all there are, generation by generation: what is held is not split.
    fn enter_tree(&self, held: &mut Held<'_, M>) -> Result<Option<(usize, Tried<()>)>> {
        let mut next: Vec<usize> = (0..self.map.roots).collect();
        for depth in self.map.root_depth().. {
            if let Some(failed) = self.enter_all(held, &next)? {
                return Ok(Some(failed));
            }
            next = match held.children(depth)? {
                Ok(children) => children,
                Err(number) => {
                    let unknown = Tried::Elsewhere(Standing::Unknown);
                    return Ok(Some((number, unknown)));
                }
            };
            if next.is_empty() {
                break;
            }
        }
        held.whole = true;
        Ok(None)
    }

    /// Says which bucket could not be entered and why not, or was found outdated by a reader.
    fn enter_all(
        &self,
        held: &mut Held<'_, M>,
        buckets: &[usize],
    ) -> Result<Option<(usize, Tried<()>)>> {
        for &bucket in buckets {
            let (slab, index) = self.map.place(bucket);
            let Some(slab) = held.slabs.get(slab) else {
                return Ok(Some((bucket, Tried::Unknown)));
            };
            let inside = match self.enter(slab, index, held.access) {
                Ok(Some(inside)) => inside,
                Ok(None) => return Err(self.busy()),
                Err(error) => return Ok(Some((bucket, Tried::Barred(error)))),
            };
            let outdated = slab.heads.is_outdated(&inside);
            held.buckets.push(bucket);
            held.inside.push(Cell::new(Some(inside)));
            match (outdated, held.access) {
                (false, _) => {}
                (true, Access::Read) => return Ok(Some((bucket, Tried::Outdated))),
                (true, Access::Write) => {
                    held.bucket(bucket, Access::Write)?.begin_anew()?;
                }
            }
        }
        Ok(None)
    }

    /// Enters one more bucket for a holder of others, `wait` at most, or as long as any operation
    /// waits if it is behind all that are held, for then nobody waits in a circle. `false`: it
    /// could not, or the holder goes by flushes that the bucket is past; nothing has changed.
    pub fn hold_also(&self, held: &mut Held<'_, M>, bucket: usize, wait: Duration) -> Result<bool> {
        let Err(place) = held.buckets.binary_search(&bucket) else {
            return Ok(true);
        };
        let wait = match place == held.buckets.len() {
            true => self.patience,
            false => wait.min(self.patience),
        };
        let (slab, index) = self.map.place(bucket);
        let slabs = held.slabs.clone();
        let Some(slab) = slabs.get(slab) else {
            return Ok(false);
        };
        // Trouble with a home is mended when the bucket is entered by itself.
        let Ok(Some(inside)) = slab.heads.enter(index, held.access, wait) else {
            return Ok(false);
        };
        let outdated = slab.heads.is_outdated(&inside);
        held.buckets.insert(place, bucket);
        held.inside.insert(place, Cell::new(Some(inside)));
        let flushed = self.newest_flushes()?.epoch != held.pinned.get().epoch;
        if flushed || outdated && held.access == Access::Read {
            held.buckets.remove(place);
            if let Some(inside) = held.inside.remove(place).take() {
                slab.heads.leave(inside);
            }
            return Ok(false);
        }
        if outdated {
            held.bucket(bucket, Access::Write)?.begin_anew()?;
        }
        Ok(true)
    }

    /// Enters the store's own lock: for creation and flushes.
    pub fn flush_right(&self) -> Result<Right<'_, M>> {
        Right::take(&self.right, self.patience)
    }
}

/// The right to flush, or to set a store up. Dropping it leaves the store's lock.
pub(crate) struct Right<'a, M: Memory> {
    lock: &'a M::Pages,
    /// Until this is dropped.
    inside: Option<Inside<M>>,
}

impl<'a, M: Memory> Right<'a, M> {
    /// Bytes that the lock protects: unused.
    pub const BYTES: usize = 8;

    pub fn take(lock: &'a M::Pages, patience: Duration) -> Result<Self> {
        // The next holder finds what a dead holder has left unfinished in memory, so it does not
        // matter whether the lock's page is outdated.
        match lock.enter(0, Access::Write, patience)? {
            None => Err(Error::Busy(patience)),
            inside => Ok(Right { lock, inside }),
        }
    }
}

impl<M: Memory> Drop for Right<'_, M> {
    fn drop(&mut self) {
        if let Some(inside) = self.inside.take() {
            self.lock.leave(inside);
        }
    }
}
