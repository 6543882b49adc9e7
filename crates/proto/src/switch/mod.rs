//! The data-plane program of the switch, and the machine it is written for.
//!
//! [`rmt`] is the machine: register arrays that live in one stage each, and a pass that only goes forward.
//! [`SwitchProgram`] is the program: FlowCC's lock-check-forward pipeline. What it uses of the machine is
//! what [`SwitchProgram::resources`] prints.

mod control;
mod entry;
mod moves;
mod program;
mod resources;
pub mod rmt;

use crate::wire::Tag;

pub use control::Registers;
pub use program::{SWITCH, SwitchConfig, SwitchCounters, SwitchProgram};
pub use resources::Resources;

/// The set of a tag, in a table of `sets` of them, a power of two. The shadow node computes it, too.
pub fn set_of(tag: Tag, sets: usize) -> usize {
    // Block numbers of one node are dense from some low bit on; the multiply spreads them over the sets.
    let mixed = tag.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize & (sets - 1)
}
