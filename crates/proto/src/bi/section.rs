//! Sections of readers: what is promised of what they read, and when the promise is not kept
//! (BI §3.1, P2).
//!
//! Nothing in the paper stops a reader whose domain has not quiesced for long.
//! Here a section begins only in a domain that has quiesced within `lag` ticks, and what it has
//! read is believed only if it has not lasted for more than `section` ticks:
//! both by a look at the clock.

use super::clock::{ACCURACY, Tick};
use super::defect::Defect;
use super::pointer::BiPtr;

/// What is promised, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bound {
    /// Ticks since the last quiescence within which a section may begin.
    pub lag: u64,
    /// Ticks that a section may last.
    pub section: u64,
}

impl Bound {
    /// What is promised unless the program says otherwise.
    pub const DEFAULT: Bound = Bound { lag: 3, section: 5 };

    /// What a section reads was current so many ticks before it began, at most: two more than
    /// `lag`, for the parts of ticks at both ends.
    pub const fn ticks(self) -> u64 {
        self.lag + 2
    }

    /// Ticks after which a domain that has been told to stop has no section left whose reads are
    /// believed: it can begin one until its next quiescence is due.
    pub const fn grace(self) -> u64 {
        self.lag + self.section + 2 * ACCURACY
    }

    /// Ticks after a quiescence for which a section that counts on it and has not looked at the
    /// clock is believed. No more than it may last: memory waits for it no longer.
    #[inline]
    pub const fn unseen(self) -> u64 {
        match self.lag <= self.section {
            true => self.lag,
            false => self.section,
        }
    }

    /// Whether no section that was open at `then` is believed any more, by the clock of its domain.
    /// Memory waits no longer for a thread that stays in its section.
    pub const fn has_ended(self, then: Tick, now: Tick) -> bool {
        now.since(then) > self.section
    }
}

/// A promise is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Late {
    /// By so many ticks.
    pub by: u64,
}

/// A section that is open.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReadSection {
    began: Tick,
    /// What it has read is believed until then.
    until: Tick,
    broken: Option<Defect>,
}

impl ReadSection {
    /// One begins without a look at the clock, in a domain that has quiesced at `modified`. It is
    /// believed while another one could still begin: wherever it is, a section that had looked
    /// would be ([`ReadSection::enter`]).
    #[inline]
    pub const fn unseen(modified: Tick, bound: Bound, broken: Option<Defect>) -> Self {
        ReadSection {
            began: modified,
            until: modified.plus(bound.unseen()),
            broken,
        }
    }

    /// One begins, if the domain has quiesced within the bound: at `modified`. Otherwise it has to
    /// quiesce first.
    #[inline]
    pub fn enter(
        (now, modified): (Tick, Tick),
        bound: Bound,
        broken: Option<Defect>,
    ) -> Result<Self, Late> {
        let by = now.since(modified).saturating_sub(bound.lag);
        if by > 0 && broken != Some(Defect::EnterWithoutClock) {
            return Err(Late { by });
        }
        Ok(ReadSection {
            began: now,
            until: now.plus(bound.section),
            broken,
        })
    }

    /// When it began; where it has not looked, the latest quiescence before.
    #[inline]
    pub fn began(&self) -> Tick {
        self.began
    }

    /// Whether what it has read until now may be believed.
    #[inline]
    pub fn holds(&self, now: Tick) -> Result<(), Late> {
        let by = now.since(self.until);
        match by == 0 || self.broken == Some(Defect::ExitWithoutClock) {
            true => Ok(()),
            false => Err(Late { by }),
        }
    }

    /// Whether the object's lines are to be dropped before they are read. `lazily`: the lookup is
    /// to see what was added just now.
    #[inline]
    pub fn drops_first(&self, to: BiPtr, times: (Tick, Tick), lazily: bool) -> bool {
        let (now, modified) = times;
        let young = to.is_young(modified, now) && self.broken != Some(Defect::NoBirth);
        young || self.drops_path(lazily)
    }

    /// Whether lines on the way to an object are to be dropped before they are read.
    #[inline]
    pub fn drops_path(&self, lazily: bool) -> bool {
        lazily && self.broken != Some(Defect::LazyThroughCache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_begins_within_the_lag_and_holds_for_its_time() {
        let bound = Bound { lag: 2, section: 3 };
        let enter = |now, modified| ReadSection::enter((Tick(now), Tick(modified)), bound, None);
        assert_eq!(enter(9, 6), Err(Late { by: 1 }));
        let section = enter(9, 7).unwrap();
        assert_eq!(section.holds(Tick(12)), Ok(()));
        assert_eq!(section.holds(Tick(14)), Err(Late { by: 2 }));
        for now in 9..20 {
            let over = bound.has_ended(Tick(9), Tick(now));
            assert!(!over || section.holds(Tick(now)).is_err(), "{now}");
            assert_eq!(over, now > 12);
        }
        // Without a look: believed only where one that has looked would be, whenever it began.
        for section in 0..6 {
            let bound = Bound { lag: 2, section };
            for (modified, began, now) in (0..9).flat_map(|modified| {
                let began = modified..12;
                began.flat_map(move |began| (began..15).map(move |now| (modified, began, now)))
            }) {
                let unseen = ReadSection::unseen(Tick(modified), bound, None);
                let seen = ReadSection::enter((Tick(began), Tick(modified)), bound, None);
                let seen = seen.and_then(|section| section.holds(Tick(now)));
                assert!(unseen.holds(Tick(now)).is_err() || seen.is_ok());
            }
        }
        // A quiescence by a clock that has jumped meanwhile.
        assert!(enter(9, 10).is_ok());
        assert_eq!((bound.ticks(), bound.grace()), (4, 7));
    }
}
