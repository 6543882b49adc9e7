//! The Rust program with something done to it before or after each packet.

use rackmem_conformance::{Implementation, Port, Reference, Reply, Sent, Setup};
use rackmem_proto::switch::{Field, Register, SwitchProgram};
use rackmem_proto::wire::{Header, decode, encode};
use std::rc::Rc;

/// Done to the bytes as they come.
pub type Bytes = dyn Fn(&mut Vec<u8>);
/// Done to a data-plane packet and the registers before it is executed. False: it is dropped instead.
pub type Before = dyn Fn(&mut SwitchProgram, &mut Header) -> bool;
/// Done to what comes out and to the registers; the first program is how they were.
pub type After = dyn Fn(&SwitchProgram, &mut SwitchProgram, &Header, &mut Vec<(Port, Header)>);

/// Where a difference is.
#[derive(Clone)]
pub enum Hook {
    Setup(fn(&mut Setup)),
    NeverFreeze,
    Bytes(Rc<Bytes>),
    Before(Rc<Before>),
    After(Rc<After>),
}

/// A planted difference.
#[derive(Clone)]
pub struct Plant {
    pub name: String,
    pub hook: Hook,
}

#[derive(Clone)]
pub struct Planted {
    plant: Plant,
    setup: Setup,
    program: SwitchProgram,
}

impl Planted {
    pub fn new(plant: Plant) -> Self {
        let setup = Setup::default();
        let program = SwitchProgram::new(setup.config());
        Planted {
            plant,
            setup,
            program,
        }
    }

    pub fn plant(&self) -> &Plant {
        &self.plant
    }

    fn run(&mut self, bytes: &[u8]) -> Reply {
        let mut rust = Reference::new(&self.setup);
        std::mem::swap(rust.program_mut(), &mut self.program);
        let reply = rust.take(bytes);
        std::mem::swap(rust.program_mut(), &mut self.program);
        reply
    }
}

impl Implementation for Planted {
    fn name(&self) -> String {
        self.plant.name.clone()
    }

    fn configure(&mut self, setup: &Setup) -> Result<(), String> {
        self.setup = *setup;
        if let Hook::Setup(change) = self.plant.hook {
            change(&mut self.setup);
        }
        self.program = SwitchProgram::new(self.setup.config());
        Ok(())
    }

    fn load(&mut self, registers: &[Register]) -> Result<(), String> {
        // A switch that is set up wrongly may not have all of them.
        for &register in registers {
            self.program.set_register(register);
        }
        Ok(())
    }

    fn freeze(&mut self) -> Result<(), String> {
        if !matches!(self.plant.hook, Hook::NeverFreeze) {
            self.program.freeze();
        }
        Ok(())
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Reply, String> {
        let mut bytes = bytes.to_vec();
        if let Hook::Bytes(change) = &self.plant.hook {
            change(&mut bytes);
        }
        let header = decode(&bytes).ok().filter(|(_, body)| body.is_empty());
        let header = header.map(|(header, _)| header);
        let Some(mut header) = header.filter(|header| header.kind.in_data_plane()) else {
            return Ok(self.run(&bytes));
        };
        if let Hook::Before(change) = &self.plant.hook {
            if !change(&mut self.program, &mut header) {
                return Ok(Reply::Sent(Vec::new()));
            }
            bytes = encode(&header, 0).into();
        }
        let before = self.program.clone();
        let reply = self.run(&bytes);
        let (Hook::After(change), Reply::Sent(sent)) = (&self.plant.hook, &reply) else {
            return Ok(reply);
        };
        let decoded = |sent: &Sent| decode(&sent.bytes).map(|(header, _)| (sent.port, header));
        let mut sent: Vec<_> = sent.iter().filter_map(|sent| decoded(sent).ok()).collect();
        change(&before, &mut self.program, &header, &mut sent);
        let packet = |(port, header): (Port, Header)| Sent {
            port,
            bytes: encode(&header, 0).into(),
        };
        Ok(Reply::Sent(sent.into_iter().map(packet).collect()))
    }

    fn registers(&mut self) -> Result<Vec<Register>, String> {
        Ok(self.program.registers())
    }
}

/// One register's place and value.
pub fn register(program: &SwitchProgram, field: Field, way: u8, at: usize) -> Register {
    let here = |r: &Register| (r.field, r.way, r.at as usize) == (field, way, at);
    let found = program.registers().into_iter().find(here);
    found.unwrap_or(Register {
        field,
        way,
        at: at as u32,
        value: 0,
    })
}
