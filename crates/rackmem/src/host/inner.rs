//! What handles of a node share.

use crate::host::access::Access;
use crate::host::alloc::Allocator;
use rackmem_fabric::Net;
use rackmem_proto::membership::View;
use rackmem_proto::wire::{HomeId, NodeId};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
};

pub(crate) struct NodeInner {
    pub id: NodeId,
    pub nodes: usize,
    pub block: usize,
    pub access: Access,
    pub allocator: Allocator,
    /// The rack is open and this process may serve, since its lease is renewed:
    /// what every hit checks.
    pub serving: AtomicBool,
    pub closed: Arc<AtomicBool>,
}

impl NodeInner {
    /// Whether the rack has such a home. Every hit asks, so it is a comparison and nothing else;
    /// whether the home lives, a miss asks.
    #[inline]
    pub const fn has_home(&self, home: HomeId) -> bool {
        (home.0 as usize) < self.nodes
    }

    /// From now on hits are allowed, or not: a process that cannot show that it is alive may have
    /// been declared dead.
    pub fn serve(&self, held: bool) {
        let open = held && !self.closed.load(Relaxed);
        self.serving.store(open, SeqCst);
        if open {
            self.access.agents.cache.open();
        } else {
            self.access.agents.cache.close();
        }
    }

    /// Lives by a view, after making the directory anew with the others if it begins an epoch.
    pub fn live_by(&self, view: &View, net: &dyn Net, overtaken: impl Fn() -> bool) {
        let Access {
            agents,
            requesters,
            standing,
            ..
        } = &self.access;
        let entered = view.epoch != standing.epoch();
        if !entered {
            standing.adopt(view);
            agents.rebuilding.note(view);
        } else if !agents
            .rebuilding
            .run(view, agents, requesters, net, overtaken)
        {
            return;
        }
        agents.follow(view);
        standing.resume();
        if entered {
            agents.resume(net);
        }
    }

    /// Where the region table begins: every incarnation of node 0 has another.
    pub fn table(&self) -> u64 {
        let incarnation = self.access.standing.incarnation(0);
        u64::from(incarnation.saturating_sub(1)) * self.access.span
    }
}
