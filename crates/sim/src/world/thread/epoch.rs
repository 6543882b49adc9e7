//! What the end of an epoch, or of its node, does to a thread.

use super::{Running, State, Thread};
use crate::world::fabric::{Fabric, Occurrence};
use crate::world::node::Node;
use crate::world::oracle::Oracle;
use rackmem_proto::engine::Do;
use rackmem_proto::flowcc::Interrupted;

impl Thread {
    /// The rack goes on to another epoch: what is under way has not happened.
    pub fn enter(
        &mut self,
        node: &mut Node,
        fabric: &mut Fabric,
        oracle: &mut Oracle,
    ) -> Interrupted {
        let (epoch, switch) = (node.view.epoch, node.view.switch.is_some());
        let interrupted = self.engine.enter(epoch, switch);
        self.unlocking = None;
        fabric.wake(self.index, 0);
        let State::Busy(running) = self.state else {
            return interrupted;
        };
        if running.access.is_leaving() {
            self.come_back(running, node, fabric);
        }
        if !node.reaches(running.tag) {
            self.lose_home(running, oracle);
        }
        interrupted
    }

    /// A block was on its way home. Home may have some of it, and nobody has been told that it has all.
    fn come_back(&mut self, running: Running, node: &mut Node, fabric: &mut Fabric) {
        let Running {
            mut access, tag, ..
        } = running;
        let defect = self.defect();
        let todo = access.next(&mut self.engine, || fabric.now, defect);
        match (todo, running.slot()) {
            (Do::Set(status), Some(slot)) => {
                node.cache.install(slot, tag, status);
                fabric.note(self.id.node, tag, "not evicted after all");
            }
            (Do::Left, _) => node.left(tag),
            _ => {}
        }
        self.state = State::Busy(Running { access, ..running });
    }

    /// The rack's members have changed, and the epoch has not: who has left answers no more.
    pub fn look_around(&mut self, node: &Node, fabric: &mut Fabric) {
        if let State::Busy(running) = self.state
            && !running.access.purpose().locks()
            && !node.reaches(running.tag)
        {
            self.state = State::Resting(0);
            fabric.wake(self.index, 0);
        }
    }

    /// A lock of memory that is gone is nobody's: there is nothing to unlock.
    fn lose_home(&mut self, running: Running, oracle: &mut Oracle) {
        if running.access.is_held() {
            oracle.let_go(running.tag, running.access.purpose().shares());
            self.work.gone += 1;
            self.operation = None;
            self.work.operations += 1;
            self.state = State::Resting(0);
        }
    }

    /// Everyone is ready for the new epoch.
    pub fn poke(&mut self, fabric: &mut Fabric) {
        self.engine.poke();
        fabric.wake(self.index, 0);
    }

    /// Its node dies.
    pub fn die(&mut self, oracle: &mut Oracle) {
        if let State::Busy(running) = self.state
            && running.access.is_held()
        {
            oracle.let_go(running.tag, running.access.purpose().shares());
        }
        if self.operation.take().is_some() {
            self.work.cut_off += 1;
            self.work.operations += 1;
        }
        self.state = State::Finished;
        self.dead = true;
    }

    /// Its node has started again: a new thread with what was left to do.
    pub fn born_again(&mut self, epoch: u32, incarnation: u32, switch: bool, fabric: &mut Fabric) {
        let random = self.random.fork();
        let mut next = Thread::new(
            self.index,
            &self.config,
            random,
            (epoch, incarnation, switch),
        );
        (next.work, next.left) = (self.work, self.left);
        next.complaint = self.complaint.take();
        next.earlier_retransmissions = self.retransmissions();
        next.worst = self.worst;
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

impl Fabric {
    /// Lets a thread look again, after so many nanoseconds.
    pub fn wake(&mut self, thread: usize, after: u64) {
        self.schedule(after, Occurrence::Wake(thread));
    }
}
