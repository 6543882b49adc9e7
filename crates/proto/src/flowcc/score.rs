//! The scoreboard: what makes lock and unlock idempotent at an owner (§5.3.2).
//!
//! One score a requester and parity. The paper keeps a count of acquisitions and,
//! in a second array, the last unlock; we keep the event's sequence number (its low half in the
//! switch, [`crate::switch::numbers`]), one bit, and the route it was granted, which closes four
//! holes of the paper's form (`docs/protocols/flowcc.md`, "Scores"):
//! - a refusal is final for its sequence number, so a duplicated or late copy of a refused request
//!   can never take the lock after its requester has gone on;
//! - a retransmission never counts twice, so an unlock always gives back exactly one acquisition;
//! - the bit is cleared in the same step that authorizes the release,
//!   so no second unlock can follow;
//! - every copy of a granted request goes the way of the first. A read miss shares the lock,
//!   so another reader's unlock may change status and copyset between two copies; were they sent to
//!   two providers, the event would end by the one's answer, and the other's copy would arrive
//!   later as an unheard-of order to downgrade.

use crate::wire::{GlobalStatus, NodeId, Seq};
use core::cmp::Ordering;

/// Where an owner keeps a score: the number of an event, and in a word what became of it,
/// `provider + 1 << 8 | elsewhere << 3 | status << 1 | granted`. Zero is "nothing yet";
/// requesters start at number 1.
pub trait Row {
    /// How an event's number stands to the row's.
    fn order(&self, seq: Seq) -> Ordering;
    /// The word.
    fn word(&self) -> u32;
    /// Writes both.
    fn put(&mut self, seq: Seq, word: u32);
}

/// A score of a home.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Score {
    seq: Seq,
    word: u32,
}

impl Score {
    /// The event that was granted and has not been released, if one is.
    pub fn holder(&self) -> Option<Seq> {
        is_held(self).then_some(self.seq)
    }
}

impl Row for Score {
    #[inline]
    fn order(&self, seq: Seq) -> Ordering {
        seq.cmp(&self.seq)
    }

    #[inline]
    fn word(&self) -> u32 {
        self.word
    }

    #[inline]
    fn put(&mut self, seq: Seq, word: u32) {
        *self = Score { seq, word };
    }
}

const GRANTED: u32 = 1;
/// The first copy found no entry here and was passed on: whoever it was passed to decides for every
/// copy.
const ELSEWHERE: u32 = 1 << 3;
const PROVIDER_SHIFT: u32 = 8;

/// Where a granted request went: what its entry said then, and who provides the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Route {
    /// The entry's status.
    pub status: GlobalStatus,
    /// The member of the copyset that provides the data, if there was one.
    pub provider: Option<NodeId>,
}

impl Route {
    fn to_bits(self) -> u32 {
        let provider = self.provider.map_or(0, |node| u32::from(node as u8) + 1);
        provider << PROVIDER_SHIFT | (self.status as u32) << 1
    }

    fn from_bits(word: u32) -> Self {
        let provider = (word >> PROVIDER_SHIFT & 0x1ff) as NodeId;
        Route {
            status: GlobalStatus::from_byte((word >> 1 & 3) as u8).unwrap_or_default(),
            provider: provider.checked_sub(1),
        }
    }
}

/// What becomes of a request, given what this pass did to the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Forward it. `undo` the lock this pass took: an earlier copy holds it already.
    Granted {
        /// Release what this pass acquired.
        undo: bool,
        /// Where the first copy went, and this one goes.
        route: Route,
    },
    /// Refuse it, now and for every later copy.
    Refused {
        /// Release what this pass acquired.
        undo: bool,
    },
    /// Another owner decides about it, and about every later copy: pass it on.
    Elsewhere {
        /// Release what this pass acquired.
        undo: bool,
    },
    /// It is older than what this requester has asked since: drop it.
    Stale {
        /// Release what this pass acquired.
        undo: bool,
    },
}

impl Verdict {
    /// Whether to release what this pass acquired.
    pub fn undo(self) -> bool {
        match self {
            Verdict::Granted { undo, .. }
            | Verdict::Refused { undo }
            | Verdict::Elsewhere { undo }
            | Verdict::Stale { undo } => undo,
        }
    }
}

/// Enters a request into its score. `acquired`: this pass took the lock. `valid`:
/// the check table agreed. `route`: where it would go now.
#[inline]
pub fn enter(score: &mut impl Row, seq: Seq, acquired: bool, valid: bool, route: Route) -> Verdict {
    let word = score.word();
    match score.order(seq) {
        Ordering::Greater if acquired && valid => {
            score.put(seq, route.to_bits() | GRANTED);
            Verdict::Granted { undo: false, route }
        }
        Ordering::Greater => {
            score.put(seq, 0);
            Verdict::Refused { undo: acquired }
        }
        Ordering::Equal if word & GRANTED != 0 => Verdict::Granted {
            undo: acquired,
            route: Route::from_bits(word),
        },
        Ordering::Equal if word & ELSEWHERE != 0 => Verdict::Elsewhere { undo: acquired },
        Ordering::Equal => Verdict::Refused { undo: acquired },
        Ordering::Less => Verdict::Stale { undo: acquired },
    }
}

