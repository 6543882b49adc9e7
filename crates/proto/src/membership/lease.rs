//! How long a process may serve without another look at the roster.

/// A lease on one's own place. It is counted from the beginning of the last successful beat,
/// so it is over before anybody who saw that beat can have counted a whole lease of silence, even
/// on a clock that runs faster.
///
/// A lease that has run out does not come back with the next beat:
/// by then somebody may have proposed a view without us, and the proposal may still be on its way.
/// Only a version that was taken after our beat makes certain that it is refused. So a beat, a
/// look, another version, in this order, and no pause between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lease {
    /// Valid to this time, ns.
    Held { until: u64 },
    /// Over.
    Lapsed {
        /// The version seen after a beat that has been followed by others in time,
        /// and to when they reach, ns.
        chain: Option<(u64, u64)>,
    },
}

/// A beat that was stored.
#[derive(Clone, Copy)]
pub(super) struct Stored {
    /// When it was handed to the store, ns.
    pub started: u64,
    /// When the store had said yes, ns.
    pub ended: u64,
}

impl Lease {
    /// Takes a look that began at `asked`, ended at `now` and shows that we hold our place in this
    /// version. `term` is how long a beat is good for, ns. Says whether the version must rise
    /// before we may serve.
    pub fn look(
        &mut self,
        asked: u64,
        now: u64,
        version: u64,
        beat: Option<Stored>,
        term: u64,
    ) -> bool {
        let reach = beat.map_or(0, |beat| beat.started.saturating_add(term));
        *self = match *self {
            Lease::Held { until } if now < until => Lease::Held {
                until: until.max(reach),
            },
            Lease::Lapsed {
                chain: Some((since, until)),
            } if now < until => {
                let until = until.max(reach);
                if version > since {
                    Lease::Held { until }
                } else {
                    Lease::Lapsed {
                        chain: Some((since, until)),
                    }
                }
            }
            // A beat that ended before this look began is one that every look at a later version
            // will see.
            _ => Lease::Lapsed {
                chain: beat
                    .filter(|beat| beat.ended <= asked && now < reach)
                    .map(|_| (version, reach)),
            },
        };
        matches!(self, Lease::Lapsed { chain: Some(_) })
    }

    /// Ends it now: the others have been told to go on without us when it would have been over.
    pub fn end(&mut self) {
        *self = Lease::Lapsed { chain: None };
    }

    /// To when we may serve, ns; 0 when we may not.
    pub fn until(&self) -> u64 {
        match *self {
            Lease::Held { until } => until,
            Lease::Lapsed { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: u64 = 75;

    fn stored(started: u64, ended: u64) -> Option<Stored> {
        Some(Stored { started, ended })
    }

    #[test]
    fn beats_in_time_keep_it() {
        let mut lease = Lease::Held { until: 75 };
        assert!(!lease.look(22, 25, 3, stored(20, 21), TERM));
        assert_eq!(lease.until(), 95);
        // A look without a new beat changes nothing.
        assert!(!lease.look(60, 61, 3, stored(20, 21), TERM));
        assert_eq!(lease.until(), 95);
    }

    #[test]
    fn it_is_over_when_its_last_nanosecond_is() {
        let mut held = Lease::Held { until: 75 };
        held.look(70, 74, 3, None, TERM);
        assert_eq!(held.until(), 75);
        // A beat in time does not help who looks too late.
        held.look(74, 75, 3, stored(72, 73), TERM);
        assert_eq!(held.until(), 0);
        // Nor does a version that comes when the chain is over.
        let chain = Some((3, 75));
        for (now, until) in [(74, 70 + TERM), (75, 0)] {
            let mut lapsed = Lease::Lapsed { chain };
            lapsed.look(74, now, 4, stored(70, 71), TERM);
            assert_eq!(lapsed.until(), until, "at {now}");
        }
    }

    #[test]
    fn one_that_is_over_needs_a_beat_a_look_and_a_version() {
        let mut lease = Lease::Held { until: 75 };
        assert!(!lease.look(80, 81, 3, stored(0, 1), TERM));
        assert_eq!(lease.until(), 0);
        // The beat ended only while this look was under way.
        assert!(!lease.look(84, 90, 3, stored(82, 85), TERM));
        assert!(lease.look(91, 92, 3, stored(82, 85), TERM));
        assert_eq!(lease.until(), 0);
        assert!(!lease.look(95, 96, 4, stored(82, 85), TERM));
        assert_eq!(lease.until(), 82 + TERM);
    }

    #[test]
    fn a_version_after_a_pause_does_not_bring_it_back() {
        let mut lease = Lease::Lapsed { chain: None };
        assert!(lease.look(12, 13, 3, stored(10, 11), TERM));
        // The chain of beats broke before the version rose: a look in the gap may have found us
        // silent.
        assert!(lease.look(202, 203, 4, stored(200, 201), TERM));
        assert_eq!(lease.until(), 0);
        assert!(!lease.look(205, 206, 5, stored(200, 201), TERM));
        assert_eq!(lease.until(), 200 + TERM);
    }
}
