//! What a core does with an object, as costs.

use super::{Layout, NS, Time};

/// Bytes of the chunks in which FaRM's versions are stripped (§7.3).
const CHUNK: u32 = 1024;

/// Costs of a core at 2 GHz.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cores {
    /// Strips and compares a line whose bytes are at hand.
    /// Fitted: half of a read of 8 KB is the check (Fig. 1).
    pub strip: Time,
    /// A chunk's first line out of the last-level cache, and of the buffer that it goes to: two
    /// misses of the L1 cache, of 5 hops and 6 cycles each (Table 2).
    pub chunk: Time,
    /// Each line of it over mesh links of 16 bytes (Table 2): in, its place in the buffer in, and
    /// that out.
    pub fill: Time,
    /// The store's code and the application's, for each read, where nothing is stripped.
    /// Fitted: a tenth of a read of 128 B is the check (Fig. 1).
    pub application: Time,
    /// The application reads a block that is in its L1 cache.
    /// Fitted: SABRes shorten a read of 8 KB by 52% (Fig. 9a).
    pub block: Time,
    /// Buffers of transferred data, and the instructions that miss for them and for stripping.
    /// Fitted: SABRes shorten a read of 128 B by 35% (Fig. 9a).
    pub buffers: Time,
    /// A block that is in the last-level cache and not in L1, when many are read at once: a mesh
    /// link (Table 2).
    pub beyond: Time,
    /// Blocks of memory that a core has in flight: a line is about ten instructions of the 128
    /// that it has (assumed).
    pub in_flight: u32,
    /// A writer's stores to a block that is its own: eight of them, one a cycle.
    pub store: Time,
    /// A writer's loop around its stores (assumed).
    pub around: Time,
    /// Misses of a writer's stores that overlap (assumed).
    pub overlap: Time,
}

/// Those of the model.
pub const CORES: Cores = Cores {
    strip: 4_000,
    chunk: 36 * NS,
    fill: 6 * NS,
    application: 150 * NS,
    block: 4_500,
    buffers: 220 * NS,
    beyond: 2 * NS,
    in_flight: 12,
    store: 4 * NS,
    around: 20 * NS,
    overlap: 4,
};

/// What is done with what has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum After {
    /// Nothing.
    Nothing,
    /// It is made clean, if need be, and read (§7.2).
    Read,
    /// FaRM's key-value store and an application (§7.3).
    Store,
    /// The same with a prefetcher that brings all but the first 1 KB (§7.3).
    Prefetched,
}

impl Cores {
    /// Strips and compares an object.
    pub fn check(&self, bytes: u32, after: After) -> Time {
        let lines = Time::from(Layout::Versions.blocks(bytes));
        let chunks = match after {
            After::Prefetched => 1,
            _ => Time::from(bytes.div_ceil(CHUNK)),
        };
        let filled = match after {
            After::Prefetched => lines.min(Time::from(Layout::Versions.blocks(CHUNK))),
            _ => lines,
        };
        chunks * self.chunk + filled * self.fill + lines * self.strip
    }

    /// What is between the completion of a transfer and the end of the operation, but the check.
    pub fn rest(&self, bytes: u32, layout: Layout, after: After) -> Time {
        let blocks = Time::from(Layout::Clean.blocks(bytes));
        let first = Time::from(Layout::Clean.blocks(bytes.min(CHUNK)));
        // What was stripped is in L1; what was not is beyond it.
        let beyond = match (layout, after) {
            (Layout::Versions, _) => 0,
            (Layout::Clean, After::Prefetched) => self.chunk / 2 + first * self.beyond,
            (Layout::Clean, _) => self.chunk / 2 + blocks * self.beyond,
        };
        let buffers = match layout {
            Layout::Versions => self.buffers,
            Layout::Clean => 0,
        };
        match after {
            After::Nothing => 0,
            // The micro benchmark reads a block's words, one a cycle.
            After::Read => beyond + blocks * self.store,
            After::Store | After::Prefetched => {
                self.application + blocks * self.block + beyond + buffers
            }
        }
    }
}
