//! The maps as registers: what golden packets say of them, and what other forms of the program
//! have.

use crate::error::Result;
use crate::layout::{Set, WAYS};
use crate::load::Switch;
use aya::maps::{Array, MapData};
use rackmem_proto::switch::{Field, Register};

impl Switch {
    pub(crate) fn set(&self, at: usize) -> Result<Set> {
        Ok(Set::from_bytes(&self.sets.get(&(at as u32), 0)?))
    }

    /// Every register that is not zero, array by array.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn registers(&self) -> Result<Vec<Register>> {
        let mut registers = Vec::new();
        for at in 0..self.sets.len() {
            let set = self.set(at as usize)?;
            for way in 0..WAYS {
                let values = [
                    (Field::Tag, set.tag[way]),
                    (Field::Lock, set.lock[way].into()),
                    (Field::Status, set.status[way].into()),
                    (Field::Copyset, set.copyset[way].into()),
                ];
                let taken = values.into_iter().filter(|&(_, value)| value != 0);
                registers.extend(taken.map(|(field, value)| Register {
                    field,
                    way: way as u8,
                    at,
                    value,
                }));
            }
        }
        self.list_locks(&mut registers)?;
        list(Field::Score, &self.scores, &mut registers)?;
        list(Field::Move, &self.moves, &mut registers)?;
        registers.sort_unstable();
        Ok(registers)
    }

    /// Writes one register. Says whether there is such a register, wide enough for the value.
    /// No packet may be executed meanwhile, or the program must be frozen.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn set_register(&mut self, register: Register) -> Result<bool> {
        self.frozen.take();
        let Register {
            field,
            way,
            at,
            value,
        } = register;
        match field {
            Field::Score => return put(&mut self.scores, at, value),
            Field::Move => return put(&mut self.moves, at, value),
            field if field.of_locks() => return self.set_lock_register(register),
            _ => {}
        }
        if at >= self.sets.len() || way >= self.config.switch.ways {
            return Ok(false);
        }
        let (mut set, way) = (self.set(at as usize)?, usize::from(way));
        let fits = match field {
            Field::Tag => write(&mut set.tag[way], value),
            Field::Lock => write(&mut set.lock[way], value),
            Field::Status => write(&mut set.status[way], value),
            _ => write(&mut set.copyset[way], value),
        };
        if fits {
            self.sets.set(at, set.to_bytes(), 0)?;
        }
        Ok(fits)
    }

    /// Makes every register zero.
    pub(crate) fn clear(&mut self) -> Result<()> {
        self.frozen.take();
        for at in 0..self.sets.len() {
            if self.set(at as usize)? != Set::default() {
                self.sets.set(at, Set::default().to_bytes(), 0)?;
            }
        }
        for rows in [&mut self.scores, &mut self.moves] {
            for at in 0..rows.len() {
                if rows.get(&at, 0)? != 0 {
                    rows.set(at, 0, 0)?;
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn write<T: TryFrom<u64>>(place: &mut T, value: u64) -> bool {
    match T::try_from(value) {
        Ok(value) => *place = value,
        Err(_) => return false,
    }
    true
}

fn put(rows: &mut Array<MapData, u64>, at: u32, value: u64) -> Result<bool> {
    let there = at < rows.len();
    if there {
        rows.set(at, value, 0)?;
    }
    Ok(there)
}

fn list(field: Field, rows: &Array<MapData, u64>, into: &mut Vec<Register>) -> Result<()> {
    for (at, value) in rows.iter().enumerate() {
        let (at, value, way) = (at as u32, value?, 0);
        if value != 0 {
            into.push(Register {
                field,
                way,
                at,
                value,
            });
        }
    }
    Ok(())
}
