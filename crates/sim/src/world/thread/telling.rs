//! Before anybody is told: an operation that is done waits for the lease,
//! as it does in the library.

use super::{Around, State, Thread};
use crate::world::keeping::clock;
use crate::world::mutation::Mutation;
use crate::world::operation::Operation;
use rackmem_proto::membership::{Telling, Term};
use rackmem_proto::wire::Tag;

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

    /// Where each write survives: whether what it has written is still to be home.
    fn brings_home(&mut self, around: &mut Around<'_>) -> bool {
        let writes = match self.operation {
            Some(Operation::Access(.., action)) => action.writes() && self.judged.done.is_some(),
            _ => false,
        };
        match self.brings {
            None => {
                let survives = |tag: &Tag| writes && self.config.survives(*tag);
                let tag = self.target.filter(survives);
                self.brings = tag.map(|tag| (tag, false));
            }
            // Whether another node has had it in between and has died, nobody can tell.
            Some((tag, true)) => {
                let same = self.wrote == around.node.view.epoch;
                match same || self.config.mutation == Some(Mutation::TellOverEpochs) {
                    true => self.promised(tag, around),
                    false => self.judged.told.clear(),
                }
                self.brings = None;
                return false;
            }
            Some(_) => {}
        }
        self.brings.is_some()
    }

    /// The operation is done, or has failed.
    pub(super) fn finish(&mut self, around: &mut Around<'_>) {
        if self.brings_home(around) {
            return self.rest(around.fabric.now);
        }
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
