//! What the program asks of an ASIC.

use super::SwitchProgram;
use alloc::vec::Vec;

/// Stages, arrays and bytes of a switch program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resources {
    /// Stages that hold a register array.
    pub stages: u8,
    /// Directory entries.
    pub entries: usize,
    /// Bytes of register memory.
    pub bytes: usize,
    /// Array, stage, items, bytes an item.
    pub arrays: Vec<(&'static str, u8, usize, usize)>,
}

impl SwitchProgram {
    /// What this instance uses.
    pub fn resources(&self) -> Resources {
        let arrays: Vec<_> = self.arrays().collect();
        Resources {
            stages: arrays.iter().map(|a| a.1 + 1).max().unwrap_or(0),
            entries: arrays.iter().filter(|a| a.0 == "TAG").map(|a| a.2).sum(),
            bytes: arrays.iter().map(|a| a.2 * a.3).sum(),
            arrays,
        }
    }
}
