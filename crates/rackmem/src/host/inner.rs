//! What handles of a node share.

use crate::error::AccessError;
use crate::host::access::Access;
use crate::host::alloc::Allocator;
use crate::host::driving::driver::Driver;
use rackmem_fabric::Net;
use rackmem_proto::membership::View;
use rackmem_proto::wire::{HomeId, NodeId};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

/// Where the region table is, and in which epoch; 0 where it stays there in all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    pub first: u64,
    pub epoch: u32,
}

pub(crate) struct NodeInner {
    pub id: NodeId,
    pub nodes: usize,
    /// What tells this rack from others in files that outlive it.
    pub rack: u64,
    pub block: usize,
    pub access: Access,
    pub allocator: Allocator,
    /// What has the events of futures under way.
    pub driver: Driver,
    /// The rack is open and this process may serve, since its lease is renewed:
    /// what every hit checks.
    pub serving: AtomicBool,
    pub closed: Arc<AtomicBool>,
    /// Calls that have been given a number.
    pub calls: AtomicU64,
}

impl NodeInner {
    /// Whether the rack has such a home. Every hit asks, so it is a comparison and nothing else;
    /// whether the home lives, a miss asks.
    #[inline]
    pub fn has_home(&self, home: HomeId) -> bool {
        (home.0 as usize) < self.nodes || self.has_kept(home)
    }

    #[cold]
    fn has_kept(&self, home: HomeId) -> bool {
        let kept = &self.access.agents.kept;
        // Whoever has told the address may have heard of it before this process has.
        let look = || self.access.groups.look().is_ok() && kept.has(home);
        kept.has(home) || home.group().is_some() && look()
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
        self.access.agents.objects.serve(open);
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
            // Nobody has to tell anything: who kept homes of groups cannot have left.
            agents.locks.all_told();
        } else if !agents
            .rebuilding
            .run(view, agents, requesters, net, overtaken)
        {
            return;
        }
        agents.follow(view, net);
        standing.resume();
        if entered {
            agents.resume(net);
        }
        let lives = view.live.contains(self.id);
        agents.objects.answer_in(lives.then_some(view.epoch));
        if let Some(desk) = agents.desk.as_ref().filter(|_| lives) {
            desk.open(view.epoch, &view.incarnations);
        }
        if let Some(twins) = agents.twins.as_ref().filter(|_| lives) {
            twins.open(view.epoch, &view.incarnations);
        }
        if let Some(names) = &agents.names {
            names.may_serve(view.epoch);
        }
    }

    /// Where the region table is: every incarnation of its node has another. Where a group has
    /// copies of it, this waits until this process lives by the newest view.
    pub fn table(&self) -> Result<Table, AccessError> {
        let Access {
            agents, standing, ..
        } = &self.access;
        let mut node = 0;
        let mut epoch = 0;
        if let Some(names) = &agents.names {
            (node, epoch) = names.await_term(self)?;
        }
        let before = u64::from(standing.incarnation(node).saturating_sub(1));
        let first = HomeId::of(node).start().0 + before * self.access.span;
        Ok(Table { first, epoch })
    }
}
