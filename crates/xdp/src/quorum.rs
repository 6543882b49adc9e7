//! Replicated memory: the groups that the program counts for, and what it keeps of them
//! (`switch/xdp/quorum.h`).

use crate::error::Result;
use crate::load::Switch;
use rackmem_proto::abd::GROUPS;
use rackmem_proto::switch::{Counted, QuorumField, QuorumRegister, learner};

pub(crate) const QUORUM_ROW_LEN: usize = 32;
pub(crate) const STAMP_LINE_LEN: usize = 32;

/// What `state` of an entry says.
const LEARNING: u8 = 1;

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(half)
}

impl Switch {
    /// Counts for a group from here on, or not any more: its packets are the control plane's then.
    /// What was learned of lines in other configs is forgotten with the same step.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn count(&mut self, group: u16, counted: Option<Counted>) -> Result<()> {
        match self.config.groups.get_mut(usize::from(group)) {
            Some(row) if *row != counted => *row = counted,
            _ => return Ok(()),
        }
        self.config.configs = self.config.configs.wrapping_add(1);
        self.write_config()
    }

    /// This is the switch's incarnation from here on: it chooses stamps for groups that name it.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn lives(&mut self, life: u32) -> Result<()> {
        self.config.life = life;
        self.write_config()
    }

    /// Counts for no group, and remembers nothing.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn forget_groups(&mut self) -> Result<()> {
        self.config.groups = [None; GROUPS];
        self.config.configs = self.config.configs.wrapping_add(1);
        self.write_config()?;
        for at in 0..self.rows.len() {
            if self.rows.get(&at, 0)? != [0; QUORUM_ROW_LEN] {
                self.rows.set(at, [0; QUORUM_ROW_LEN], 0)?;
            }
        }
        Ok(())
    }

    /// Every register of replicated memory that is not zero, of those that decide what it will do.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn quorum_registers(&self) -> Result<Vec<QuorumRegister>> {
        let mut registers = Vec::new();
        for at in 0..self.rows.len() {
            let row = self.rows.get(&at, 0)?;
            let values = [
                (QuorumField::Operation, word(&row, 0)),
                (QuorumField::Max, word(&row, 8)),
                (QuorumField::Chosen, word(&row, 16)),
                (QuorumField::Life, half(&row, 24).into()),
                (QuorumField::Answered, row[28].into()),
                (QuorumField::Agree, row[29].into()),
            ];
            add(&mut registers, at, &values);
        }
        for at in 0..self.stamps.len() {
            let line = self.stamps.get(&at, 0)?;
            let state = line[27];
            if state == 0 || half(&line, 16) != self.config.configs {
                continue;
            }
            let row = u16::from_ne_bytes([line[24], line[25]]);
            let learns = match state {
                LEARNING => learner((row, half(&line, 20)), line[26]),
                _ => 0,
            };
            let values = [
                (QuorumField::Line, word(&line, 0) | 1),
                (QuorumField::Learner, learns),
                (QuorumField::Stamp, word(&line, 8)),
            ];
            add(&mut registers, at, &values);
        }
        registers.sort_unstable();
        Ok(registers)
    }
}

fn add(registers: &mut Vec<QuorumRegister>, at: u32, values: &[(QuorumField, u64)]) {
    let taken = values.iter().filter(|(_, value)| *value != 0);
    registers.extend(taken.map(|&(field, value)| QuorumRegister { field, at, value }));
}
