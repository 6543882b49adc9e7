//! Memory that is read at the speed of a local copy, and is old by a bounded time at most: Bounded
//! Incoherence, where nodes keep copies of what a home serves.
//!
//! What it does not promise: an order between writes of different items. A section may read a new
//! value of one and an old value of another. What a node has read of one item never goes back, and
//! its own writes are seen.

mod asking;
mod copies;
mod counter;
mod domain;
mod futures;
mod mapped;
mod places;
mod steering;
mod writing;

pub use domain::{Domain, Pinned};
pub use mapped::{
    Arena, ArenaCounts, ArenaReport, ArenaSection, ArenaSlot, ArenaSpec, ArenaWriter, CacheOps,
    DomainReport, DomainStatus, FoundOp, Fresh, LineOp, List, Map, Pointer, Tick, Tracking,
};
pub use steering::{Partition, PartitionOwner};
pub use writing::DomainWriter;
