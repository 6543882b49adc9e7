//! A node goes on to another view, and takes its part of a rebuild (§5.4).

use super::WorldNode;
use crate::site::Site;
use crate::world::fabric::Fabric;
use crate::world::mutation::Mutation;
use crate::world::oracle::Oracle;
use crate::world::thread::Thread;
use rackmem_proto::engine::Change;
use rackmem_proto::membership::View;
use rackmem_proto::wire::Copyset;

/// Records that go into a packet: few, so that lists come in parts.
pub const FIT: usize = 3;

impl WorldNode {
    /// There is a new view. Returns whether it is of another epoch.
    pub fn learn(
        &mut self,
        view: &View,
        threads: &mut [Thread],
        fabric: &mut Fabric,
        oracle: &mut Oracle,
    ) -> bool {
        if view.version <= self.view.version {
            return false;
        }
        let (id, version, epoch) = (self.id, view.version, view.epoch);
        fabric.tell(|| format!("node {id} learns of view {version}, epoch {epoch}"));
        if !view.is_heavy_after(&self.view) {
            self.view = *view;
            if self.in_service() {
                self.choose_shadow();
            }
            return false;
        }
        let mut change = Change::between(&self.settled, view);
        self.stop(*view, &change);
        let threads = threads.iter_mut();
        let cut = threads.map(|t| t.enter(self, fabric, oracle)).collect();
        if self.mutated(Mutation::ForgetIncarnation) {
            change.gone = Copyset(change.gone.0 & !view.live.0);
        }
        self.begin(change, cut);
        self.follow(fabric);
        let cut_off = self.recovery().cut_off();
        fabric.tell(|| format!("node {id} begins its rebuild: {cut_off} events cut off"));
        true
    }

    /// Does what can be done.
    pub fn proceed(&mut self, fabric: &mut Fabric) {
        let goes_on = Site::proceed(self);
        self.follow(fabric);
        if goes_on {
            self.poked = true;
            let (id, epoch) = (self.id, self.view.epoch);
            fabric.tell(|| format!("node {id} serves in epoch {epoch}"));
        }
    }
}
