//! The registers of replicated memory one by one, for forms of the program that are to have the
//! same.

use super::quorum::QuorumProgram;
use alloc::vec::Vec;

/// Which array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum QuorumField {
    /// ABD-LIFE: the requester's incarnation, by `(node * MAX_REQUESTERS + slot) * 2 + parity`.
    Life,
    /// ABD-OP, likewise: `number:32 | config:30 | phase:2`.
    Operation,
    /// ABD-MAX-HI and ABD-MAX-LO, as one.
    Max,
    /// ABD-ANSWERED.
    Answered,
    /// ABD-AGREE.
    Agree,
    /// ABD-CHOSEN.
    Chosen,
    /// ABD-LINE: the tag of an entry that there is, with its low bit set.
    Line,
    /// The rest of it: `row:16 | number:32 | passed:8 | 1` while a question learns, zero when it is
    /// valid.
    Learner,
    /// ABD-STAMP of an entry that there is.
    Stamp,
    /// ABD-STORED, by row.
    Stored,
    /// ABD-HELD: word *n* of the line of a row, by `row * 16 + n`.
    Held,
}

impl QuorumField {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            QuorumField::Life => "ABD-LIFE",
            QuorumField::Operation => "ABD-OP",
            QuorumField::Max => "ABD-MAX",
            QuorumField::Answered => "ABD-ANSWERED",
            QuorumField::Agree => "ABD-AGREE",
            QuorumField::Chosen => "ABD-CHOSEN",
            QuorumField::Line => "ABD-LINE",
            QuorumField::Learner => "ABD-LEARNER",
            QuorumField::Stamp => "ABD-STAMP",
            QuorumField::Stored => "ABD-STORED",
            QuorumField::Held => "ABD-HELD",
        }
    }
}

/// The value of one register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QuorumRegister {
    /// In which array.
    pub field: QuorumField,
    /// At which index.
    pub at: u32,
    /// Its value.
    pub value: u64,
}

/// What [`QuorumField::Learner`] says of a question that learns.
pub const fn learner((row, seq): (u16, u32), passed: u8) -> u64 {
    (row as u64) << 48 | (seq as u64) << 16 | (passed as u64) << 8 | 1
}

impl QuorumProgram {
    /// Every register that is not zero, of those that decide what it will do.
    pub fn registers(&self) -> Vec<QuorumRegister> {
        let mut registers = Vec::new();
        for at in 0..self.operation.len() {
            let high = u64::from(self.max_high.items()[at]) << 32;
            let values = [
                (QuorumField::Life, self.life.items()[at].into()),
                (QuorumField::Operation, self.operation.items()[at]),
                (QuorumField::Max, high | u64::from(self.max_low.items()[at])),
                (QuorumField::Answered, self.answered.items()[at].into()),
                (QuorumField::Agree, self.agree.items()[at].into()),
                (QuorumField::Chosen, self.stamps.chosen.items()[at]),
                (QuorumField::Stored, self.held.stored.items()[at].into()),
            ];
            add(&mut registers, at, &values);
            let words = &self.held.words;
            for (nth, array) in words.iter().enumerate() {
                let word = [(QuorumField::Held, array.items()[at].into())];
                add(&mut registers, at * words.len() + nth, &word);
            }
        }
        for (at, line) in self.stamps.lines.items().iter().enumerate() {
            if line.used {
                let values = [
                    (QuorumField::Line, line.tag.0 | 1),
                    (
                        QuorumField::Learner,
                        line.learner.map_or(0, |by| learner(by, line.passed)),
                    ),
                    (QuorumField::Stamp, self.stamps.max.items()[at]),
                ];
                add(&mut registers, at, &values);
            }
        }
        registers.sort_unstable();
        registers
    }
}

fn add(registers: &mut Vec<QuorumRegister>, at: usize, values: &[(QuorumField, u64)]) {
    let taken = values.iter().filter(|(_, value)| *value != 0);
    registers.extend(taken.map(|&(field, value)| QuorumRegister {
        field,
        at: at as u32,
        value,
    }));
}
