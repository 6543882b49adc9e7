//! The data-plane program of the switch, and the machine it is written for.
//!
//! [`rmt`] is the machine: register arrays that live in one stage each,
//! and a pass that only goes forward.
//! [`SwitchProgram`] is the program: FlowCC's lock-check-forward pipeline.
//! What it uses of the machine is what [`SwitchProgram::resources`] prints.

mod control;
mod dump;
mod entry;
mod hash;
mod locks;
mod moves;
pub mod numbers;
mod program;
mod quorum;
mod resources;
pub mod rmt;
mod serving;

pub use control::{Grant, Registers, epoch_of};
pub use dump::{Field, Register};
pub use hash::{crc32, provider, set_of};
pub use locks::{LockConfig, LockCounters, LockProgram};
pub use program::{MAX_WAYS, SWITCH, SwitchConfig, SwitchCounters, SwitchProgram};
pub use quorum::{Counted, QuorumProgram};
pub use resources::Resources;
pub use serving::SwitchLocks;
