//! What threads of a world have done, in figures.

use rackmem_proto::engine::{Access, Purpose};
use rackmem_proto::flowcc::LocalStatus;

/// What threads have done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Operations that ended.
    pub operations: u64,
    /// Of these, without a packet.
    pub hits: u64,
    /// Events that were refused, to be tried again.
    pub refused: u64,
    /// Dirty copies written home by an eviction.
    pub dirty_evictions: u64,
    /// Clean copies given back.
    pub clean_evictions: u64,
    /// Clean copies made writable.
    pub upgrades: u64,
    /// Locks held for a while.
    pub holds: u64,
    /// Objects of memory obtained.
    pub objects: u64,
    /// Objects of memory given back.
    pub freed: u64,
    /// Blocks that a home has sent to a thread that keeps no copy.
    pub fetched: u64,
    /// Blocks that a home has put in place for one.
    pub stored: u64,
    /// Increments that a home has made for one.
    pub operated: u64,
    /// Blocks of long ranges read and written in the memory of the thread's own node.
    pub in_place: u64,
    /// Times an operation was told that its block's last content is lost.
    pub lost: u64,
    /// Operations that were told that their memory is gone.
    pub gone: u64,
    /// Operations that died with their node.
    pub cut_off: u64,
    /// Operations that were done and not told of at once, because the lease was over.
    pub untold: u64,
    /// Operations that a node did alone, when the rack had gone on without it.
    pub alone: u64,
    /// Of these, reads that saw something old.
    pub stale: u64,
}

impl Work {
    /// A cache entry of this event has this status from now on.
    pub(super) fn set(&mut self, event: &Access, status: LocalStatus) {
        match (event.purpose(), status) {
            (Purpose::EvictClean, _) => self.clean_evictions += 1,
            (_, LocalStatus::Invalid) => self.dirty_evictions += 1,
            (Purpose::Upgrade, _) => self.upgrades += 1,
            _ => {}
        }
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &Work) {
        self.operations += other.operations;
        self.hits += other.hits;
        self.refused += other.refused;
        self.dirty_evictions += other.dirty_evictions;
        self.clean_evictions += other.clean_evictions;
        self.upgrades += other.upgrades;
        self.holds += other.holds;
        self.objects += other.objects;
        self.freed += other.freed;
        self.fetched += other.fetched;
        self.stored += other.stored;
        self.operated += other.operated;
        self.in_place += other.in_place;
        self.lost += other.lost;
        self.gone += other.gone;
        self.cut_off += other.cut_off;
        self.untold += other.untold;
        self.alone += other.alone;
        self.stale += other.stale;
    }
}
