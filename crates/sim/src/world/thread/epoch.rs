//! What the end of an epoch, or of its node, does to a thread.

use super::{Judged, State, Thread};
use crate::world::fabric::Fabric;
use crate::world::node::WorldNode;
use crate::world::oracle::Oracle;
use rackmem_proto::flowcc::Interrupted;

impl Thread {
    /// The rack goes on to another epoch: what is under way has not happened. A block that was on
    /// its way home comes back: home may have some of it, and nobody has been told that it has all.
    pub fn enter(
        &mut self,
        node: &mut WorldNode,
        fabric: &mut Fabric,
        oracle: &mut Oracle,
    ) -> Interrupted {
        let (epoch, switch) = (node.view.epoch, node.view.switch.is_some());
        let interrupted = self.client.enter(epoch, switch);
        fabric.wake(self.index, 0);
        let event = self.client.event;
        if event.is_some_and(|event| event.access.is_leaving()) {
            let _ = self.client.go_on(fabric.now, node);
            node.follow(fabric);
        }
        if let State::Busy(_, tag) = self.state
            && !node.reaches(tag)
            && self.let_go(oracle)
        {
            // A lock of memory that is gone is nobody's: there is nothing to unlock.
            self.client.event = None;
            self.judged.work.gone += 1;
            self.operation = None;
            self.judged.work.operations += 1;
            self.state = State::Resting(0);
        }
        interrupted
    }

    /// The lock that it holds for its own purposes excludes nobody any more. `false`:
    /// it holds none.
    fn let_go(&mut self, oracle: &mut Oracle) -> bool {
        let holding = self.client.holding();
        holding
            .inspect(|(tag, shared)| oracle.let_go(*tag, *shared))
            .is_some()
    }

    /// The rack's members have changed, and the epoch has not: who has left answers no more.
    pub fn look_around(&mut self, node: &WorldNode, fabric: &mut Fabric) {
        if let (State::Busy(_, tag), Some(event)) = (self.state, self.client.event)
            && !event.access.purpose().locks()
            && !node.reaches(tag)
        {
            self.client.event = None;
            self.state = State::Resting(0);
            fabric.wake(self.index, 0);
        }
    }

    /// Everyone is ready for the new epoch.
    pub fn poke(&mut self, fabric: &mut Fabric) {
        self.client.engine.poke();
        fabric.wake(self.index, 0);
    }

    /// Its node dies.
    pub fn die(&mut self, oracle: &mut Oracle) {
        self.let_go(oracle);
        self.client.event = None;
        if self.operation.take().is_some() {
            self.judged.work.cut_off += 1;
            self.judged.work.operations += 1;
        }
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
            self.state = State::Resting(0);
        }
        fabric.wake(self.index, 0);
    }
}
