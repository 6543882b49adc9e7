//! One coherent memory for a rack of machines.
//!
//! The nodes of a [`Rack`] share one 64-bit address space. What a node reads it keeps in its own cache and
//! reads from there, at the speed of memory, until another node writes it; every read sees the last write.
//!
//! ```
//! # fn main() -> rackmem::Result<()> {
//! use rackmem::{Rack, Shared};
//!
//! let rack = Rack::local(4)?;
//! let n: Shared<u64> = rack.node(0).alloc(0)?;
//! n.write(7)?;
//! n.fetch_add(1)?;
//! let same: Shared<u64> = rack.node(3).attach(n.addr())?;
//! assert_eq!(same.read()?, 8);
//! assert_eq!(same.compare_exchange(8, 9)?, Ok(8));
//! # Ok(())
//! # }
//! ```
//!
//! A rack is embedded (all nodes in one process, [`Rack::local`]) or made of processes ([`Rack::join`]), with
//! or without a switch. The protocol is in `rackmem-proto`; `docs/protocols/flowcc.md` explains it.

mod access;
mod agents;
mod alloc;
mod backoff;
mod builder;
mod cache;
mod config;
mod control;
mod data_plane;
mod delegated;
mod error;
mod here;
mod inner;
mod inspecting;
mod kernel;
mod lock;
pub mod locked;
mod magazine;
mod members;
pub mod membership;
mod memory;
mod metrics;
mod migration;
mod node;
mod parts;
mod pending;
mod place;
mod rack;
mod reach;
mod rebuilding;
mod region;
mod requester;
mod shared;
mod slots;
mod standing;
mod switch;
mod sync;
#[cfg(test)]
mod unlocking;
pub mod view;
mod wires;

pub use builder::Builder;
pub use config::{Config, Fabric, Mode};
pub use error::{Error, Result};
pub use inspecting::inspect;
pub use kernel::{KernelMetrics, KernelMode, KernelPlace, KernelSwitch};
pub use lock::{BlockGuard, BlockLock};
pub use metrics::{Events, MemoryMetrics, NodeMetrics, RackMetrics, ShadowMetrics, SwitchMetrics};
pub use migration::Migration;
pub use node::Node;
pub use rack::Rack;
pub use rackmem_fabric::{BadFaults, End, FaultControl, FaultCounts, Faults, PacketCounts};
pub use rackmem_proto::switch::{LockCounters, Resources};
pub use rackmem_proto::wire::Kind;
pub use rebuilding::RebuildMetrics;
pub use shared::{Shared, Value};
pub use switch::SoftSwitch;
pub use view::{View, ViewMut};
