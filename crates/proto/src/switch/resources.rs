//! What the program asks of an ASIC.

use super::{Field, SwitchProgram};
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

impl Resources {
    /// Bytes that an entry takes in the arrays of its way: TAG, LOCK, G-STATUS and COPYSET.
    pub fn bytes_an_entry(&self) -> usize {
        let of_a_way = |name: &str| Field::ALL.iter().any(|f| f.of_a_way() && f.name() == name);
        let here = self.arrays.iter().filter(|a| of_a_way(a.0));
        let bytes: usize = here.map(|a| a.2 * a.3).sum();
        bytes.checked_div(self.entries).unwrap_or(0)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::SwitchConfig;

    #[test]
    fn the_default_has_the_papers_stages_and_an_entry_fits_into_its_sixteen_bytes() {
        let resources = SwitchProgram::new(SwitchConfig::default()).resources();
        assert_eq!(resources.stages, 10);
        assert_eq!(resources.entries, 262_144);
        assert_eq!(resources.bytes_an_entry(), 15);
        let beside = resources.bytes - resources.entries * 15;
        assert_eq!(beside, 32 * 64 * 2 * 8 + 32 * 64 * 8);
    }
}
