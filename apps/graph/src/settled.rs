//! When a computation that reads old data may believe that nothing changes any more.
//!
//! A quiet step proves nothing there: it may have read what was there before. The data of the last
//! step that was not quiet are seen by a step that begins after the bound; what that step has
//! summed is seen by one that begins after the bound again. If all steps until then are quiet, the
//! last of them has computed from what there is.

use std::time::{Duration, Instant};

/// What has to be gone through without a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Until what was written before is seen.
    Wait(Instant),
    /// One whole step that begins after that.
    Step,
}

/// Stages behind a change: a wait and a step for data, a wait and a step for sums.
const STAGES: u8 = 4;

/// Of one node, by its own clock.
#[derive(Debug)]
pub(crate) struct Settled {
    bound: Option<Duration>,
    stage: Stage,
    /// Behind the change.
    passed: u8,
}

impl Settled {
    /// Nothing is read that is older than this; nothing that is old, if it is none.
    pub fn new(bound: Option<Duration>, now: Instant) -> Settled {
        let (stage, passed) = (Stage::Wait(now), 0);
        Settled {
            bound,
            stage,
            passed,
        }
    }

    /// Whether the step that has begun computes from what there is, if it is quiet.
    pub fn holds(&self) -> bool {
        self.bound.is_none() || self.passed + 1 >= STAGES
    }

    /// A step has ended, at all nodes.
    pub fn step(&mut self, is_quiet: bool, now: Instant) {
        let bound = self.bound.unwrap_or_default();
        if !is_quiet {
            (self.stage, self.passed) = (Stage::Wait(now), 0);
            return;
        }
        let next = match self.stage {
            Stage::Wait(since) if now.saturating_duration_since(since) > bound => Stage::Step,
            Stage::Wait(_) => return,
            Stage::Step => Stage::Wait(now),
        };
        (self.stage, self.passed) = (next, (self.passed + 1).min(STAGES - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_never_old_is_settled() {
        assert!(Settled::new(None, Instant::now()).holds());
    }

    #[test]
    fn two_waits_and_two_steps_are_behind_a_change() {
        let bound = Duration::from_millis(10);
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut settled = Settled::new(Some(bound), at(0));
        let mut holds = |is_quiet, millis| {
            settled.step(is_quiet, at(millis));
            settled.holds()
        };
        assert!(!holds(false, 1));
        assert!(!holds(true, 11)); // not longer than the bound
        assert!(!holds(true, 12)); // data are seen from now on
        assert!(!holds(true, 13)); // and have been summed
        assert!(!holds(true, 23));
        assert!(holds(true, 24)); // sums are seen: the step that begins is the one
        assert!(holds(true, 25));
        assert!(!holds(false, 26));
        assert!(!holds(true, 37));
    }
}
