//! The data-plane program of the switch, and the machine it is written for.
//!
//! [`rmt`] is the machine: register arrays that live in one stage each, and a pass that only goes forward.
//! [`SwitchProgram`] is the program: FlowCC's lock-check-forward pipeline. What it uses of the machine is
//! what [`SwitchProgram::resources`] prints.

mod program;
mod resources;
pub mod rmt;

pub use program::{SwitchConfig, SwitchCounters, SwitchProgram};
pub use resources::Resources;
