//! A node's cache without bytes: sets of entries in the order of their use,
//! and the events under way.

use rackmem_proto::engine::{self, Entries, Plan};
use rackmem_proto::flowcc::LocalStatus;
use std::collections::BTreeMap;

/// Nobody: no entry, no block.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Entry {
    block: u32,
    status: LocalStatus,
    reserved: bool,
    used: i64,
}

/// The cache of a node that knows a fixed number of blocks.
pub struct Cache {
    entries: Box<[Entry]>,
    /// Of each set, the entries by the time of their last use; empty ones come first.
    sets: Box<[BTreeMap<i64, u32>]>,
    ways: u32,
    /// Where each block is.
    at: Box<[u32]>,
    /// Whether an event on the block is under way.
    busy: Box<[bool]>,
    newest: i64,
    oldest: i64,
}

impl Cache {
    /// An empty cache of `capacity` entries for blocks `0..blocks`, in sets of so many ways.
    pub fn new(capacity: u32, blocks: u32, ways: u32) -> Self {
        let ways = ways.max(1);
        let sets = (capacity / ways).max(1);
        let used = |i: u32| -i64::from(i % ways);
        let entry = |i: u32| Entry {
            block: NONE,
            status: LocalStatus::Invalid,
            reserved: false,
            used: used(i),
        };
        let set = |s: u32| (s * ways..(s + 1) * ways).map(|i| (used(i), i)).collect();
        Cache {
            entries: (0..sets * ways).map(entry).collect(),
            sets: (0..sets).map(set).collect(),
            ways,
            at: vec![NONE; blocks as usize].into(),
            busy: vec![false; blocks as usize].into(),
            newest: 0,
            oldest: -i64::from(ways),
        }
    }

    /// What the node may do with a block.
    pub fn status(&self, block: u32) -> LocalStatus {
        self.find(block)
            .map_or(LocalStatus::Invalid, |found| found.1)
    }

    /// What the node may do with what is in an entry.
    pub fn status_at(&self, at: u32) -> LocalStatus {
        self.entries[at as usize].status
    }

    /// An access: whether it is a hit, which makes its entry the newest of its set.
    pub fn hit(&mut self, block: u32, writes: bool) -> bool {
        let Some((at, status)) = self.find(block) else {
            return false;
        };
        let hits = !writes || status == LocalStatus::Modified;
        if hits {
            self.touch(at);
        }
        hits
    }

    /// Puts a block into an entry, or changes what may be done with it;
    /// `Invalid` empties the entry.
    pub fn install(&mut self, at: u32, block: u32, status: LocalStatus) {
        let entry = &mut self.entries[at as usize];
        if entry.block != NONE {
            self.at[entry.block as usize] = NONE;
        }
        entry.status = status;
        if status == LocalStatus::Invalid {
            entry.block = NONE;
            self.oldest -= 1;
            self.order(at, self.oldest);
        } else {
            entry.block = block;
            self.at[block as usize] = at;
            self.touch(at);
        }
    }

    /// The network's doing: downgrades or invalidates, and leaves the order as it is.
    pub fn lower(&mut self, block: u32, status: LocalStatus) {
        match self.find(block) {
            Some((at, _)) if status == LocalStatus::Invalid => self.install(at, block, status),
            Some((at, _)) => self.entries[at as usize].status = status,
            None => {}
        }
    }

    /// Decides what to do about a block that a thread wants, and reserves the entry that takes.
    pub fn plan(&mut self, block: u32, writes: bool) -> Plan<u32, u32> {
        let plan = engine::plan(self, block, writes);
        let (at, subject) = match plan {
            Plan::Begin(at, _) => (at, block),
            Plan::Evict(at, old) => (at, old),
            _ => return plan,
        };
        self.entries[at as usize].reserved = true;
        self.busy[subject as usize] = true;
        plan
    }

    /// The event on a block in an entry is over.
    pub fn release(&mut self, at: u32, block: u32) {
        self.entries[at as usize].reserved = false;
        self.busy[block as usize] = false;
    }

