//! What threads of a world have done, in figures.

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
    /// Chunks of memory obtained.
    pub chunks: u64,
}

impl Work {
    /// Adds another thread's.
    pub fn add(&mut self, other: &Work) {
        self.operations += other.operations;
        self.hits += other.hits;
        self.refused += other.refused;
        self.dirty_evictions += other.dirty_evictions;
        self.clean_evictions += other.clean_evictions;
        self.upgrades += other.upgrades;
        self.holds += other.holds;
        self.chunks += other.chunks;
    }
}
