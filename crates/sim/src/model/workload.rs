//! The micro benchmark of §7.2: who accesses which block, and where the blocks live.

use super::BLOCK;
use crate::world::Random;
use rackmem_proto::wire::{NodeId, Tag};

/// The paper's footprint, in blocks of 4 KiB: 8 GB for 8 nodes, of which 250 MB shared; 1 GB of cache a node.
const PAPER_WORKING_SET: u32 = 8 << 18;
const PAPER_NODES: u32 = 8;
const PAPER_SHARED: u32 = 64_000;
const PAPER_CACHE: u32 = 1 << 18;
/// Entries of a way of the switch as it is set up unless told otherwise, for the paper's footprint.
const SWITCH_SETS: u32 = 32_768;
/// The paper's epoch of the migration, in nanoseconds, and how many entries an agent moves in one.
const PERIOD: u64 = 10_000_000;

/// What the application threads do, and how large everything is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Workload {
    /// Nodes of the rack, `1..=32`.
    pub nodes: u16,
    /// Application threads of each.
    pub threads: u16,
    /// Percent of operations on data that all nodes share.
    pub sharing: u8,
    /// Percent of operations that read.
    pub reads: u8,
    /// Percent of operations on the block of the one before.
    pub locality: u8,
    /// How often the switch's entries are halved: some racks have more hot blocks than their switch has room for.
    pub halvings: u32,
    /// Every size and the migration's period are the paper's divided by this.
    pub scale: u32,
}

impl Default for Workload {
    /// The paper's, scaled by 1/32.
    fn default() -> Self {
        Workload {
            nodes: 8,
            threads: 4,
            sharing: 0,
            reads: 50,
            locality: 0,
            halvings: 0,
            scale: 32,
        }
    }
}

impl Workload {
    /// Blocks that only one node accesses, of each node. The footprint of a node does not depend on how many
    /// there are.
    pub fn private(&self) -> u32 {
        (PAPER_WORKING_SET - PAPER_SHARED) / PAPER_NODES / self.scale
    }

    /// Blocks that all nodes access.
    pub fn shared(&self) -> u32 {
        PAPER_SHARED / self.scale
    }

    /// Blocks that a node's cache holds.
    pub fn cache(&self) -> u32 {
        PAPER_CACHE / self.scale
    }

    /// Entries of each of the switch's ways.
    pub fn switch_sets(&self) -> usize {
        (SWITCH_SETS / self.scale) as usize >> self.halvings.min(SWITCH_SETS.ilog2())
    }

    /// The migration's period, in virtual nanoseconds.
    pub fn period(&self) -> u64 {
        PERIOD / u64::from(self.scale)
    }

    /// Blocks whose home is one node.
    pub fn at_home(&self) -> u32 {
        self.private_at_home() * u32::from(self.nodes) + self.shared().div_ceil(self.nodes.into())
    }

    fn private_at_home(&self) -> u32 {
        self.private().div_ceil(self.nodes.into())
    }

    /// The tag of a block of which `node` speaks: its private ones come first, then the shared ones. Both are
    /// spread over all homes.
    pub fn tag(&self, node: NodeId, block: u32) -> Tag {
        let nodes = u32::from(self.nodes);
        let (home, at) = match block.checked_sub(self.private()) {
            None => (
                (u32::from(node) + block) % nodes,
                u32::from(node) * self.private_at_home() + block / nodes,
            ),
            Some(shared) => (
                shared % nodes,
                nodes * self.private_at_home() + shared / nodes,
            ),
        };
        Tag((u64::from(home) << 48) | (u64::from(at) * u64::from(BLOCK)))
    }

    /// What `node` calls the block with this tag; the inverse of [`Workload::tag`].
    pub fn block(&self, node: NodeId, tag: Tag) -> Option<u32> {
        let nodes = u32::from(self.nodes);
        let home = u32::from(tag.home().0);
        let at = (tag.offset() / u64::from(BLOCK)) as u32;
        let private = self.private_at_home();
        if at >= nodes * private {
            let shared = (at - nodes * private) * nodes + home;
            return (shared < self.shared()).then_some(self.private() + shared);
        }
        let rank = (home + nodes - u32::from(node) % nodes) % nodes;
        let block = at % private * nodes + rank;
        (at / private == u32::from(node) && block < self.private()).then_some(block)
    }
}

