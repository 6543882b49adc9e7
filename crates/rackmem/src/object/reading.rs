//! A read: directly where this process has the memory, else by the home.

use super::{MAX_OBJECT, Object, Retry};
use crate::backoff::Backoff;
use crate::bytes::objects::{Place, copy_out};
use crate::bytes::whole;
use crate::bytes::window::Window;
use crate::error::AccessError;
use crate::host::objects::{count, not_done, unlike};
use rackmem_proto::sabre::rule::{Refusal, Wanted};
use rackmem_proto::sabre::{Attempts, Command, Known, Meta, Next, Outcome};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// From here on a pause is slept, not spun.
const SLEEP: u64 = 50_000;

/// Where a read gets the object from.
enum Source<'a> {
    Place(&'a Place),
    /// Its home is asked.
    Home,
}

/// What an attempt came to.
type Attempt<R> = Result<(u64, R), Refusal>;

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
        self.node.open()?;
        let counters = &self.node.inner.access.agents.objects.counters;
        let generation = self.at.generation;
        let wanted = Wanted {
            generation,
            known: known.version,
        };
        let mut attempts = Attempts::default();
        let mut locked = false;
        let mut backoff = Backoff::new(self.node.inner.access.patience);
        loop {
            let source = self.source()?;
            let attempt = match (&source, locked) {
                (Source::Place(place), false) => {
                    whole::read(place.words(), wanted, |bytes, meta| {
                        window(bytes, meta, &mut f)
                    })
                }
                (Source::Place(place), true) if self.is_own() => {
                    self.read_alone(place, wanted, &mut f)
                }
                (source, locked) => {
                    if matches!(source, Source::Place(_)) {
                        count(&counters.fallbacks);
                    }
                    self.read_at_home(known, locked, &mut f)?
                }
            };
            let refusal = match attempt {
                Ok((version, result)) => return Ok((version, Some(result))),
                Err(refusal) => refusal,
            };
            match refusal {
                Refusal::NotModified => {
                    count(&counters.not_modified);
                    return Ok((known.version, None));
                }
                Refusal::Gone => return Err(self.gone()),
                Refusal::Locked => count(&counters.locked),
                Refusal::Torn => count(&counters.torn),
            }
            let addr = self.at.tag.0;
            match attempts.failed(retry) {
                Next::Pause(most) => pause(most),
                Next::Lock => {
                    // A writer's thread is in, and does not run.
                    if locked && !backoff.wait() {
                        return Err(AccessError::Busy { addr });
                    }
                    locked = true;
                    count(&counters.exclusive);
                }
                Next::Abort => {
                    let tries = attempts.count();
                    return Err(AccessError::Torn { addr, tries });
                }
            }
        }
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

    fn read_at_home<R>(
        &self,
        known: Known,
        locked: bool,
        f: &mut impl FnMut(&Window<'_>) -> R,
    ) -> Result<Attempt<R>, AccessError> {
        let command = match locked {
            false => Command::Read(self.at, known),
            true => Command::ReadLocked(self.at),
        };
        let (outcome, bytes) = self.node.inner.access.ask_home(command, Vec::new())?;
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

/// Waits for a random time, half of this at least.
fn pause(most: u64) {
    let nanos = most / 2 + fastrand::u64(0..=most / 2);
    if nanos >= SLEEP {
        return std::thread::sleep(Duration::from_nanos(nanos));
    }
    let began = Instant::now();
    // The writer may need this processor.
    std::thread::yield_now();
    while began.elapsed() < Duration::from_nanos(nanos) {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contract, Rack, RegionSpec};
    use rackmem_proto::sabre::Then;

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
            let seen = far
                .read_at_home(Known::default(), true, &mut { sum })
                .unwrap();
            assert_eq!(seen, Ok((version, 10)), "{fabric:?}");
            assert_eq!(own.read_versioned(), Ok((version, value)));
        }
    }
}
