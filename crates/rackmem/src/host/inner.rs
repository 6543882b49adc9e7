//! What handles of a node share.

use crate::config::Mode;
use crate::config::lock_kind::LockKind;
use crate::host::access::Access;
use crate::host::alloc::Allocator;
use rackmem_fabric::Net;
use rackmem_proto::membership::View;
use rackmem_proto::wire::NodeId;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
};

pub(crate) struct NodeInner {
    pub id: NodeId,
    pub nodes: usize,
    pub block: usize,
    pub mode: Mode,
    /// What locks of any kind are.
    pub locks: LockKind,
    pub access: Access,
    pub allocator: Allocator,
    /// The rack is open and has cached blocks: what every hit checks.
    pub plain: AtomicBool,
    /// This process may serve: its lease is renewed.
    pub serving: AtomicBool,
    pub closed: Arc<AtomicBool>,
}

impl NodeInner {
    /// From now on hits are allowed, or not: a process that cannot show that it is alive may have been declared dead.
    pub fn serve(&self, held: bool) {
        let open = held && !self.closed.load(Relaxed);
        let cached = self.mode != Mode::Delegate;
        self.serving.store(open, SeqCst);
        self.plain.store(open && cached, SeqCst);
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
