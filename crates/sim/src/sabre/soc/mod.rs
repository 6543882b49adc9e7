//! The paper's two chips by a model: its figures for SABRes (§2.3, §5.1, §7).
//!
//! The controllers and the sources are the shipped ones ([`rackmem_proto::sabre::controller`]).
//! Around them is what Table 2 tells: a mesh with a bank of the last-level cache on every tile,
//! memory, a network between two chips, pipelines of 1 GHz. Cores are not simulated: what a core
//! does with an object is a cost (`cores.rs`), of which four are fitted, each to one figure of the
//! paper's text; all else is given or derived, or assumed and said so (`chip.rs`).
//! There is no noise but the choice of objects: what differs is who waits for whom.
//!
//! Not modelled, as no text gives it: instruction fetches, where FaRM's store keeps what beside an
//! object, and how objects lie in the store.

mod chip;
mod cores;
mod local;
mod memory;
mod r2p2;
mod run;

pub use chip::{CHIP, Chip};
pub use cores::{After, CORES, Cores};
pub use local::local;
pub use rackmem_proto::sabre::controller::Design;
pub use run::{Outcome, Setup, run};

/// Picoseconds.
pub type Time = u64;

/// A nanosecond.
pub const NS: Time = 1_000;

/// Bytes of a block.
pub const BLOCK: u32 = 64;

/// How objects are kept from being torn, and so how they lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Layout {
    /// As they are; SABRes read them, or plain reads that are not atomic.
    Clean,
    /// A version in each line (FaRM): 56 of 64 bytes are the object's.
    Versions,
}

impl Layout {
    /// Blocks of an object of so many bytes.
    pub fn blocks(self, bytes: u32) -> u16 {
        let each = match self {
            Layout::Clean => BLOCK,
            Layout::Versions => BLOCK - 8,
        };
        bytes.div_ceil(each) as u16
    }
}
