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

use std::time::{Duration, Instant};

use super::bucket::{Bucket, Inside, Standing};
use super::buckets::{Slab, Slabs};
use super::core::Core;
use super::held::Held;
use crate::error::{Error, Result};
use crate::memory::{Access, Memory, MemoryError, Pages};

/// The longest of the pauses between attempts that a death has made futile, which double.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
const FIRST_PAUSE: Duration = Duration::from_micros(10);
/// As often does a thread go on to the next bucket at once: a bucket is split no more often.
const HOPS: u8 = 32;

/// How long a wait for a lock lasts before the lock's home is asked whether it is there. Whoever
/// waits longer goes to the end of the queue.
const ASK: Duration = Duration::from_millis(500);

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
        rackmem::waiting::sleeps();
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
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

/// What has become of an operation on one bucket.
pub(super) enum Tried<R> {
    Done(Result<R>),
    /// The bucket's lock could not be entered.
    Barred(MemoryError),
    /// A reader found it outdated.
    Outdated,
    /// This node has not looked the slab up.
    Unknown,
    /// The key may be elsewhere.
    Elsewhere(Standing),
    /// The bucket's lock is elsewhere than in the slab at this address: a node that leaves has
    /// moved it.
    Moved(u64),
}

impl<R> Tried<R> {
    /// Whether the bucket was another one, or its place was not known.
    pub fn is_a_move(&self) -> bool {
        matches!(self, Tried::Unknown | Tried::Elsewhere(_))
    }
}

impl<M: Memory> Core<M> {
    pub fn patience(&self) -> Patience {
        Patience::new(self.patience)
    }

    pub(super) fn busy(&self) -> Error {
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
    pub(super) fn after_reading<R>(
        &self,
        tried: Tried<R>,
        bucket: usize,
        hash: u64,
    ) -> Result<Option<R>> {
        let error = match tried {
            Tried::Done(Ok(done)) => return Ok(Some(done)),
            Tried::Done(Err(error)) => error,
            Tried::Barred(error) => {
                self.unbar(bucket, error)?;
                return Ok(None);
            }
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
            Tried::Moved(addr) => {
                self.look_again(self.map.place(bucket).0, addr)?;
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
            Tried::Barred(error) => self.unbar(bucket, error)?,
            Tried::Outdated => {}
            Tried::Unknown => self.look_up(bucket, hash)?,
            Tried::Elsewhere(standing) => self.learn(bucket, standing, hash)?,
            Tried::Moved(addr) => {
                self.look_again(self.map.place(bucket).0, addr)?;
            }
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
            match self.begin_or_move(&mut bucket) {
                Ok(false) => {}
                Ok(true) => return Tried::Moved(slab.addr()),
                Err(error) => return Tried::Done(Err(error)),
            }
        }
        match hash.map_or(Standing::Unknown, |hash| bucket.standing(hash)) {
            Standing::Owner => {}
            Standing::Unknown if bucket.head().is_moved() => {
                return Tried::Moved(slab.addr());
            }
            standing if hash.is_some() => return Tried::Elsewhere(standing),
            _ => {}
        }
        Tried::Done(f(&mut bucket))
    }

    /// What was in a bucket has died: it begins anew, unless it was only that it is elsewhere.
    /// Whether it is.
    #[cold]
    pub(super) fn begin_or_move(&self, bucket: &mut Bucket<'_, M>) -> Result<bool> {
        let moved = self.look_again(self.map.place(bucket.number).0, bucket.slab_addr())?;
        match moved {
            true => bucket.mark_moved(),
            false => bucket.begin_anew()?,
        }
        Ok(moved)
    }

    /// Enters a bucket's lock.
    #[inline]
    pub(super) fn enter(&self, slab: &Slab<M>, index: usize, access: Access) -> Entering<M> {
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
}
