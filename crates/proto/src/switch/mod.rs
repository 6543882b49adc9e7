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

pub use control::{Grant, Registers, epoch_of};
pub use program::{SWITCH, SwitchConfig, SwitchCounters, SwitchProgram};
pub use resources::Resources;

/// The set of a tag, in a table of `sets` of them, a power of two. The shadow node computes it, too.
pub fn set_of(tag: Tag, sets: usize) -> usize {
    // Two rounds, because a multiply carries a bit only upwards: after one, the home, in the top bits, would not count,
    // and the blocks at one offset of all homes would share a set.
    let mixed = tag.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 32) as usize & (sets - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_at_the_same_offsets_of_many_homes_spread_over_the_sets() {
        for sets in [64, 1024, 32_768] {
            let mut load = alloc::vec![0u32; sets];
            for home in 0..32 {
                for block in 0..(sets / 16) as u64 {
                    load[set_of(Tag(home << 48 | block << 12), sets)] += 1;
                }
            }
            // Two a set on average: were they random, one set in ten thousand would have more than eight.
            let full = load.iter().filter(|&&blocks| blocks > 8).count();
            assert!(full <= sets / 1000, "{full} of {sets}");
        }
    }
}
