//! Before anybody is told: an operation that is done waits for the lease,
//! as it does in the library.

use super::{Around, State, Thread};
use crate::world::keeping::clock;
use crate::world::mutation::Mutation;
use rackmem_proto::membership::{Telling, Term};

/// From what is done to telling it, at most, in nanoseconds: a thread can lose its processor there.
const UNTOLD: u64 = 2_000;
/// Between two looks whether the lease is back.
const AGAIN: u64 = 5_000;

impl Thread {
    /// Whether an operation may begin. The clock is not read here: what the keeper told last
    /// counts.
    pub(super) fn may_begin(&mut self, around: &mut Around<'_>) -> bool {
        let lease = around.node.lease;
        if !lease.serves {
            self.rest(around.fabric.now + AGAIN);
            return false;
        }
        let now = || clock(around.fabric, &lease, self.config.mutation);
        self.judged.held = lease.term.holds(now);
        self.judged.done = None;
        true
    }

    /// The operation is done, or has failed.
    pub(super) fn finish(&mut self, around: &mut Around<'_>) {
        if around.node.lease.term == Term::ENDLESS {
            return self.conclude(around);
        }
        let after = self.random.below(UNTOLD);
        (self.state, self.until) = (State::Telling, around.fabric.now + after);
    }

    /// Tells what has been done, if it may be told.
    pub(super) fn tell(&mut self, around: &mut Around<'_>) -> bool {
        let lease = around.node.lease;
        let now = || clock(around.fabric, &lease, self.config.mutation);
        let telling = match self.config.mutation {
            Some(Mutation::TellUnconfirmed) => Telling::Now,
            Some(Mutation::ConfirmAtStart) if self.judged.held => Telling::Now,
            _ => lease.term.telling(false, now),
        };
        if telling != Telling::Now {
            self.judged.work.untold += 1;
            self.until = around.fabric.now + AGAIN;
            return false;
        }
        if let Some(done) = self.judged.done.take() {
            self.judge(done, around);
        }
        self.conclude(around);
        true
    }
}
