//! A read: directly where this process has the memory, else by the home.

use super::{MAX_OBJECT, Object, Retry};
use crate::bytes::objects::{Place, copy_out};
use crate::bytes::whole;
use crate::bytes::window::Window;
use crate::error::{AccessError, RackError};
use crate::host::driving::errand::Action;
use crate::host::objects::{Answered, Asks, ObjectCounters, count, not_done, unlike};
use rackmem_proto::sabre::rule::{Refusal, Wanted};
use rackmem_proto::sabre::{Attempts, Command, Known, Meta, Next, Outcome};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Where a read gets the object from.
enum Source<'a> {
    Place(&'a Place),
    /// Its home is asked.
    Home,
}

/// What an attempt came to.
pub(super) type Attempt<R> = Result<(u64, R), Refusal>;

impl<T: ?Sized> Object<T> {
    /// Fills `out`, unless the object has this version.
    #[inline]
    pub(super) fn read_newer(
        &self,
        known: u64,
        out: &mut [u8],
        retry: Retry,
    ) -> Result<Option<u64>, AccessError> {
        if let Some(place) = self.place.as_ref().filter(|place| !place.is_over()) {
            self.node.open()?;
            let fits = out.len() <= MAX_OBJECT;
            let known = (self.meta | out.len() as u64, known);
            let copy = |bytes: &[AtomicU64]| copy_out(out, bytes);
            if fits && let Some(version) = whole::read_known(place.words(), known, copy) {
                return Ok(Some(version));
            }
        }
        let wanted = Wanted {
            generation: self.at.generation,
            known,
        };
        self.read_slowly(wanted, out, retry)
    }

    /// The same, whatever stands in its way.
    #[cold]
    fn read_slowly(
        &self,
        wanted: Wanted,
        out: &mut [u8],
        retry: Retry,
    ) -> Result<Option<u64>, AccessError> {
        let len = out.len();
        let known = Known {
            version: wanted.known,
            len: len as u32,
        };
        let (version, fits) = self.look(known, retry, |view| {
            if view.len() != len {
                return Err(view.len());
            }
            view.read(0, out);
            Ok(())
        })?;
        match fits {
            None => Ok(None),
            Some(Ok(())) => Ok(Some(version)),
            Some(Err(is)) => {
                let addr = self.at.tag.0;
                Err(AccessError::OtherSize { addr, len, is })
            }
        }
    }

    /// Looks at the object until what `f` has seen is one version's; `None` if that is the known
    /// one.
    pub(super) fn look<R>(
        &self,
        known: Known,
        retry: Retry,
        mut f: impl FnMut(&Window<'_>) -> R,
    ) -> Result<(u64, Option<R>), AccessError> {
        let mut reading = Reading::new(known, retry);
        self.call(|came| reading.go_on(self, came, &mut f))
    }

    /// Goes through an operation in this thread.
    pub(super) fn call<R>(
        &self,
        go_on: impl FnMut(Option<Answered>) -> Action<R, Asks>,
    ) -> Result<R, AccessError> {
        self.node.inner.access.call_home(go_on)
    }

    /// What a reader with this version knows of it.
    pub(super) fn known(&self, version: u64) -> Known {
        let len = self.had.load(Relaxed);
        Known { version, len }
    }

    /// Whether its home is asked by packets.
    pub(super) fn is_asked_for(&self) -> bool {
        let direct = self.place.as_ref().is_some_and(|place| !place.is_over());
        !direct && !self.is_own()
    }

    fn counters(&self) -> &ObjectCounters {
        &self.node.inner.access.agents.objects.counters
    }

    fn is_own(&self) -> bool {
        self.node.inner.access.has_home_of(self.at.tag)
    }

    fn source(&self) -> Result<Source<'_>, AccessError> {
        match &self.place {
            Some(place) if !place.is_over() => Ok(Source::Place(place)),
            // Its home would not know it either.
            _ if self.is_own() => Err(self.node.inner.access.no_object(self.at.tag)),
            _ => Ok(Source::Home),
        }
    }

