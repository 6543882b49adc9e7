//! The Rust program: the one that the others are compared with.

use crate::{Implementation, Port, Reply, Sent, Setup};
use rackmem_proto::Dest;
use rackmem_proto::membership::host;
use rackmem_proto::switch::{LockProgram, Register, SwitchProgram};
use rackmem_proto::wire::{decode, encode};

/// The Rust switch program between bytes and bytes, with its directory of locks.
#[derive(Clone)]
pub struct Reference {
    switch: SwitchProgram,
    locks: LockProgram,
}

impl Reference {
    /// A switch that owns nothing.
    pub fn new(setup: &Setup) -> Self {
        Reference {
            switch: SwitchProgram::new(setup.config()),
            locks: LockProgram::new(setup.locks()),
        }
    }

    /// All registers that are not zero, array by array.
    pub fn registers(&self) -> Vec<Register> {
        let mut registers = self.switch.registers();
        registers.extend(self.locks.registers());
        registers
    }

    /// The program.
    pub fn program(&self) -> &SwitchProgram {
        &self.switch
    }

    /// The program, to tamper with: what a planted difference does.
    pub fn program_mut(&mut self) -> &mut SwitchProgram {
        &mut self.switch
    }

    /// Its directory of locks.
    pub fn locks(&self) -> &LockProgram {
        &self.locks
    }

    /// The same, to tamper with.
    pub fn locks_mut(&mut self) -> &mut LockProgram {
        &mut self.locks
    }

    /// Takes a packet as a host of the program must.
    pub fn take(&mut self, packet: &[u8]) -> Reply {
        let dropped = Reply::Sent(Vec::new());
        let Ok((header, body)) = decode(packet) else {
            return dropped;
        };
        if !header.kind.in_data_plane() {
            return Reply::ControlPlane;
        }
        if !body.is_empty() {
            return dropped;
        }
        let outputs = match header.kind.asks_lock_switch() {
            true => self.locks.handle(&header),
            false => self.switch.handle(&header),
        };
        let copies = outputs.iter().flat_map(|output| output.copies(host));
        let sent = copies.filter_map(|(to, header)| {
            let port = match to {
                Dest::Agent(node) => Port::Agent(node),
                Dest::Requester(id) => Port::Requester {
                    node: id.node,
                    port: header.reply_port,
                },
                // `copies` leaves no multicast and no home, and the switch sends nothing to itself.
                Dest::Agents { .. } | Dest::Home(_) | Dest::Switch => return None,
            };
            let bytes = encode(&header, 0).to_vec();
            Some(Sent { port, bytes })
        });
        Reply::Sent(sent.collect()).sorted()
    }
}

impl Implementation for Reference {
    fn name(&self) -> String {
        "Rust".into()
    }

    fn configure(&mut self, setup: &Setup) -> Result<(), String> {
        *self = Reference::new(setup);
        Ok(())
    }

    fn load(&mut self, registers: &[Register]) -> Result<(), String> {
        for &register in registers {
            let written = match register.field.of_locks() {
                true => self.locks.set_register(register),
                false => self.switch.set_register(register),
            };
            if !written {
                return Err(format!("there is no {register:?}"));
            }
        }
        Ok(())
    }

    fn freeze(&mut self) -> Result<(), String> {
        self.switch.freeze();
        Ok(())
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Reply, String> {
        Ok(self.take(bytes))
    }

    fn registers(&mut self) -> Result<Vec<Register>, String> {
        Ok(Reference::registers(self))
    }
}
