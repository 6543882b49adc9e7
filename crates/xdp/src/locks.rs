//! The directory of locks: its map as registers, and what the control plane does with it.

use crate::error::Result;
use crate::layout::{LOCK_WAYS, LockSet, Slot, lock_set, lock_set_bytes};
use crate::load::Switch;
use crate::registers::write;
use rackmem_proto::gcp::Entry;
use rackmem_proto::switch::{Field, LockProgram, Register};
use rackmem_wire::Tag;

impl Switch {
    fn lock_set(&self, at: u32) -> Result<LockSet> {
        Ok(lock_set(&self.locks.get(&at, 0)?))
    }

    /// Adds every register of a lock that is not zero.
    pub(crate) fn list_locks(&self, into: &mut Vec<Register>) -> Result<()> {
        for at in 0..self.locks.len() {
            let set = self.lock_set(at)?;
            for (way, slot) in (0..).zip(set) {
                let values = [
                    (Field::LockTag, slot.tag),
                    (Field::LockVersion, slot.version),
                    (Field::LockSince, slot.since),
                    (Field::LockWho, u32::from_le_bytes(slot.who).into()),
                    (Field::LockSharers, slot.sharers.into()),
                ];
                let taken = values.into_iter().filter(|&(_, value)| value != 0);
                into.extend(taken.map(|(field, value)| Register {
                    field,
                    way,
                    at,
                    value,
                }));
            }
        }
        Ok(())
    }

    /// Writes one register of a lock. See [`Switch::set_register`].
    pub(crate) fn set_lock_register(&mut self, register: Register) -> Result<bool> {
        let Register {
            field,
            way,
            at,
            value,
        } = register;
        if at >= self.locks.len() || way >= self.config.locks.ways {
            return Ok(false);
        }
        let mut set = self.lock_set(at)?;
        let slot = &mut set[usize::from(way)];
        let mut who = 0u32;
        let fits = match field {
            Field::LockTag => write(&mut slot.tag, value),
            Field::LockVersion => write(&mut slot.version, value),
            Field::LockSince => write(&mut slot.since, value),
            Field::LockWho => write(&mut who, value),
            _ => write(&mut slot.sharers, value),
        };
        if fits && field == Field::LockWho {
            slot.who = who.to_le_bytes();
        }
        if fits {
            self.locks.set(at, lock_set_bytes(&set), 0)?;
        }
        Ok(fits)
    }

    /// The locks that it serves, with their entries. Of a switch that executes packets meanwhile it
    /// is what it was at no one moment.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn locks(&self) -> Result<Vec<(Tag, Entry)>> {
        let mut registers = Vec::new();
        self.list_locks(&mut registers)?;
        let mut copy = LockProgram::new(self.config.locks);
        for register in registers {
            copy.set_register(register);
        }
        Ok(copy.entries().collect())
    }

    /// Serves locks in another epoch, none so far. Says what it has served in the last one,
    /// up to the last packet.
    ///
    /// # Errors
    /// [`crate::Error::Map`]; it serves no locks then.
    pub fn next_locks(&mut self, epoch: u32) -> Result<Vec<(Tag, Entry)>> {
        self.config.serves_locks = false;
        self.write_config()?;
        let had = self.locks()?;
        let nothing = [Slot::default(); LOCK_WAYS];
        for at in 0..self.locks.len() {
            if self.lock_set(at)? != nothing {
                self.locks.set(at, lock_set_bytes(&nothing), 0)?;
            }
        }
        self.config.locks.epoch = epoch;
        self.config.serves_locks = true;
        self.write_config()?;
        Ok(had)
    }
}
