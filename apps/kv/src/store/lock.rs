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

/// The bucket that an operation is about.
#[derive(Clone, Copy)]
enum Place {
    Bucket(usize),
    /// The one where the key with this hash belongs.
    Key(u64),
}

impl Place {
    /// Its number, as far as these slabs know.
    #[inline]
    fn guess<M: Memory>(self, slabs: &Slabs<M>) -> usize {
        match self {
            Place::Bucket(number) => number,
            Place::Key(hash) => slabs.guess(hash),
        }
    }

    /// Its number among buckets that are held.
    fn among<M: Memory>(self, held: &Held<'_, M>) -> Result<usize> {
        match self {
            Place::Bucket(number) => Ok(number),
            Place::Key(hash) => held.owner(hash),
        }
    }

    /// The hash of the key that has to be there.
    #[inline]
    fn key(self) -> Option<u64> {
        match self {
            Place::Bucket(_) => None,
            Place::Key(hash) => Some(hash),
        }
    }

    /// A hash that belongs there.
    fn hash(self) -> u64 {
        match self {
            Place::Bucket(number) => number as u64,
            Place::Key(hash) => hash,
        }
    }
}

/// Why an operation has not been done in a bucket, or was begun there and failed.
pub(super) enum Missed {
    /// It failed.
    Failed(Error),
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

impl Missed {
    /// Whether the bucket was another one, or its place was not known.
    fn is_a_move(&self) -> bool {
        matches!(self, Missed::Unknown | Missed::Elsewhere(_))
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
        f: impl FnMut(&Bucket<'_, M>) -> Result<R>,
    ) -> Result<R> {
        self.reading_in(scope, Place::Bucket(bucket), f)
    }

    /// The same in the bucket of a key.
    #[inline]
    pub fn reading_key<R>(
        &self,
        scope: Scope<'_, M>,
        hash: u64,
        f: impl FnMut(&Bucket<'_, M>) -> Result<R>,
    ) -> Result<R> {
        self.reading_in(scope, Place::Key(hash), f)
    }

    #[inline]
    fn reading_in<R>(
        &self,
        scope: Scope<'_, M>,
        place: Place,
        mut f: impl FnMut(&Bucket<'_, M>) -> Result<R>,
    ) -> Result<R> {
        if let Some(held) = scope.0 {
            return self.reading_held(held, place.among(held)?, &mut f);
        }
        let mut patience = self.patience();
        loop {
            let slabs = self.buckets.used();
            let bucket = place.guess(&slabs);
            let missed = match self.try_enter(&slabs, bucket, place.key(), Access::Read) {
                Err(missed) => missed,
                Ok(inside) => match f(&inside) {
                    Err(error) => Missed::Failed(error),
                    done => return done,
                },
            };
            drop(slabs);
            self.after_reading(missed, bucket, place.hash(), &mut patience)?;
        }
    }

    /// What a reader does about why it has missed, and about the time until the next attempt.
    #[cold]
    pub(super) fn after_reading(
        &self,
        missed: Missed,
        bucket: usize,
        hash: u64,
        patience: &mut Patience,
    ) -> Result<()> {
        match missed {
            Missed::Failed(error) => self.recover(bucket, error)?,
            Missed::Outdated => self.writing(Scope::ALONE, bucket, |_| Ok(()))?,
            missed => return self.after_missing(missed, bucket, hash, patience),
        }
        patience.pause()
    }

    #[cold]
    fn reading_held<R>(
        &self,
        held: &Held<'_, M>,
        number: usize,
        f: &mut dyn FnMut(&Bucket<'_, M>) -> Result<R>,
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
        self.writing_in(scope, Place::Bucket(bucket), f)
    }

    /// The same in the bucket of a key.
    #[inline]
    pub fn writing_key<R>(
        &self,
        scope: Scope<'_, M>,
        hash: u64,
        f: impl FnOnce(&mut Bucket<'_, M>) -> Result<R>,
    ) -> Result<R> {
        self.writing_in(scope, Place::Key(hash), f)
    }

    #[inline]
    fn writing_in<R>(
        &self,
        scope: Scope<'_, M>,
        place: Place,
        f: impl FnOnce(&mut Bucket<'_, M>) -> Result<R>,
    ) -> Result<R> {
        if let Some(held) = scope.0 {
            return f(&mut held.bucket(place.among(held)?, Access::Write)?);
        }
        let mut patience = self.patience();
        loop {
            let slabs = self.buckets.used();
            let bucket = place.guess(&slabs);
            let missed = match self.try_enter(&slabs, bucket, place.key(), Access::Write) {
                Err(missed) => missed,
                Ok(mut inside) => return f(&mut inside),
            };
            drop(slabs);
            self.after_missing(missed, bucket, place.hash(), &mut patience)?;
        }
    }

    /// What is done about having missed a bucket, and about the time until the next attempt.
    #[cold]
    fn after_missing(
        &self,
        missed: Missed,
        bucket: usize,
        hash: u64,
        patience: &mut Patience,
    ) -> Result<()> {
        let moved = missed.is_a_move();
        match missed {
            Missed::Failed(error) => return Err(error),
            Missed::Barred(error) => self.unbar(bucket, error)?,
            Missed::Outdated => {}
            Missed::Unknown => self.look_up(bucket, hash)?,
            Missed::Elsewhere(standing) => self.learn(bucket, standing, hash)?,
            Missed::Moved(addr) => {
                self.look_again(self.map.place(bucket).0, addr)?;
            }
        }
        match moved {
            true => patience.follow(),
            false => patience.pause(),
        }
    }

    /// Enters a bucket; of a key, if it is the one that has it.
    fn try_enter<'a>(
        &'a self,
        slabs: &'a Slabs<M>,
        number: usize,
        hash: Option<u64>,
        access: Access,
    ) -> std::result::Result<Bucket<'a, M>, Missed> {
        let (slab, index) = self.map.place(number);
        let Some(slab) = slabs.get(slab) else {
            return Err(Missed::Unknown);
        };
        let inside = match self.enter(slab, index, access) {
            Ok(Some(inside)) => inside,
            Ok(None) => return Err(Missed::Failed(self.busy())),
            Err(error) => return Err(Missed::Barred(error)),
        };
        let outdated = slab.heads.is_outdated(&inside);
        let mut bucket = Bucket::entered(self, number, slab, inside);
        if outdated {
            if access == Access::Read {
                return Err(Missed::Outdated);
            }
            match self.begin_or_move(&mut bucket) {
                Ok(false) => {}
                Ok(true) => return Err(Missed::Moved(slab.addr())),
                Err(error) => return Err(Missed::Failed(error)),
            }
        }
        match hash.map_or(Standing::Unknown, |hash| bucket.standing(hash)) {
            Standing::Owner => Ok(bucket),
            Standing::Unknown if bucket.head().is_moved() => Err(Missed::Moved(slab.addr())),
            standing if hash.is_some() => Err(Missed::Elsewhere(standing)),
            _ => Ok(bucket),
        }
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
