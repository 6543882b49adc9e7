//! What the end of an epoch does to a thread's event.

use super::Thread;
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
        let interrupted = self.client.engine.enter(epoch, switch);
        fabric.wake(self.index, 0);
        if self.client.event.is_some_and(|event| event.is_leaving()) {
            let _ = node.go_on(&mut self.client, fabric.now);
            node.follow(fabric);
        }
        let holding = self.client.holding();
        if holding.is_some_and(|(tag, _)| !node.reaches(tag)) {
            // A lock of memory that is gone is nobody's: there is nothing to unlock.
            self.let_go(oracle);
            self.judged.work.gone += 1;
            self.give_up();
        }
        interrupted
    }

    /// The rack's members have changed, and the epoch has not: who has left answers no more.
    pub fn look_around(&mut self, node: &WorldNode, fabric: &mut Fabric) {
        let event = self.client.event.as_ref();
        let call = event.filter(|event| !event.purpose().locks());
        if call.is_some_and(|event| !node.reaches(self.about(event))) {
            self.client.event = None;
            self.rest(0);
            fabric.wake(self.index, 0);
        }
    }

    /// Everyone is ready for the new epoch.
    pub fn poke(&mut self, fabric: &mut Fabric) {
        self.client.engine.poke();
        fabric.wake(self.index, 0);
    }
}
