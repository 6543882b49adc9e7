//! One coherent memory for a rack of machines.
//!
//! The nodes of a [`Rack`] share one 64-bit address space. What a node reads it keeps in its own
//! cache and reads from there, at the speed of memory, until another node writes it;
//! every read sees the last write.
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
//! A rack is embedded (all nodes in one process, [`Rack::local`]) or made of processes
//! ([`Rack::join`]), with or without a switch. The protocol is in `rackmem-proto`;
//! `docs/protocols/flowcc.md` explains it.

mod backoff;
pub mod bounded;
mod bytes;
mod coherent;
mod config;
mod data_plane;
pub mod diagnostics;
mod error;
mod faulting;
mod fences;
pub mod futures;
pub mod guest;
mod host;
pub mod locked;
pub mod membership;
mod node;
pub mod object;
mod paging;
mod ports;
mod rack;
mod region;
mod replicated;
mod sync;
mod threads;
mod wait;
pub mod waiting;

pub use bytes::value::Value;
pub use bytes::window::{self, Window, WindowMut};
pub use coherent::atomics::Bool;
pub use coherent::shared::Shared;
pub use coherent::slice::SharedSlice;
pub use config::migration::Migration;
pub use config::{
    Config, Fabric, KernelMode, KernelReads, KvCopies, Mode, Size, Time, check_kv_copies, look_up,
};
pub use data_plane::kernel::KernelSwitch;
pub use error::{
    AccessError, AllocError, ArenaError, BulkError, BulkResult, Changed, Error, ErrorKind,
    LeaveError, LockError, LockShape, OpenError, RackError, RegionError, Result, SteerError,
    TransactionError,
};
pub use faulting::FaultMode;
pub use node::Node;
pub use paging::{CoherentPages, FaultCounts, Mapped, OnLost, PageCounts, Pinned};
pub use rack::Rack;
pub use rack::builder::Builder;
pub use rackmem_journal::StoreError;
pub use rackmem_proto::abd::Durability;
pub use rackmem_proto::heap::Backing;
pub use rackmem_proto::membership::Survives;
pub use rackmem_proto::wire::{Contract, HomeId};
pub use region::{Region, RegionInfo, RegionSpec};
pub use replicated::{CopyStatus, CopyStore, GroupStatus, Replicated, SweepStatus};
pub use wait::Wait;
/// What derives [`Value`] for a program's own structs.
pub use zerocopy;
