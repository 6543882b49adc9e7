//! Being inside of buckets' locks: for one operation, or for several that are one step together.
//!
//! A bucket's lock has readers inside or one writer, and its head page comes with it. Whoever is
//! inside of the locks of all the buckets that it touches is alone with them, or with readers, and
//! its effect is one step for all others. Buckets are entered in rising order, so
//! nobody waits in a circle, and by nobody twice: what is done on behalf of a holder finds the lock
//! in the [`Scope`].

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bucket::{Bucket, Inside};
use super::buckets::{Slab, Slabs};
use super::bus::News;
use super::core::Core;
use crate::error::{Error, Result};
use crate::layout::superblock::Flushes;
use crate::memory::{Access, Memory, MemoryError, Pages};

/// The longest of the pauses between attempts that a death has made futile, which double.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
const FIRST_PAUSE: Duration = Duration::from_micros(10);

/// How long a wait for a lock lasts before the lock's home is asked whether it is there. Whoever
/// waits longer goes to the end of the queue.
const ASK: Duration = Duration::from_millis(500);

type Entering<M> = std::result::Result<Option<Inside<M>>, MemoryError>;

/// Attempts that come to an end.
pub(crate) struct Patience {
    limit: Duration,
    since: Option<Instant>,
    pause: Duration,
}

impl Patience {
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            since: None,
            pause: FIRST_PAUSE,
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
    access: Access,
    buckets: Vec<usize>,
    /// Of each bucket; nothing while a [`Bucket`] has it.
    inside: Vec<Cell<Option<Inside<M>>>>,
    /// The flush count that the holder uses, so that no other flush falls into its middle.
    pub pinned: Cell<Flushes>,
    /// Whether the holder may flush.
    pub may_flush: bool,
    /// What is told when the buckets have been left.
    pub news: RefCell<Vec<News>>,
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
            return Err(Error::BadOption(
                "the transaction was not planned to touch this key",
            ));
        };
        let inside = self.inside[place].take();
        let inside = inside.ok_or(Error::BadOption("the bucket is in use"))?;
        let (slab, _) = self.core.map.place(number);
        Ok(Bucket::held(
            self,
            (number, place),
            &self.slabs[slab],
            inside,
        ))
    }

    /// A bucket is not in use any more.
    pub fn give_back(&self, place: usize, inside: Option<Inside<M>>) {
        self.inside[place].set(inside);
    }
}

impl<M: Memory> Drop for Held<'_, M> {
    fn drop(&mut self) {
        for (bucket, inside) in self.buckets.iter().zip(&self.inside) {
            let (slab, _) = self.core.map.place(*bucket);
            if let Some(inside) = inside.take() {
                self.slabs[slab].heads.leave(inside);
            }
        }
        self.core.tell_all(&self.news.take());
    }
}

/// What has become of an operation on one bucket.
enum Tried<R> {
    Done(Result<R>),
    /// The bucket's lock could not be entered.
    Barred(MemoryError),
    /// A reader found it outdated.
    Outdated,
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
    #[inline]
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
            let error = match self.try_inside(bucket, Access::Read, look) {
                Tried::Done(Ok(done)) => return Ok(done),
                Tried::Done(Err(error)) => error,
                Tried::Barred(error) => error.into(),
                Tried::Outdated => {
                    self.writing(Scope::ALONE, bucket, |_| Ok(()))?;
                    continue;
                }
            };
            self.recover(bucket, error)?;
            patience.pause()?;
        }
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
    #[inline]
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
            match self.try_inside(bucket, Access::Write, &mut once) {
                Tried::Done(done) => return done,
                Tried::Barred(error) => self.recover(bucket, error.into())?,
                Tried::Outdated => {}
            }
            patience.pause()?;
        }
    }

    #[inline]
    fn try_inside<R>(
        &self,
        number: usize,
        access: Access,
        f: &mut impl FnMut(&mut Bucket<'_, M>) -> Result<R>,
    ) -> Tried<R> {
        let (slab, index) = self.map.place(number);
        self.buckets.with(|slabs| {
            let slab = &slabs[slab];
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
            Tried::Done(f(&mut bucket))
        })
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
            self.memory.accept(slab.addr)?;
            match slab.heads.enter(index, access, ASK.min(left))? {
                None => left = left.saturating_sub(ASK),
                inside => return Ok(inside),
            }
        }
        Ok(None)
    }

    /// Enters the locks of all `buckets`, or of none.
    pub fn hold(&self, mut buckets: Vec<usize>, access: Access) -> Result<Held<'_, M>> {
        buckets.sort_unstable();
        buckets.dedup();
        let mut patience = self.patience();
        loop {
            let mut held = Held {
                core: self,
                slabs: self.buckets.now(),
                access,
                buckets: Vec::with_capacity(buckets.len()),
                inside: Vec::with_capacity(buckets.len()),
                pinned: Cell::default(),
                may_flush: false,
                news: RefCell::default(),
            };
            match self.enter_all(&mut held, &buckets)? {
                None => {
                    held.pinned.set(self.newest_flushes()?);
                    return Ok(held);
                }
                // Repairing a bucket takes its lock to write.
                Some((bucket, error)) => {
                    drop(held);
                    match error {
                        Some(error) => self.recover(bucket, error.into())?,
                        None => self.writing(Scope::ALONE, bucket, |_| Ok(()))?,
                    }
                }
            }
            patience.pause()?;
        }
    }

    /// Says which bucket could not be entered and why not, or was found outdated by a reader.
    fn enter_all(
        &self,
        held: &mut Held<'_, M>,
        buckets: &[usize],
    ) -> Result<Option<(usize, Option<MemoryError>)>> {
        for &bucket in buckets {
            let (slab, index) = self.map.place(bucket);
            let inside = match self.enter(&held.slabs[slab], index, held.access) {
                Ok(Some(inside)) => inside,
                Ok(None) => return Err(self.busy()),
                Err(error) => return Ok(Some((bucket, Some(error)))),
            };
            let outdated = held.slabs[slab].heads.is_outdated(&inside);
            held.buckets.push(bucket);
            held.inside.push(Cell::new(Some(inside)));
            match (outdated, held.access) {
                (false, _) => {}
                (true, Access::Read) => return Ok(Some((bucket, None))),
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
        // Trouble with a home is mended when the bucket is entered by itself.
        let Ok(Some(inside)) = held.slabs[slab].heads.enter(index, held.access, wait) else {
            return Ok(false);
        };
        let outdated = held.slabs[slab].heads.is_outdated(&inside);
        held.buckets.insert(place, bucket);
        held.inside.insert(place, Cell::new(Some(inside)));
        let flushed = self.newest_flushes()?.epoch != held.pinned.get().epoch;
        if flushed || outdated && held.access == Access::Read {
            held.buckets.remove(place);
            if let Some(inside) = held.inside.remove(place).take() {
                held.slabs[slab].heads.leave(inside);
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