/// Enters a request whose entry is not here. Only the first copy, and later ones of the same,
/// are passed on: a late copy of what was decided here, whose entry has left since, must not be
/// decided again (hard place FlowCC 7).
#[inline]
pub fn pass_on(score: &mut impl Row, seq: Seq) -> Verdict {
    let (word, undo) = (score.word(), false);
    match score.order(seq) {
        Ordering::Greater => {
            score.put(seq, ELSEWHERE);
            Verdict::Elsewhere { undo }
        }
        Ordering::Equal if word & ELSEWHERE != 0 => Verdict::Elsewhere { undo },
        Ordering::Equal if word & GRANTED != 0 => Verdict::Stale { undo },
        Ordering::Equal => Verdict::Refused { undo },
        Ordering::Less => Verdict::Stale { undo },
    }
}

/// Whether its event was granted and has not been released.
#[inline]
pub fn is_held(score: &impl Row) -> bool {
    score.word() & GRANTED != 0
}

/// Takes the authority to release: true exactly once for a granted event.
#[inline]
pub fn leave(score: &mut impl Row, seq: Seq) -> bool {
    let held = score.order(seq) == Ordering::Equal && is_held(score);
    if held {
        score.put(seq, score.word() & !GRANTED);
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Route = Route {
        status: GlobalStatus::Modified,
        provider: Some(31),
    };

    fn granted(undo: bool) -> Verdict {
        Verdict::Granted { undo, route: NOW }
    }

    #[test]
    fn a_retransmission_goes_where_the_first_copy_went() {
        let mut score = Score::default();
        let first = enter(&mut score, Seq(1), true, true, NOW);
        assert_eq!(first, granted(false));
        // Another reader's unlock has changed the entry meanwhile.
        let later = Route {
            status: GlobalStatus::Shared,
            provider: Some(4),
        };
        assert_eq!(enter(&mut score, Seq(1), true, true, later), granted(true));
        let home = Route::default();
        let mut score = Score::default();
        for undo in [false, true] {
            let verdict = enter(&mut score, Seq(3), true, true, home);
            assert_eq!(verdict, Verdict::Granted { undo, route: home });
        }
    }

    #[test]
    fn a_refused_event_stays_refused() {
        let mut score = Score::default();
        assert_eq!(
            enter(&mut score, Seq(1), false, true, NOW),
            Verdict::Refused { undo: false }
        );
        // A late copy finds the lock free: it must not take it (hard place FlowCC 1).
        assert_eq!(
            enter(&mut score, Seq(1), true, true, NOW),
            Verdict::Refused { undo: true }
        );
        assert!(!leave(&mut score, Seq(1)));
    }

    #[test]
    fn a_granted_event_is_released_once() {
        let mut score = Score::default();
        assert_eq!(enter(&mut score, Seq(1), true, true, NOW), granted(false));
        // A reader's retransmission takes the lock a second time: that one is given back at once.
        assert_eq!(enter(&mut score, Seq(1), true, true, NOW), granted(true));
        assert_eq!(enter(&mut score, Seq(1), false, true, NOW), granted(false));
        assert_eq!(score.holder(), Some(Seq(1)));
        assert!(leave(&mut score, Seq(1)));
        assert!(!leave(&mut score, Seq(1)));
        assert_eq!(score.holder(), None);
        assert_eq!(
            enter(&mut score, Seq(1), true, true, NOW),
            Verdict::Refused { undo: true }
        );
    }

    #[test]
    fn one_owner_decides_about_all_copies() {
        let mut score = Score::default();
        let elsewhere = |undo| Verdict::Elsewhere { undo };
        assert_eq!(pass_on(&mut score, Seq(1)), elsewhere(false));
        // The entry has come here since: the other owner may have decided.
        assert_eq!(enter(&mut score, Seq(1), true, true, NOW), elsewhere(true));
        assert!(!leave(&mut score, Seq(1)));
        // Decided here, and the entry has left since.
        assert_eq!(enter(&mut score, Seq(3), true, true, NOW), granted(false));
        assert!(leave(&mut score, Seq(3)));
        assert_eq!(
            pass_on(&mut score, Seq(3)),
            Verdict::Refused { undo: false }
        );
        assert_eq!(pass_on(&mut score, Seq(1)), Verdict::Stale { undo: false });
    }

    #[test]
    fn an_old_event_is_dropped() {
        let mut score = Score::default();
        assert_eq!(enter(&mut score, Seq(3), true, true, NOW), granted(false));
        assert_eq!(
            enter(&mut score, Seq(1), true, true, NOW),
            Verdict::Stale { undo: true }
        );
        assert!(!leave(&mut score, Seq(1)));
        assert!(leave(&mut score, Seq(3)));
    }

    #[test]
    fn a_copy_is_late_however_late_it_is() {
        let mut score = Score::default();
        let late = Seq(1);
        let now = Seq(late.0 + (1 << 32));
        assert_eq!(enter(&mut score, now, true, true, NOW), granted(false));
        assert_eq!(
            enter(&mut score, late, true, true, NOW),
            Verdict::Stale { undo: true }
        );
        assert!(!leave(&mut score, late));
        assert_eq!(score.holder(), Some(now));
    }

    #[test]
    fn an_invalid_request_gives_its_lock_back() {
        let mut score = Score::default();
        assert_eq!(
            enter(&mut score, Seq(1), true, false, NOW),
            Verdict::Refused { undo: true }
        );
    }
}