    /// "We hash its tag into a bucket" (§6): neighbours are spread at random,
    /// and some sets get too many.
    fn set(&self, block: u32) -> usize {
        let mixed = u64::from(block + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (((mixed >> 32) * self.sets.len() as u64) >> 32) as usize
    }

    fn touch(&mut self, at: u32) {
        if self.entries[at as usize].used != self.newest {
            self.newest += 1;
            self.order(at, self.newest);
        }
    }

    fn order(&mut self, at: u32, used: i64) {
        let set = &mut self.sets[(at / self.ways) as usize];
        let before = std::mem::replace(&mut self.entries[at as usize].used, used);
        set.remove(&before);
        set.insert(used, at);
    }
}

impl Entries for Cache {
    type Entry = u32;
    type Block = u32;

    fn under_way(&self, block: u32) -> bool {
        self.busy[block as usize]
    }

    fn find(&self, block: u32) -> Option<(u32, LocalStatus)> {
        let at = self.at[block as usize];
        (at != NONE).then(|| (at, self.status_at(at)))
    }

    fn room(&self, block: u32) -> Option<(u32, Option<u32>)> {
        // A block with an event under way is some other thread's business.
        let taken = |at: u32| {
            let Entry {
                block, reserved, ..
            } = self.entries[at as usize];
            reserved || block != NONE && self.busy[block as usize]
        };
        let at = *self.sets[self.set(block)]
            .values()
            .find(|at| !taken(**at))?;
        let old = self.entries[at as usize].block;
        Some((at, (old != NONE).then_some(old)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LocalStatus::{Invalid, Modified, Shared};
    use rackmem_proto::engine::Purpose;

    fn fill(cache: &mut Cache, block: u32, status: LocalStatus) -> u32 {
        let Plan::Begin(at, _) = cache.plan(block, status == Modified) else {
            panic!("there is room");
        };
        cache.install(at, block, status);
        cache.release(at, block);
        at
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = Cache::new(8, 20, 8);
        let entries: Vec<u32> = (0..8)
            .map(|block| fill(&mut cache, block, Shared))
            .collect();
        assert!(cache.hit(0, false));
        assert!(!cache.hit(0, true));
        assert_eq!(cache.plan(9, false), Plan::Evict(entries[1], 1));
        // Reserved entries are passed over, and so is the block of another thread's event.
        assert_eq!(cache.plan(1, false), Plan::Wait);
        assert_eq!(cache.plan(10, true), Plan::Evict(entries[2], 2));
        assert_eq!(
            cache.plan(3, true),
            Plan::Begin(entries[3], Purpose::Upgrade)
        );
        assert_eq!(cache.plan(11, true), Plan::Evict(entries[4], 4));
        cache.install(entries[1], 1, Invalid);
        cache.release(entries[1], 1);
        assert_eq!(cache.plan(9, false), Plan::Begin(entries[1], Purpose::Read));
    }

    #[test]
    fn what_the_network_takes_away_is_used_first() {
        let mut cache = Cache::new(8, 20, 8);
        let entries: Vec<u32> = (0..8)
            .map(|block| fill(&mut cache, block, Modified))
            .collect();
        cache.lower(7, Invalid);
        cache.lower(6, Shared);
        assert_eq!((cache.status(7), cache.status(6)), (Invalid, Shared));
        assert_eq!(
            cache.plan(12, false),
            Plan::Begin(entries[7], Purpose::Read)
        );
        assert_eq!(cache.plan(13, false), Plan::Evict(entries[0], 0));
    }

    #[test]
    fn sets_overflow_as_random_ones_do() {
        let cache = Cache::new(8192, 8192, 8);
        let mut load = vec![0u32; 1024];
        (0..8192).for_each(|block| load[cache.set(block)] += 1);
        let excess: u32 = load.iter().map(|n| n.saturating_sub(8)).sum();
        // Poisson with mean 8: 1.117 beyond eight on average.
        assert!((1000..1300).contains(&excess), "{excess}");
    }
}
