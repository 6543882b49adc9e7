//! A node goes on to another view, and takes its part of a rebuild (§5.4).

use super::{Here, Node};
use crate::world::block;
use crate::world::fabric::Fabric;
use crate::world::mutation::Mutation;
use crate::world::oracle::Oracle;
use crate::world::thread::Thread;
use rackmem_proto::engine::{self, Change, Recovery};
use rackmem_proto::flowcc::Rebuild;
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Copyset, GlobalStatus, Tag};

/// Records that go into a packet: few, so that lists come in parts.
pub const FIT: usize = 3;

/// An entry as its home had it: lock word, status, copyset, and whether the switch owned it.
pub type Before = (u16, GlobalStatus, Copyset, bool);

/// What became of a block's entry when its home settled.
#[derive(Clone, Copy, Debug)]
pub struct Settling {
    /// The block.
    pub tag: Tag,
    /// Its entry in the last epoch.
    pub before: Before,
    /// Whether its last content was lost already.
    pub was_lost: bool,
    /// Whether its last content is said to be lost.
    pub lost: bool,
    /// The nodes that have died since.
    pub gone: Copyset,
}

impl Node {
    /// Whether a block's home is in the rack, in the incarnation that has the block.
    pub fn reaches(&self, tag: Tag) -> bool {
        match self.mutation {
            Some(Mutation::ForgetIncarnation) => self.view.live.contains(tag.home()),
            _ => self.view.incarnation(tag.home()) == Some(block::incarnation(tag)),
        }
    }

    fn recovery(&self) -> &Recovery<block::Block> {
        let recovery = self.recovery.as_ref();
        recovery.expect("it is back when something has happened to it")
    }

    /// Whether no rebuild is under way here.
    pub fn in_service(&self) -> bool {
        self.recovery().in_service()
    }

    /// Whether nobody waits for this node's part of a rebuild.
    pub fn told_all(&self) -> bool {
        self.recovery().all_told()
    }

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
        let heavy = view.is_heavy_after(&self.view);
        self.view = *view;
        let (id, version, epoch) = (self.id, view.version, view.epoch);
        fabric.tell(|| format!("node {id} learns of view {version}, epoch {epoch}"));
        if !heavy {
            if self.in_service() {
                self.choose_shadow();
            }
            return false;
        }
        let mut change = Change::between(&self.settled, view);
        engine::stop(&mut Here::new(self, fabric, None), change.members);
        let threads = threads.iter_mut();
        let cut: Vec<_> = threads.map(|t| t.enter(self, fabric, oracle)).collect();
        if let Some(migrating) = &mut self.migrating {
            migrating.set_shadow(None, epoch);
        }
        if self.mutated(Mutation::ForgetIncarnation) {
            change.gone = Copyset(change.gone.0 & !view.live.0);
        }
        let mut here = Here::new(self, fabric, None);
        here.with_recovery(|recovery, here| recovery.begin(change, cut, here));
        let cut_off = self.recovery().cut_off();
        fabric.tell(|| format!("node {id} begins its rebuild: {cut_off} events cut off"));
        true
    }

    /// Does what can be done.
    pub fn proceed(&mut self, fabric: &mut Fabric) -> Vec<Settling> {
        let mut here = Here::new(self, fabric, None);
        let mut goes_on = false;
        here.with_recovery(|recovery, here| goes_on = recovery.proceed(here));
        let settled = here.settled;
        if goes_on {
            self.choose_shadow();
            engine::resume(&mut Here::new(self, fabric, None));
            self.poked = true;
            let (id, epoch) = (self.id, self.view.epoch);
            fabric.tell(|| format!("node {id} serves in epoch {epoch}"));
        }
        settled
    }

    /// Where a rebuild is, for a violation.
    pub fn describe(&self) -> String {
        let (id, version, epoch) = (self.id, self.view.version, self.view.epoch);
        let rebuild = self.recovery().rebuild().map(Rebuild::next);
        let done = self.in_service();
        format!(
            "node {id} {:?} view {version} epoch {epoch} rebuild {rebuild:?} done {done}",
            self.standing
        )
    }
}
