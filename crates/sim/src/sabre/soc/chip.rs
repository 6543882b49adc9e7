//! Costs of the chips and of the network between them.

use super::{NS, Time};

/// See the module.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chip {
    /// One hop of the mesh: 3 cycles of 2 GHz (Table 2).
    pub hop: Time,
    /// A bank of the last-level cache: 6 cycles (Table 2).
    pub bank: Time,
    /// What memory takes beyond a bank, so that an R2P2 sees 90 ns on average (§5.1).
    pub memory: Time,
    /// A block over one of the four channels of 25.6 GB/s (Table 2).
    pub channel: Time,
    /// A block over a mesh link of 16 bytes a cycle (Table 2): how a source takes replies.
    pub link: Time,
    /// One action of a pipeline of 1 GHz (Table 2).
    pub action: Time,
    /// A block through an R2P2 of 20 GB/s (§5.1).
    pub issue: Time,
    /// Between the chips: 35 ns (Table 2).
    pub wire: Time,
    /// A packet without a block on that wire of 100 GB/s, of 16 bytes (assumed).
    pub packet: Time,
    /// A packet with a block: 80 bytes.
    pub data: Time,
    /// From a core's request in its queue to its pipeline, and through it (fitted: a remote read
    /// of a block takes 3 to 4 times as long as a local one, §2.3).
    pub post: Time,
    /// From the last reply to the core that sees its completion (fitted with `post`).
    pub complete: Time,
    /// From a packet's arrival at an R2P2 to the load (assumed: four stages).
    pub stages: Time,
    /// A modified block from a core's cache, beyond its bank: 3 hops, and a cache of 3 cycles.
    pub forward: Time,
}

/// The paper's.
pub const CHIP: Chip = Chip {
    hop: 1_500,
    bank: 3 * NS,
    memory: 76 * NS,
    channel: 2_500,
    link: 2 * NS,
    action: NS,
    issue: 3_200,
    wire: 35 * NS,
    packet: 160,
    data: 800,
    post: 50 * NS,
    complete: 50 * NS,
    stages: 4 * NS,
    forward: 6 * NS,
};

/// R2P2s, each with a pipeline that generates requests and one that completes them (Table 2).
pub const EDGES: usize = 4;

/// Hops from an R2P2 at the edge of the 4 × 4 mesh to the bank of a block.
fn hops(edge: usize, block: u64) -> Time {
    let bank = (block % 16) as usize;
    let (column, row) = (bank % 4, bank / 4);
    (1 + column + row.abs_diff(edge)) as Time
}

impl Chip {
    /// From an R2P2 to a bank, or back.
    pub fn path(&self, edge: usize, block: u64) -> Time {
        hops(edge, block) * self.hop
    }
}
