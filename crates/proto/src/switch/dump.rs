//! The registers one by one: what golden packets say of them, and what is carried between forms of
//! the program.

use super::locks::LockProgram;
use super::program::SwitchProgram;
use super::rmt::Array;
use crate::gcp::{Mode, State};
use crate::wire::Reason;
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
    /// LOCK-TAG of a way of locks: as TAG.
    LockTag,
    /// A part of LOCK-STATE of a way of locks: the version.
    LockVersion,
    /// Likewise: the version with which the queue holder became that.
    LockSince,
    /// Likewise: `reason:8 | shared:8 | keeper:8 | holder:8`. Zero is what an unused entry has.
    LockWho,
    /// LOCK-SHARERS of a way of locks.
    LockSharers,
}

impl Field {
    /// All of them, in the order of the stages.
    pub const ALL: [Field; 11] = [
        Field::Tag,
        Field::Lock,
        Field::Status,
        Field::Copyset,
        Field::Score,
        Field::Move,
        Field::LockTag,
        Field::LockVersion,
        Field::LockSince,
        Field::LockWho,
        Field::LockSharers,
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
            Field::LockTag => "LOCK-TAG",
            Field::LockVersion => "LOCK-VERSION",
            Field::LockSince => "LOCK-SINCE",
            Field::LockWho => "LOCK-WHO",
            Field::LockSharers => "LOCK-SHARERS",
        }
    }

    /// Whether every way has one.
    pub const fn of_a_way(self) -> bool {
        !matches!(self, Field::Score | Field::Move)
    }

    /// Whether it is of the directory of locks, [`LockProgram`]'s, and not of [`SwitchProgram`].
    pub const fn of_locks(self) -> bool {
        self as u8 >= Field::LockTag as u8
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
                    _ => {}
                }
            }
        }
        list(Field::Score, 0, &self.scores, &mut registers);
        list(Field::Move, 0, &self.moves, &mut registers);
        registers
    }

    /// Writes one register, as a control plane does. Says whether there is such a register,
    /// wide enough for the value.
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

/// What of LOCK-STATE is neither of the versions, as one word.
fn who(state: &State) -> u64 {
    let shared = u8::from(state.mode == Mode::Shared);
    u32::from_be_bytes([state.reason as u8, shared, state.keeper, state.holder]).into()
}

/// The same from the word; nothing if it does not say so.
fn with_who(state: State, word: u64) -> Option<State> {
    let [reason, shared, keeper, holder] = u32::try_from(word).ok()?.to_be_bytes();
    Some(State {
        holder,
        keeper,
        mode: match shared {
            0 => Mode::Modified,
            1 => Mode::Shared,
            _ => return None,
        },
        reason: Reason::from_byte(reason)?,
        ..state
    })
}

impl LockProgram {
    /// Every register that is not zero, array by array, way by way.
    pub fn registers(&self) -> Vec<Register> {
        let mut registers = Vec::new();
        let of_locks = Field::ALL.into_iter().filter(|field| field.of_locks());
        for field in of_locks {
            for (number, way) in self.ways.iter().enumerate() {
                for at in 0..way.tag.len() {
                    let state = &way.state.items()[at];
                    let value = match field {
                        Field::LockTag => way.tag.items()[at],
                        Field::LockVersion => state.version,
                        Field::LockSince => state.since,
                        Field::LockWho => who(state),
                        _ => way.sharers.items()[at].into(),
                    };
                    if value != 0 {
                        registers.push(Register {
                            field,
                            way: number as u8,
                            at: at as u32,
                            value,
                        });
                    }
                }
            }
        }
        registers
    }

    /// Writes one register, as a control plane does. Says whether there is such a register, and
    /// what it is told makes sense.
    pub fn set_register(&mut self, register: Register) -> bool {
        let Register {
            field,
            way,
            at,
            value,
        } = register;
        let at = at as usize;
        let Some(way) = self.ways.get_mut(usize::from(way)) else {
            return false;
        };
        let Some(&state) = way.state.items().get(at) else {
            return false;
        };
        let version = value;
        match field {
            Field::LockTag => way.tag.put(at, Some(value)),
            Field::LockVersion => way.state.put(at, Some(State { version, ..state })),
            Field::LockSince => {
                let since = value;
                way.state.put(at, Some(State { since, ..state }))
            }
            Field::LockWho => way.state.put(at, with_who(state, value)),
            Field::LockSharers => way.sharers.put(at, value.try_into().ok()),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::{LockConfig, SwitchConfig};

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
        let of_locks = LockConfig {
            epoch: 1,
            ways: 2,
            sets: 4,
        };
        let mut locks = LockProgram::new(of_locks);
        for (number, field) in Field::ALL.into_iter().enumerate() {
            let register = Register {
                field,
                way: u8::from(field.of_a_way()),
                at: 3,
                value: number as u64 + 1,
            };
            assert_eq!(switch.set_register(register), !field.of_locks());
            assert_eq!(locks.set_register(register), field.of_locks());
        }
        let (registers, of_the_locks) = (switch.registers(), locks.registers());
        assert_eq!(registers.len() + of_the_locks.len(), Field::ALL.len());
        let mut copy = SwitchProgram::new(config);
        assert!(
            registers
                .iter()
                .all(|&register| copy.set_register(register))
        );
        assert_eq!(copy.registers(), registers);
        let mut copy = LockProgram::new(of_locks);
        assert!(of_the_locks.iter().all(|&r| copy.set_register(r)));
        assert_eq!(copy.registers(), of_the_locks);
    }

    #[test]
    fn an_entry_of_a_lock_that_makes_no_sense_is_not_written() {
        let mut locks = LockProgram::new(LockConfig {
            epoch: 1,
            ways: 1,
            sets: 2,
        });
        for (field, way, at, value) in [
            (Field::LockTag, 1, 0, 1),
            (Field::LockVersion, 0, 2, 1),
            (Field::LockWho, 0, 0, 2 << 16),
            (Field::LockWho, 0, 0, 0xff << 24),
            (Field::LockSharers, 0, 0, 1 << 32),
        ] {
            let register = Register {
                field,
                way,
                at,
                value,
            };
            assert!(!locks.set_register(register), "{register:?}");
        }
        assert!(locks.registers().is_empty());
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
