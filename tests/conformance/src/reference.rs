//! The Rust program: the one that the others are compared with.

use crate::{Implementation, Port, Reply, Sent, Setup};
use rackmem_proto::Dest;
use rackmem_proto::switch::{Register, SwitchProgram};
use rackmem_proto::wire::{decode, encode};

/// The Rust switch program between bytes and bytes.
pub struct Reference {
    switch: SwitchProgram,
}

impl Reference {
    /// A switch that owns nothing.
    pub fn new(setup: &Setup) -> Self {
        let switch = SwitchProgram::new(setup.config());
        Reference { switch }
    }

    /// The program.
    pub fn program(&self) -> &SwitchProgram {
        &self.switch
    }

    /// The program, to tamper with: what a planted difference does.
    pub fn program_mut(&mut self) -> &mut SwitchProgram {
        &mut self.switch
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
        let outputs = self.switch.handle(&header);
        let copies = outputs.iter().flat_map(|output| output.copies());
        let sent = copies.filter_map(|(to, header)| {
            let port = match to {
                Dest::Agent(node) => Port::Agent(node),
                Dest::Requester(id) => Port::Requester {
                    node: id.node,
                    port: header.reply_port,
                },
                // `copies` leaves no multicast, and the switch sends nothing to itself.
                Dest::Agents { .. } | Dest::Switch => return None,
            };
            let bytes = encode(&header, 0).into();
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
        match registers.iter().find(|r| !self.switch.set_register(**r)) {
            Some(register) => Err(format!("there is no {register:?}")),
            None => Ok(()),
        }
    }

    fn freeze(&mut self) -> Result<(), String> {
        self.switch.freeze();
        Ok(())
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Reply, String> {
        Ok(self.take(bytes))
    }

    fn registers(&mut self) -> Result<Vec<Register>, String> {
        Ok(self.switch.registers())
    }
}
