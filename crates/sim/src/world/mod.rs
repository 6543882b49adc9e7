//! A seeded world: a rack with the very roles that ship, a network that misbehaves,
//! and virtual time.
//!
//! [`World::run`] takes a seed and a [`Config`] and plays: application threads read,
//! write and add to a few blocks through caches too small for them, over packets that are lost,
//! doubled, delayed and reordered. After everything that happens, the
//! [`invariants`](crate::invariants) of the block it happened to are checked. When three operations
//! of four are done the network calms down, and everything must end; then the caches are emptied,
//! and home memory must hold every write. The same seed is the same run, packet by packet: a
//! [`Report`] carries the hash of its trace, and a [`Violation`] names the seed and shows the last
//! packets. [`World::watch`] shows somebody all of it, a [`Scene`] at a time.
//!
//! The same nodes have locks, and threads that enter them (`locks`). [`SCENARIOS`] are worlds in
//! which both meet in one thing.
//!
//! Only the roles are shipped code, put together in a [`site`](crate::site). What waits (`thread`)
//! follows the library's threads and is cut at the places where they block.

pub mod block;
mod checks;
mod config;
mod copies;
mod fabric;
mod failures;
mod faults;
mod keeping;
mod locks;
mod membership;
mod mutate;
mod mutation;
mod node;
mod operation;
mod oracle;
mod random;
mod record;
mod removals;
mod run;
mod scenarios;
mod scene;
mod shrink;
mod switch_host;
mod thread;
mod timeline;
mod trace;
mod violation;

use rackmem_proto::wire::NodeId;

pub use crate::invariants::LiveEvent;
pub use config::{Config, Mix, Owners};
pub use copies::CopiesSeen;
pub use fabric::Traffic;
pub use failures::{Failure, Failures, Planned};
pub use faults::Faults;
pub use locks::LockSeen;
pub use membership::Broken;
pub use mutation::Mutation;
pub use random::Random;
pub use removals::RemovalsSeen;
pub use run::{Report, Seen, World};
pub use scenarios::{SCENARIOS, SUITE, Scenario};
pub use scene::{Fate, Passing, Scene, Sight, Watcher};
pub use shrink::{Shrunk, shrink};
pub use thread::Work;
pub use timeline::Sample;
pub use violation::Violation;

/// Bytes of a world's blocks, as addresses count them.
pub const BLOCK_BYTES: u64 = block::BLOCK_BYTES as u64;
/// Who sends what the switch sends.
pub const SWITCH: NodeId = rackmem_proto::switch::SWITCH;
/// Chunks that a world's home may hand out.
const CHUNKS: u32 = 64;
