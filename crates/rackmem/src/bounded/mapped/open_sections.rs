//! Which sections of this process are open: what a quiescence waits for.
//!
//! A section is counted when it begins and when it ends, in one of two ages, of which one is
//! current. Each thread counts in a place of its own, by plain stores; threads without one share
//! the last place. A thread counts itself into the current age, and looks again: if the other one
//! has become current meanwhile it was too late, and tries anew. Who waits makes the other age
//! current first, and has a fence put into all threads: whoever is in the earlier age then was
//! there before, and is seen.
//!
//! A section may end in another thread than it has begun in. So ends are added up over all places,
//! and beginnings after them: where both are as many, none was open in between.

use crate::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU64, heavy_fence, light_fence};

#[repr(align(64))]
struct Place {
    entered: [AtomicU64; 2],
    left: [AtomicU64; 2],
}

/// See the module. `PLACES` threads have a place to themselves.
pub(crate) struct OpenSections<const PLACES: usize> {
    current: AtomicU64,
    own: [Place; PLACES],
    shared: Place,
}

/// In which age a section is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    age: usize,
}

impl<const PLACES: usize> OpenSections<PLACES> {
    /// None is open.
    pub fn new() -> Self {
        let none = || Place {
            entered: [AtomicU64::new(0), AtomicU64::new(0)],
            left: [AtomicU64::new(0), AtomicU64::new(0)],
        };
        OpenSections {
            current: AtomicU64::new(0),
            own: std::array::from_fn(|_| none()),
            shared: none(),
        }
    }

    /// Counts in the place of this thread, which nobody else stores to; or in the shared one.
    #[inline(always)]
    fn count(&self, place: usize, which: impl Fn(&Place) -> &AtomicU64) {
        match self.own.get(place) {
            Some(own) => {
                let count = which(own);
                count.store(count.load(Relaxed).wrapping_add(1), Release);
            }
            None => {
                which(&self.shared).fetch_add(1, Release);
            }
        }
    }

    /// A section begins in a thread that has this place.
    #[inline(always)]
    pub fn enter(&self, place: usize) -> Counted {
        loop {
            let age = (self.current.load(Relaxed) & 1) as usize;
            self.count(place, |place| &place.entered[age]);
            light_fence();
            if (self.current.load(Acquire) & 1) as usize == age {
                return Counted { age };
            }
            self.count(place, |place| &place.left[age]);
        }
    }

    /// It ends, in a thread that has this place.
    #[inline(always)]
    pub fn leave(&self, place: usize, counted: Counted) {
        self.count(place, |place| &place.left[counted.age]);
    }

    /// How many have begun, with those that began twice for a turn.
    pub fn begun(&self) -> u64 {
        let places = self.own.iter().chain([&self.shared]);
        let all = places.flat_map(|place| &place.entered);
        all.fold(0, |sum, count| sum.wrapping_add(count.load(Relaxed)))
    }

    /// Those that are open now are to be waited for. One waits at a time. Nothing: they cannot be
    /// known.
    pub fn turn(&self) -> Option<usize> {
        let before = self.current.load(SeqCst);
        self.current.store(before ^ 1, SeqCst);
        heavy_fence().then_some((before & 1) as usize)
    }

    /// Whether they have ended.
    pub fn have_ended(&self, turned: usize) -> bool {
        let sum = |which: fn(&Place) -> &[AtomicU64; 2]| {
            let places = self.own.iter().chain([&self.shared]);
            places.fold(0u64, |sum, place| {
                sum.wrapping_add(which(place)[turned].load(Acquire))
            })
        };
        let left = sum(|place| &place.left);
        left == sum(|place| &place.entered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_before_the_turn_is_waited_for_and_nothing_else() {
        let open: OpenSections<2> = OpenSections::new();
        let (a, b) = (open.enter(1), open.enter(2));
        let turned = open.turn().unwrap();
        let c = open.enter(0);
        assert!(!open.have_ended(turned));
        // It may end in another thread.
        open.leave(7, a);
        assert!(!open.have_ended(turned));
        open.leave(0, b);
        assert!(open.have_ended(turned));
        let turned = open.turn().unwrap();
        assert!(!open.have_ended(turned));
        open.leave(1, c);
        assert!(open.have_ended(turned));
        assert_eq!(open.begun(), 3);
    }
}
