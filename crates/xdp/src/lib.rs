//! The switch program in the Linux kernel.
//!
//! `switch/xdp` is the program in C; this crate has it embedded, loads it, attaches it to
//! interfaces, and does with its maps what the control plane of a switch does with registers
//! (`Switch`). With the feature `xdp`, which takes clang to build; without it the crate is empty.
//! `docs/xdp.md` tells how to run it. `ObjectReads` is another program, for a host with objects,
//! and `BlockReads` one for a home's host in a rack with a switch.
#![forbid(unsafe_code)]
#![cfg(feature = "xdp")]

mod attach;
mod bare;
mod behind;
mod blocks;
pub mod carrier;
mod control;
mod counters;
mod error;
mod layout;
mod load;
mod locks;
mod objects;
mod order;
mod quorum;
mod registers;
mod run;

pub use attach::{Attached, Mode, Refused};
pub use bare::{Bare, BareProgram};
pub use blocks::{BlockReadCounts, BlockReads};
pub use counters::Counters;
pub use error::{Error, Result};
pub use layout::{Address, KernelFaults, LOCK_WAYS, WAYS};
pub use load::Switch;
pub use objects::{
    ItemReadCounts, LineReadCounts, MOST_SLABS, ObjectReads, ReadCounts, Served, Sizes,
};
pub use order::Order;
pub use run::{Ran, Verdict, to_switch};
