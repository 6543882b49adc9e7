//! The registers one by one: what golden packets say of them, and what is carried between forms of the program.

use super::program::SwitchProgram;
use super::rmt::Array;
use alloc::vec::Vec;

/// Which register array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Field {
    /// TAG of a way: zero when free, else the tag with its low bit set.
    Tag,
    /// LOCK of a way: the lock word.
    Lock,
    /// G-STATUS of a way.
    Status,
    /// COPYSET of a way.
    Copyset,
    /// SCOREBOARD: two rows a requester, `(node * requesters + slot) * 2 + parity`.
    Score,
    /// MOVES: a row a slot, `node * MAX_MOVES + slot`.
    Move,
}

impl Field {
    /// All of them, in the order of the stages.
    pub const ALL: [Field; 6] = [
        Field::Tag,
        Field::Lock,
        Field::Status,
        Field::Copyset,
        Field::Score,
        Field::Move,
    ];

    /// Its name, as tables of the program's resources have it.
    pub const fn name(self) -> &'static str {
        match self {
            Field::Tag => "TAG",
            Field::Lock => "LOCK",
            Field::Status => "G-STATUS",
            Field::Copyset => "COPYSET",
            Field::Score => "SCOREBOARD",
            Field::Move => "MOVES",
        }
    }

    /// Whether every way has one.
    pub const fn of_a_way(self) -> bool {
        !matches!(self, Field::Score | Field::Move)
    }
}

/// The value of one register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Register {
    /// In which array.
    pub field: Field,
    /// Of which way; zero for the two arrays that no way has.
    pub way: u8,
    /// At which index.
    pub at: u32,
    /// Its value.
    pub value: u64,
}

fn list<T: Copy + Into<u64>>(field: Field, way: usize, array: &Array<T>, into: &mut Vec<Register>) {
    let values = array.items().iter().map(|&item| item.into());
    let taken = values.enumerate().filter(|&(_, value)| value != 0);
    into.extend(taken.map(|(at, value)| Register {
        field,
        way: way as u8,
        at: at as u32,
        value,
    }));
}

impl SwitchProgram {
    /// Every register that is not zero, array by array, way by way.
    pub fn registers(&self) -> Vec<Register> {
        let mut registers = Vec::new();
        for field in Field::ALL {
            for (number, way) in self.ways.iter().enumerate() {
                match field {
                    Field::Tag => list(field, number, &way.tag, &mut registers),
                    Field::Lock => list(field, number, &way.lock, &mut registers),
                    Field::Status => list(field, number, &way.status, &mut registers),
                    Field::Copyset => list(field, number, &way.copyset, &mut registers),
                    Field::Score | Field::Move => {}
                }
            }
        }
        list(Field::Score, 0, &self.scores, &mut registers);
        list(Field::Move, 0, &self.moves, &mut registers);
        registers
    }

    /// Writes one register, as a control plane does. Says whether there is such a register, wide enough for the value.
    pub fn set_register(&mut self, register: Register) -> bool {
        let Register {
            field,
            way,
            at,
            value,
        } = register;
        let at = at as usize;
        match (field, self.ways.get_mut(usize::from(way))) {
            (Field::Score, _) => self.scores.put(at, Some(value)),
            (Field::Move, _) => self.moves.put(at, Some(value)),
            (Field::Tag, Some(way)) => way.tag.put(at, Some(value)),
            (Field::Lock, Some(way)) => way.lock.put(at, value.try_into().ok()),
            (Field::Status, Some(way)) => way.status.put(at, value.try_into().ok()),
            (Field::Copyset, Some(way)) => way.copyset.put(at, value.try_into().ok()),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::SwitchConfig;

    #[test]
    fn what_is_written_is_listed_and_makes_the_same_switch() {
        let config = SwitchConfig {
            ways: 2,
            sets: 4,
            nodes: 2,
            requesters: 2,
            ..SwitchConfig::default()
        };
        let mut switch = SwitchProgram::new(config);
        assert!(switch.registers().is_empty());
        for (number, field) in Field::ALL.into_iter().enumerate() {
            let register = Register {
                field,
                way: u8::from(field.of_a_way()),
                at: 3,
                value: number as u64 + 1,
            };
            assert!(switch.set_register(register), "{field:?}");
        }
        let registers = switch.registers();
        assert_eq!(registers.len(), Field::ALL.len());
        let mut copy = SwitchProgram::new(config);
        assert!(
            registers
                .iter()
                .all(|&register| copy.set_register(register))
        );
        assert_eq!(copy.registers(), registers);
    }

    #[test]
    fn a_register_that_is_not_there_is_not_written() {
        let mut switch = SwitchProgram::new(SwitchConfig {
            ways: 1,
            sets: 2,
            ..SwitchConfig::default()
        });
        for (field, way, at, value) in [
            (Field::Tag, 1, 0, 1),
            (Field::Tag, 0, 2, 1),
            (Field::Lock, 0, 0, 1 << 16),
        ] {
            let register = Register {
                field,
                way,
                at,
                value,
            };
            assert!(!switch.set_register(register));
        }
        assert!(switch.registers().is_empty());
    }
}
