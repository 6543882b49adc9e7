//! The scoreboard: what makes lock and unlock idempotent at an owner (§5.3.2).
//!
//! One score a requester and parity. The paper keeps a count of acquisitions and, in a second array, the
//! last unlock; we keep the event's sequence number and one bit, which closes three holes of the paper's
//! form (`docs/protocols/flowcc.md`, "Scores"):
//! - a refusal is final for its sequence number, so a duplicated or late copy of a refused request can never
//!   take the lock after its requester has gone on;
//! - a retransmission never counts twice, so an unlock always gives back exactly one acquisition;
//! - the bit is cleared in the same step that authorizes the release, so no second unlock can follow.

use crate::wire::Seq;

/// A score: `seq << 32 | granted`. Zero is "nothing yet"; requesters start at sequence number 1.
pub type Score = u64;

const GRANTED: u64 = 1;

/// What becomes of a request, given what this pass did to the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Forward it. `undo` the lock this pass took: an earlier copy holds it already.
    Granted {
        /// Release what this pass acquired.
        undo: bool,
    },
    /// Refuse it, now and for every later copy.
    Refused {
        /// Release what this pass acquired.
        undo: bool,
    },
    /// It is older than what this requester has asked since: drop it.
    Stale {
        /// Release what this pass acquired.
        undo: bool,
    },
}

/// Enters a request into its score. `acquired`: this pass took the lock. `valid`: the check table agreed.
#[inline]
pub fn enter(score: &mut Score, seq: Seq, acquired: bool, valid: bool) -> Verdict {
    use core::cmp::Ordering;
    match seq.compare(Seq((*score >> 32) as u32)) {
        Ordering::Greater => {
            let granted = acquired && valid;
            *score = (seq.0 as u64) << 32 | granted as u64;
            if granted {
                Verdict::Granted { undo: false }
            } else {
                Verdict::Refused { undo: acquired }
            }
        }
        Ordering::Equal if *score & GRANTED != 0 => Verdict::Granted { undo: acquired },
        Ordering::Equal => Verdict::Refused { undo: acquired },
        Ordering::Less => Verdict::Stale { undo: acquired },
    }
}

/// Takes the authority to release: true exactly once for a granted event.
#[inline]
pub fn leave(score: &mut Score, seq: Seq) -> bool {
    let held = *score == (seq.0 as u64) << 32 | GRANTED;
    if held {
        *score &= !GRANTED;
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_event_stays_refused() {
        let mut score = 0;
        assert_eq!(
            enter(&mut score, Seq(1), false, true),
            Verdict::Refused { undo: false }
        );
        // A late copy finds the lock free: it must not take it (hard place FlowCC 1).
        assert_eq!(
            enter(&mut score, Seq(1), true, true),
            Verdict::Refused { undo: true }
        );
        assert!(!leave(&mut score, Seq(1)));
    }

    #[test]
    fn a_granted_event_is_released_once() {
        let mut score = 0;
        assert_eq!(
            enter(&mut score, Seq(1), true, true),
            Verdict::Granted { undo: false }
        );
        // A reader's retransmission takes the lock a second time: that one is given back at once.
        assert_eq!(
            enter(&mut score, Seq(1), true, true),
            Verdict::Granted { undo: true }
        );
        assert_eq!(
            enter(&mut score, Seq(1), false, true),
            Verdict::Granted { undo: false }
        );
        assert!(leave(&mut score, Seq(1)));
        assert!(!leave(&mut score, Seq(1)));
        assert_eq!(
            enter(&mut score, Seq(1), true, true),
            Verdict::Refused { undo: true }
        );
    }

    #[test]
    fn an_old_event_is_dropped() {
        let mut score = 0;
        assert_eq!(
            enter(&mut score, Seq(3), true, true),
            Verdict::Granted { undo: false }
        );
        assert_eq!(
            enter(&mut score, Seq(1), true, true),
            Verdict::Stale { undo: true }
        );
        assert!(!leave(&mut score, Seq(1)));
        assert!(leave(&mut score, Seq(3)));
    }

    #[test]
    fn an_invalid_request_gives_its_lock_back() {
        let mut score = 0;
        assert_eq!(
            enter(&mut score, Seq(1), true, false),
            Verdict::Refused { undo: true }
        );
    }
}
