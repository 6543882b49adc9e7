//! Which domains memory waits for: `Q = min Qi − 2` (BI §3.5), over those that can still read.
//!
//! A domain that the rack has excluded may only be slow, and wake up. So it is told first, in this
//! domain's row, and waited for until no section of its can be believed any more: it looks for that
//! whenever it quiesces, and without quiescing it cannot begin sections for long.

use super::MAX_DOMAINS;
use super::board::{DomainRow, OwnBoard, Presence};
use super::clock::Tick;
use super::defect::Defect;
use super::ring::Queue;
use super::section::Bound;

/// What is subtracted from the least quiescence. One tick is for clocks that differ; the paper's
/// other one, for a clock that is read stale, only makes the sum older: it is to spare.
const MARGIN: u64 = 2;

/// Whom this domain does not wait for, and since when.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Roll {
    told: [Option<(u32, Tick)>; MAX_DOMAINS],
    bound: Bound,
    broken: Option<Defect>,
}

impl Roll {
    /// Of a domain that waits for everybody.
    pub fn new(bound: Bound, broken: Option<Defect>) -> Self {
        Roll {
            told: [None; MAX_DOMAINS],
            bound,
            broken,
        }
    }

    /// Since when a domain is not waited for, or will not be.
    pub fn told(&self, domain: u8) -> Option<Tick> {
        let told = self.told.get(usize::from(domain)).copied().flatten();
        told.map(|(_, since)| since)
    }

    /// Whether nobody waits for a life of a domain any more: no section of its is believed, and
    /// what it had to give out may be taken over.
    pub fn has_ended(&self, domain: u8, incarnation: u32, now: Tick) -> bool {
        let told = self.told.get(usize::from(domain)).copied().flatten();
        told.is_some_and(|(life, since)| {
            life == incarnation && now.since(since) > self.bound.grace()
        })
    }

    /// What was modified, and what was freed, before these ticks is in nobody's cache. `lives`: a
    /// domain's process is no member that the rack has excluded. `now`: the clock, read before.
    pub fn horizon(
        &mut self,
        board: &mut impl OwnBoard,
        lives: impl Fn(u8, &DomainRow) -> bool,
        now: Tick,
    ) -> [Tick; 2] {
        let mut least = [now; 2];
        for domain in 0..board.domains().min(MAX_DOMAINS as u8) {
            let row = board.row(domain);
            if !self.counts(domain, &row, board, lives(domain, &row), now) {
                continue;
            }
            least[Queue::Modified as usize] = least[Queue::Modified as usize].min(row.modified);
            least[Queue::Freed as usize] = least[Queue::Freed as usize].min(row.freed);
        }
        let margin = match self.broken {
            Some(Defect::NoMargin) => 0,
            _ => MARGIN,
        };
        least.map(|tick| tick.minus(margin))
    }

    fn counts(
        &mut self,
        domain: u8,
        row: &DomainRow,
        board: &mut impl OwnBoard,
        lives: bool,
        now: Tick,
    ) -> bool {
        let late = now.since(row.freed) > self.bound.lag;
        match (row.presence, self.broken) {
            (Presence::Absent, _) => return false,
            (Presence::Joining, Some(Defect::JoinUncounted)) => return false,
            (_, Some(Defect::ForgetLateReader)) if late => return false,
            (_, Some(Defect::CountTheDead)) => return true,
            _ if lives => return true,
            _ => {}
        }
        let told = &mut self.told[usize::from(domain)];
        let since = match *told {
            Some((incarnation, since)) if incarnation == row.incarnation => since,
            _ => {
                board.exclude(domain, row.incarnation);
                *told = Some((row.incarnation, now.plus(1)));
                now.plus(1)
            }
        };
        now.since(since) <= self.bound.grace() && self.broken != Some(Defect::NoGrace)
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::BoardIn;
    use super::super::quiescence::{Quiescence, Quiescer};
    use super::*;
    use alloc::vec::Vec;

    const BOUND: Bound = Bound { lag: 1, section: 2 };

    /// Two domains that have joined at 10; what domain 0 sees of it.
    fn two() -> BoardIn<Vec<u64>> {
        let mut board = BoardIn::of_two(1);
        board.join(7, Tick(10));
        board.me = 0;
        board.join(1, Tick(10));
        board
    }

    fn quiesced(board: &mut BoardIn<Vec<u64>>, me: u8, at: u64) {
        let was = core::mem::replace(&mut board.me, me);
        for queue in Queue::BOTH {
            board.tell(queue, Tick(at));
        }
        board.me = was;
    }

    #[test]
    fn memory_waits_for_the_slowest_domain_that_lives() {
        let (mut board, mut roll) = (two(), Roll::new(BOUND, None));
        quiesced(&mut board, 0, 20);
        let horizon = roll.horizon(&mut board, |_, _| true, Tick(20));
        assert_eq!(horizon, [Tick(8); 2]);
        quiesced(&mut board, 1, 19);
        let horizon = roll.horizon(&mut board, |_, _| true, Tick(20));
        assert_eq!(horizon, [Tick(17); 2]);
    }

    #[test]
    fn a_domain_that_is_excluded_is_told_and_waited_for_until_it_must_have_stopped() {
        let (mut board, mut roll) = (two(), Roll::new(BOUND, None));
        let quiescer = Quiescer::new((1, 7), None);
        assert!(!quiescer.is_excluded(&board));
        let over = 20 + 1 + BOUND.grace() + 1;
        for now in 20..over {
            quiesced(&mut board, 0, now);
            let horizon = roll.horizon(&mut board, |domain, _| domain == 0, Tick(now));
            assert_eq!(horizon, [Tick(8); 2], "{now}");
            assert!(!roll.has_ended(1, 7, Tick(now)));
            assert!(quiescer.is_excluded(&board));
        }
        quiesced(&mut board, 0, over);
        let horizon = roll.horizon(&mut board, |domain, _| domain == 0, Tick(over));
        assert_eq!(horizon, [Tick(over - 2); 2]);
        assert!(roll.has_ended(1, 7, Tick(over)) && !roll.has_ended(1, 8, Tick(over)));
        assert!(!roll.has_ended(0, 1, Tick(over)));
        // Its node starts again: another life, which is waited for.
        board.me = 1;
        board.join(8, Tick(over));
        board.me = 0;
        assert!(!Quiescer::new((1, 8), None).is_excluded(&board));
        let horizon = roll.horizon(&mut board, |_, _| true, Tick(over + 9));
        assert_eq!(horizon, [Tick(over - 2); 2]);
    }

    /// Clocks of others that are ahead are heard of, and first looks distrust what is there.
    #[test]
    fn a_look_tells_the_latest_clock_of_others() {
        let mut board = two();
        board.me = 1;
        board.show(Tick(33));
        board.me = 0;
        board.show(Tick(44));
        let mut quiescence = Quiescence::begin(Tick(11), Vec::new(), None);
        let latest = Quiescer::new((0, 1), None).look(&board, &mut quiescence);
        assert_eq!(latest, Tick(33));
        assert!(quiescence.found(Queue::Modified).all);
    }
}
