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
mod held;
mod locks;
mod member;
mod moves;
pub mod numbers;
mod part;
mod program;
mod quorum;
mod quorum_dump;
mod resources;
pub mod rmt;
mod serving;
mod stamps;

pub use control::{Grant, Registers, epoch_of};
pub use dump::{Field, Register};
pub use hash::{crc32, provider, set_of};
pub use held::Carries;
pub use locks::{LockConfig, LockCounters, LockProgram};
pub use member::{Pipeline, SwitchMember};
pub use part::{SwitchPart, switch_part};
pub use program::{MAX_WAYS, SWITCH, SwitchConfig, SwitchCounters, SwitchProgram};
pub use quorum::{Counted, LINES, QuorumProgram};
pub use quorum_dump::{QuorumField, QuorumRegister, learner};
pub use resources::Resources;
pub use serving::SwitchLocks;