    /// Keeps writers out for one look.
    fn read_alone<R>(
        &self,
        place: &Place,
        wanted: Wanted,
        f: &mut impl FnMut(&Window<'_>) -> R,
    ) -> Attempt<R> {
        let words = place.words();
        let version = whole::version(words);
        if !whole::take(words, version) {
            return Err(Refusal::Locked);
        }
        let meta = whole::meta(words);
        let seen = match meta.live && meta.generation == wanted.generation {
            true => {
                // A copy: `f` is the program's, and may panic or take long.
                let bytes = words.get(whole::HEADER_WORDS..).unwrap_or_default();
                let copy: Vec<AtomicU64> = bytes.iter().map(|_| AtomicU64::new(0)).collect();
                rackmem_fabric::words::copy(&copy, bytes);
                Ok(copy)
            }
            false => Err(Refusal::Gone),
        };
        whole::release(words, version);
        Ok((version, window(&seen?, meta, f)))
    }

    /// What its home has answered.
    pub(super) fn heard<R>(
        &self,
        answered: Answered,
        f: &mut impl FnMut(&Window<'_>) -> R,
    ) -> Result<Attempt<R>, AccessError> {
        let (outcome, bytes) = answered?;
        match outcome {
            Outcome::Read { version, len } => {
                self.had.store(len, Relaxed);
                let words = words_of(&bytes);
                let view = Window::new(&words, 0, len as usize);
                Ok(Ok((version, f(&view))))
            }
            Outcome::Refused(reason) => match Refusal::of(reason) {
                Some(refusal) => Ok(Err(refusal)),
                None => Err(not_done(reason, self.at.tag)),
            },
            outcome => Err(unlike(outcome, self.at.tag)),
        }
    }
}

/// A read, between two of its attempts.
pub(super) struct Reading {
    known: Known,
    retry: Retry,
    attempts: Attempts,
    /// Writers are kept out.
    locked: bool,
}

impl Reading {
    pub fn new(known: Known, retry: Retry) -> Self {
        Reading {
            known,
            retry,
            attempts: Attempts::default(),
            locked: false,
        }
    }

    /// What is to be done next, when the home has answered this if it was asked. It comes to a
    /// version and what `f` has seen of that, or to the known version.
    pub fn go_on<T: ?Sized, R>(
        &mut self,
        object: &Object<T>,
        came: Option<Answered>,
        f: &mut impl FnMut(&Window<'_>) -> R,
    ) -> Action<(u64, Option<R>), Asks> {
        let attempt = match came {
            None => self.attempt(object, f),
            Some(answered) => object.heard(answered, f).map(Tried::Came),
        };
        match attempt {
            Ok(Tried::Came(attempt)) => self.tried(object, attempt),
            Ok(Tried::Asks(command)) => Action::Ask(Asks::to(command)),
            Ok(Tried::NoLease) => Action::Later(RackError::NoLease.into()),
            Err(error) => Action::Over(Err(error)),
        }
    }

    fn attempt<T: ?Sized, R>(
        &self,
        object: &Object<T>,
        f: &mut impl FnMut(&Window<'_>) -> R,
    ) -> Result<Tried<R>, AccessError> {
        match object.node.open_now() {
            Some(open) => open?,
            None => return Ok(Tried::NoLease),
        }
        let wanted = Wanted {
            generation: object.at.generation,
            known: self.known.version,
        };
        let source = object.source()?;
        let attempt = match (&source, self.locked) {
            (Source::Place(place), false) => {
                whole::read(place.words(), wanted, |bytes, meta| window(bytes, meta, f))
            }
            (Source::Place(place), true) if object.is_own() => object.read_alone(place, wanted, f),
            (source, locked) => {
                if matches!(source, Source::Place(_)) {
                    count(&object.counters().fallbacks);
                }
                return Ok(Tried::Asks(match locked {
                    false => Command::Read(object.at, self.known),
                    true => Command::ReadLocked(object.at),
                }));
            }
        };
        Ok(Tried::Came(attempt))
    }

    /// What follows an attempt.
    fn tried<T: ?Sized, R>(
        &mut self,
        object: &Object<T>,
        attempt: Attempt<R>,
    ) -> Action<(u64, Option<R>), Asks> {
        let counters = object.counters();
        let refusal = match attempt {
            Ok((version, result)) => return Action::Over(Ok((version, Some(result)))),
            Err(refusal) => refusal,
        };
        match refusal {
            Refusal::NotModified => {
                count(&counters.not_modified);
                return Action::Over(Ok((self.known.version, None)));
            }
            Refusal::Gone => return Action::Over(Err(object.gone())),
            Refusal::Locked => count(&counters.locked),
            Refusal::Torn => count(&counters.torn),
        }
        let addr = object.at.tag.0;
        match self.attempts.failed(self.retry) {
            Next::Pause(most) => Action::Pause(most),
            Next::Lock => {
                count(&counters.exclusive);
                match std::mem::replace(&mut self.locked, true) {
                    // A writer's thread is in, and does not run.
                    true => Action::Later(AccessError::Busy { addr }),
                    false => Action::Pause(0),
                }
            }
            Next::Abort => {
                let tries = self.attempts.count();
                Action::Over(Err(AccessError::Torn { addr, tries }))
            }
        }
    }
}

/// A step of a read.
enum Tried<R> {
    Came(Attempt<R>),
    Asks(Command),
    /// Not before there is a lease.
    NoLease,
}

/// Bytes that came by packets, as words.
pub(super) fn words_of(bytes: &[u8]) -> Vec<AtomicU64> {
    let words: Vec<AtomicU64> = (0..bytes.len().div_ceil(8))
        .map(|_| AtomicU64::new(0))
        .collect();
    crate::bytes::objects::copy_in(&words, bytes);
    words
}

#[inline]
pub(super) fn window<R>(
    bytes: &[AtomicU64],
    meta: Meta,
    f: &mut impl FnMut(&Window<'_>) -> R,
) -> R {
    // What is looked at may be no header of this object any more: then it is thrown away.
    let len = usize::from(meta.len).min(bytes.len() * 8);
    f(&Window::new(bytes, 0, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contract, Rack, RegionSpec};
    use rackmem_proto::sabre::Then;
    use std::time::Duration;

    fn object(rack: &Rack) -> Object<[u64; 4]> {
        let spec = RegionSpec::new("objects", 1 << 20).contract(Contract::Object);
        let region = rack.node(0).create_region(&spec).unwrap();
        region.alloc([1, 2, 3, 4]).unwrap()
    }

    /// A writer that is in and does not run.
    #[test]
    fn who_never_gets_it_whole_is_told_and_nothing_is_spoilt() {
        let patience = Duration::from_millis(20);
        let rack = Rack::builder(2).patience(patience).build().unwrap();
        let own = object(&rack);
        let near: Object<[u64; 4]> = rack.node(1).attach_object(own.at()).unwrap();
        let words = own.place.as_ref().unwrap().words();
        let version = whole::version(words);
        assert!(whole::take(words, version));
        let (tries, then) = (3, Then::Abort);
        for object in [&own, &near] {
            let addr = object.addr();
            let torn = object.read_with(Retry { tries, then });
            assert_eq!(torn, Err(AccessError::Torn { addr, tries }));
            assert_eq!(object.read(), Err(AccessError::Busy { addr }));
            assert_eq!(object.write(&[9; 4]), Err(AccessError::Busy { addr }));
        }
        whole::release(words, version);
        for object in [&own, &near] {
            assert_eq!(object.read_versioned(), Ok((version, [1, 2, 3, 4])));
        }
    }

    /// Writers are kept out for one copy, and the version stays.
    #[test]
    fn a_read_with_writers_kept_out_leaves_the_version() {
        for fabric in crate::Fabric::ALL.map(|(fabric, _)| fabric) {
            let rack = Rack::builder(2).fabric(fabric).build().unwrap();
            let own = object(&rack);
            let far: Object<[u64; 4]> = rack.node(1).attach_object(own.at()).unwrap();
            let (version, value) = own.read_versioned().unwrap();
            let wanted = Wanted {
                generation: own.at.generation,
                known: 0,
            };
            let sum = |view: &Window<'_>| (0..4).map(|at| view.u64(at * 8)).sum::<u64>();
            let place = own.place.as_ref().unwrap();
            let seen = own.read_alone(place, wanted, &mut { sum });
            assert_eq!(seen, Ok((version, 10)));
            let access = &far.node.inner.access;
            let answered = access.ask_home(Command::ReadLocked(far.at), Vec::new());
            let seen = far.heard(answered, &mut { sum }).unwrap();
            assert_eq!(seen, Ok((version, 10)), "{fabric:?}");
            assert_eq!(own.read_versioned(), Ok((version, value)));
        }
    }
}
