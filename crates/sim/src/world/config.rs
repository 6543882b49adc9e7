//! What a world is made of.

use super::failures::Failures;
use super::faults::Faults;
use super::mutation::Mutation;
use crate::world::block::{self, BLOCK_BYTES, WORDS};
use rackmem_proto::flowcc::{Requester, RequesterConfig};
use rackmem_proto::wire::{NodeId, RequesterId, Tag};

/// Worlds see to it themselves that nothing takes for ever.
const NEVER: u64 = u64::MAX / 4;

/// Who owns directory entries, and how owners answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owners {
    /// No switch: home agents own every entry (§5.2, the paper's Concordia-base).
    HomeOnly,
    /// No switch, and homes gather the acknowledgements (the directory baseline).
    Gather,
    /// A switch that takes over entries until it is full.
    Switch {
        /// Candidate locations of a tag.
        ways: u8,
        /// Entries in each way.
        sets: usize,
    },
}

impl Owners {
    /// A switch with three entries of one set: blocks collide and stay with their homes.
    pub const TINY_SWITCH: Owners = Owners::Switch { ways: 3, sets: 1 };
    /// A switch with room for every block.
    pub const LARGE_SWITCH: Owners = Owners::Switch { ways: 4, sets: 64 };
}

/// How often operations are of a kind, as shares of their sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mix {
    /// Reads of a whole block.
    pub read: u32,
    /// Writes that do not look at what was there.
    pub write: u32,
    /// Fetch-and-adds.
    pub add: u32,
    /// Holding a block's lock for a while (§6's synchronization primitive).
    pub hold: u32,
    /// Requests for more memory, which need no lock and no unlock.
    pub alloc: u32,
    /// Reads of whole blocks that keep no copy, as of long ranges.
    pub fetch: u32,
    /// Writes of whole blocks at their homes, as of long ranges.
    pub store: u32,
    /// Increments of a counter at its home, by threads that keep no copy.
    pub operate: u32,
}

impl Mix {
    /// All shares.
    pub fn sum(&self) -> u32 {
        let cached = self.read + self.write + self.add;
        cached + self.hold + self.alloc + self.fetch + self.store + self.operate
    }
}

/// A world to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Owners.
    pub rack: Owners,
    /// Nodes.
    pub nodes: u16,
    /// How many nodes have a copy of each block but every fourth; with 0, each is a node's own.
    pub copies: u8,
    /// How often a region is removed whose blocks groups keep, and another one has its number.
    pub removals: u32,
    /// Of these, the first so many are homes of blocks; zero stands for all.
    pub homes: u16,
    /// Application threads of a node, each with its requester.
    pub threads: u16,
    /// Blocks that all threads work on.
    pub blocks: u32,
    /// Operations a thread carries out.
    pub operations: u32,
    /// Blocks a node's cache holds; fewer than `blocks`, and there are evictions.
    pub cache: usize,
    /// Words that one packet carries, a divisor of a block's words.
    pub segment: usize,
    /// Requesters send again no sooner than this, in nanoseconds. Less than a round trip,
    /// and everything is sent more than once.
    pub timeout: u64,
    /// Locks that all threads enter, beside the blocks. There are none where processes are stopped.
    pub locks: u32,
    /// What threads do.
    pub mix: Mix,
    /// What the network does until three operations of four are done.
    pub faults: Faults,
    /// What breaks meanwhile.
    pub failures: Failures,
    /// Whether to record what every thread was told, and check that it is linearizable.
    pub history: bool,
    /// A defect to put into a role, to see that it is noticed.
    pub mutation: Option<Mutation>,
}

impl Config {
    /// [`segment`](Config::segment) of packets that carry whole blocks.
    pub const WHOLE_BLOCKS: usize = WORDS;

    /// How many nodes are homes of blocks.
    pub fn homes(&self) -> u16 {
        match self.homes {
            0 => self.nodes,
            homes => homes.min(self.nodes),
        }
    }

    /// The group that keeps a block, if one does.
    pub fn group(&self, number: u32) -> Option<u16> {
        let group = block::group(number);
        group.filter(|_| self.copies > 0)
    }

    /// Whether each write to a block survives.
    pub fn survives(&self, tag: Tag) -> bool {
        tag.home().group() == Some(block::WRITES)
    }

    /// The tag of a block, where its home, if that is a node, is in this incarnation.
    pub fn tag(&self, number: u32, incarnation: u32) -> Tag {
        match self.group(number) {
            Some(group) => block::kept(number, group),
            None => block::tag(number, self.homes(), incarnation),
        }
    }

    /// Whether there are locks.
    pub fn has_locks(&self) -> bool {
        self.locks > 0 && !self.has_keepers()
    }

    /// Operations of all threads together.
    pub fn total(&self) -> u64 {
        u64::from(self.nodes) * u64::from(self.threads) * u64::from(self.operations)
    }

    /// Whether the members' own keepers decide who is excluded. They do where processes are
    /// stopped.
    pub fn has_keepers(&self) -> bool {
        self.failures.stop > 0 && self.copies == 0
    }

    /// Whether there is a switch at the start.
    pub fn has_switch(&self) -> bool {
        matches!(self.rack, Owners::Switch { .. })
    }
}

impl Config {
    /// The requester of a thread of a node that has started in this epoch, as this incarnation;
    /// and whether there is a switch.
    pub fn requester(
        &self,
        thread: usize,
        (epoch, incarnation, switch): (u32, u32, bool),
    ) -> Requester {
        let per_node = usize::from(self.threads);
        let id = RequesterId {
            node: (thread / per_node) as NodeId,
            slot: (thread % per_node) as u16,
        };
        Requester::new(RequesterConfig {
            id,
            epoch,
            incarnation,
            block: BLOCK_BYTES,
            switch,
            min_timeout: self.timeout,
            give_up: NEVER,
        })
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            rack: Owners::HomeOnly,
            nodes: 3,
            copies: 0,
            removals: 0,
            homes: 0,
            threads: 2,
            blocks: 5,
            operations: 40,
            cache: 3,
            segment: WORDS / 4,
            timeout: 12_000,
            locks: 0,
            mix: Mix {
                read: 5,
                write: 2,
                add: 3,
                hold: 0,
                alloc: 0,
                fetch: 0,
                store: 0,
                operate: 0,
            },
            faults: Faults::NONE,
            failures: Failures::NONE,
            history: false,
            mutation: None,
        }
    }
}
