//! What a node tells of the rack's members, for what is built on it: which memory is there,
//! and which has died.

use crate::host::names::Names;
use crate::host::rebuilding::RebuildMetrics;
use crate::node::Node;
use rackmem_proto::wire::{HomeId, Tag};
use std::sync::atomic::Ordering::Relaxed;

impl Node {
    /// The epoch that this process lives in.
    pub fn epoch(&self) -> u32 {
        self.inner.access.standing.epoch()
    }

    /// Whether the rack has a switch just now.
    pub fn has_switch(&self) -> bool {
        self.inner.access.standing.switch()
    }

    /// Which node serves the memory that an address is in, member or not;
    /// none if the rack has no such memory.
    pub fn host_of(&self, addr: u64) -> Option<u16> {
        let home = Tag(addr).home();
        let host = self.inner.access.standing.host(home);
        host.filter(|_| self.inner.has_home(home))
    }

    /// Whether the memory that an address is in outlives the node that serves it: it is a region's
    /// with copies ([`RegionSpec::survives`](crate::RegionSpec::survives)).
    pub fn has_copies(&self, addr: u64) -> bool {
        !Tag(addr).home().is_own()
    }

    /// How many nodes keep the names of regions, so that a minority of them may die; `None`: node 0
    /// does ([`Config::copies`](crate::Config::copies)).
    pub fn name_copies(&self) -> Option<u8> {
        self.inner.access.agents.names.as_ref().map(Names::copies)
    }

    /// Whether a node is a member just now, as far as this process knows.
    pub fn is_member(&self, node: u16) -> bool {
        self.inner.access.standing.live(node)
    }

    /// How often a node has become a member; 0 for one that this process has not heard of.
    /// It rises when a node that died, or left, is back with new memory.
    pub fn incarnation_of(&self, node: u16) -> u32 {
        self.inner.access.standing.incarnation(node)
    }

    /// Where the memory of this node begins, as this process gives it.
    pub(crate) fn first_address(&self) -> u64 {
        let before = u64::from(self.incarnation_of(self.inner.id).saturating_sub(1));
        HomeId::of(self.inner.id).start().0 + before * self.inner.access.span
    }

    /// An address in the memory of this node that no other call of it has asked for, and no call of
    /// another incarnation. Nothing need be there.
    pub(crate) fn call_address(&self) -> u64 {
        let span = self.inner.access.span;
        self.first_address() + self.inner.calls.fetch_add(1, Relaxed) % span
    }

    /// What rebuilds have come to. Waits for no operation of another thread,
    /// unlike [`Node::metrics`].
    pub fn rebuilds(&self) -> RebuildMetrics {
        self.inner.access.agents.rebuilding.metrics()
    }

    /// Blocks of this node's memory whose content is lost just now.
    /// Waits for no operation of another thread.
    pub fn blocks_lost(&self) -> u64 {
        self.inner.access.agents.home_counters().lost
    }

    /// From now on this node gives out none of its memory, to no node's threads:
    /// [`AllocError::OutOfMemory`](crate::AllocError::OutOfMemory). Or it does again.
    /// A node that is about to leave sees by
    /// [`MemoryMetrics::given`](crate::diagnostics::MemoryMetrics::given) when the last of it has
    /// been freed; others give back what they keep for their next allocations a tenth of a second
    /// after they have used it last.
    pub fn withhold_memory(&self, yes: bool) {
        self.inner.access.agents.books(|home| home.withhold(yes));
    }

    /// The incarnation of its home that an address is memory of.
    pub fn incarnation_at(&self, addr: u64) -> u32 {
        let chunks = Tag(addr).offset() / self.inner.access.span;
        u32::try_from(chunks + 1).unwrap_or(u32::MAX)
    }
}
