//! Deaths, returns and departures of a thread's node, and what that leaves it to do.

use super::{Judged, State, Thread};
use crate::world::fabric::Fabric;
use crate::world::oracle::Oracle;

impl Thread {
    /// The lock that it holds for its own purposes excludes nobody any more,
    /// and its event is nobody's.
    pub(super) fn let_go(&mut self, oracle: &mut Oracle) {
        if let Some((tag, shared)) = self.client.holding() {
            oracle.let_go(tag, shared);
        }
        self.client.event = None;
    }

    /// Its operation ends without having been done. `false`: it has none.
    pub(super) fn give_up(&mut self) -> bool {
        let had = self.operation.take().is_some();
        self.judged.work.operations += u64::from(had);
        self.rest(0);
        had
    }

    /// Its node dies.
    pub fn die(&mut self, oracle: &mut Oracle) {
        self.let_go(oracle);
        self.judged.work.cut_off += u64::from(self.give_up());
        self.state = State::Finished;
        self.dead = true;
    }

    /// Its node has started again: a new thread with what was left to do.
    pub fn born_again(&mut self, epoch: u32, incarnation: u32, switch: bool, fabric: &mut Fabric) {
        let random = self.random.fork();
        let start = (epoch, incarnation, switch);
        let mut next = Thread::new(self.index, &self.config, random, start);
        next.left = self.left;
        next.judged = Judged {
            earlier_retransmissions: self.retransmissions(),
            work: self.judged.work,
            complaint: self.judged.complaint.take(),
            worst: self.judged.worst,
            ..Judged::default()
        };
        *self = next;
        fabric.wake(self.index, 0);
    }

    /// Its node asks it to do nothing new.
    pub fn retire(&mut self) -> u32 {
        std::mem::take(&mut self.left)
    }

    /// Gives it more to do.
    pub fn resume(&mut self, left: u32, fabric: &mut Fabric) {
        self.left = left;
        if self.state == State::Finished {
            self.rest(0);
        }
        fabric.wake(self.index, 0);
    }
}