/// One operation: an access to eight bytes of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Which, as its node calls it.
    pub block: u32,
    /// Whether it writes.
    pub writes: bool,
    /// Whether it is on another block than the operation before.
    pub cold: bool,
    /// Whether it belongs to the pass that warms the caches.
    pub warms: bool,
}

/// A thread's stream of operations.
pub struct Stream {
    workload: Workload,
    random: Random,
    last: Option<u32>,
    warm: Warm,
}

/// A first pass, so that caches are full soon: a thread's part of the shared blocks, then its part of its node's.
struct Warm {
    shared: u32,
    shared_step: u32,
    private: u32,
    private_step: u32,
}

impl Stream {
    /// The stream of thread `slot` of `node`.
    pub fn new(workload: Workload, node: NodeId, slot: u16, random: Random) -> Self {
        let all = u32::from(workload.nodes) * u32::from(workload.threads);
        let first = u32::from(node) * u32::from(workload.threads) + u32::from(slot);
        let skips = workload.sharing == 0;
        Stream {
            workload,
            random,
            last: None,
            warm: Warm {
                shared: if skips { workload.shared() } else { first },
                shared_step: all,
                private: slot.into(),
                private_step: workload.threads.into(),
            },
        }
    }

    /// The next operation.
    pub fn draw(&mut self) -> Operation {
        let (block, warms) = match self.warm.next(&self.workload) {
            Some(block) => (block, true),
            None => (self.any(), false),
        };
        let cold = self.last != Some(block);
        self.last = Some(block);
        Operation {
            block,
            writes: !self.percent(self.workload.reads),
            cold,
            warms,
        }
    }

    /// Chance for other things than operations.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn any(&mut self) -> u32 {
        let Workload {
            sharing, locality, ..
        } = self.workload;
        let stays = self.percent(locality);
        if let Some(last) = self.last
            && stays
        {
            return last;
        }
        let (private, shared) = (self.workload.private(), self.workload.shared());
        if self.percent(sharing) {
            private + self.random.below(shared.into()) as u32
        } else {
            self.random.below(private.into()) as u32
        }
    }

    fn percent(&mut self, percent: u8) -> bool {
        self.random.per_mille(u32::from(percent) * 10)
    }
}

impl Warm {
    fn next(&mut self, workload: &Workload) -> Option<u32> {
        if self.shared < workload.shared() {
            let block = workload.private() + self.shared;
            self.shared += self.shared_step;
            return Some(block);
        }
        if workload.sharing < 100 && self.private < workload.private() {
            let block = self.private;
            self.private += self.private_step;
            return Some(block);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_block_has_a_tag_and_only_shared_ones_have_the_same() {
        for nodes in [1, 3, 8] {
            let workload = Workload {
                nodes,
                scale: 1024,
                ..Workload::default()
            };
            let (private, shared) = (workload.private(), workload.shared());
            let mut seen = BTreeSet::new();
            for node in 0..nodes {
                for block in 0..private + shared {
                    let tag = workload.tag(node, block);
                    assert_eq!(workload.block(node, tag), Some(block));
                    assert!(tag.offset() / u64::from(BLOCK) < workload.at_home().into());
                    assert_eq!(seen.insert(tag), block < private || node == 0);
                    if block < private && nodes > 1 {
                        assert_eq!(workload.block((node + 1) % nodes, tag), None);
                    }
                }
            }
        }
    }

    #[test]
    fn operations_keep_their_proportions() {
        let workload = Workload {
            sharing: 20,
            reads: 70,
            locality: 40,
            scale: 256,
            ..Workload::default()
        };
        let mut stream = Stream::new(workload, 0, 0, Random::new(1));
        while stream.draw().warms {}
        let drawn: Vec<Operation> = (0..100_000).map(|_| stream.draw()).collect();
        let share = |f: fn(&Operation) -> bool| {
            drawn.iter().filter(|operation| f(operation)).count() as f64 / 1e5
        };
        assert!((share(|o| !o.writes) - 0.7).abs() < 0.01);
        assert!((share(|o| !o.cold) - 0.4).abs() < 0.02);
        let shared = drawn.iter().filter(|o| o.block >= workload.private());
        assert!((shared.count() as f64 / 1e5 - 0.2).abs() < 0.01);
    }
}
