//! The Rust program with something done to it before or after each packet.

use rackmem_conformance::{Implementation, Port, Reference, Reply, Sent, Setup};
use rackmem_proto::switch::{Field, LockProgram, Register, SwitchProgram};
use rackmem_proto::wire::{Header, decode, encode};
use std::rc::Rc;

/// Done to the bytes as they come.
pub type Bytes = dyn Fn(&mut Vec<u8>);
/// Done to a data-plane packet and the registers before it is executed. False:
/// it is dropped instead.
pub type Before = dyn Fn(&mut SwitchProgram, &mut Header) -> bool;
/// Done to what comes out and to the registers; the first program is how they were.
pub type After = dyn Fn(&SwitchProgram, &mut SwitchProgram, &Header, &mut Vec<(Port, Header)>);

/// Done to what comes out, in a rack that is wired like this.
pub type ByPort = dyn Fn(&Setup, &mut Vec<(Port, Header)>);
/// The same for packets about locks and their directory.
pub type BeforeLock = dyn Fn(&mut LockProgram, &mut Header) -> bool;
/// Likewise.
pub type AfterLock = dyn Fn(&LockProgram, &mut LockProgram, &Header, &mut Vec<(Port, Header)>);

/// Where a difference is.
#[derive(Clone)]
pub enum Hook {
    Setup(fn(&mut Setup)),
    NeverFreeze,
    Bytes(Rc<Bytes>),
    Before(Rc<Before>),
    After(Rc<After>),
    BeforeLock(Rc<BeforeLock>),
    AfterLock(Rc<AfterLock>),
    Ports(Rc<ByPort>),
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
    rust: Reference,
}

impl Planted {
    pub fn new(plant: Plant) -> Self {
        let setup = Setup::default();
        Planted {
            plant,
            setup,
            rust: Reference::new(&setup),
        }
    }

    pub fn plant(&self) -> &Plant {
        &self.plant
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
        self.rust = Reference::new(&self.setup);
        Ok(())
    }

    fn load(&mut self, registers: &[Register]) -> Result<(), String> {
        // A switch that is set up wrongly may not have all of them.
        for &register in registers {
            let _ = self.rust.load(&[register]);
        }
        Ok(())
    }

    fn freeze(&mut self) -> Result<(), String> {
        if !matches!(self.plant.hook, Hook::NeverFreeze) {
            self.rust.program_mut().freeze();
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
            return Ok(self.rust.take(&bytes));
        };
        let of_locks = header.kind.asks_lock_switch();
        let goes_on = match &self.plant.hook {
            Hook::Before(change) => change(self.rust.program_mut(), &mut header),
            Hook::BeforeLock(change) if of_locks => change(self.rust.locks_mut(), &mut header),
            _ => true,
        };
        if !goes_on {
            return Ok(Reply::Sent(Vec::new()));
        }
        bytes = encode(&header, 0).to_vec();
        let before = self.rust.clone();
        let reply = self.rust.take(&bytes);
        let Reply::Sent(sent) = &reply else {
            return Ok(reply);
        };
        let decoded = |sent: &Sent| decode(&sent.bytes).map(|(header, _)| (sent.port, header));
        let mut sent: Vec<_> = sent.iter().filter_map(|sent| decoded(sent).ok()).collect();
        match &self.plant.hook {
            Hook::After(change) => {
                change(
                    before.program(),
                    self.rust.program_mut(),
                    &header,
                    &mut sent,
                );
            }
            Hook::AfterLock(change) if of_locks => {
                change(before.locks(), self.rust.locks_mut(), &header, &mut sent);
            }
            Hook::Ports(change) => change(&self.setup, &mut sent),
            _ => return Ok(reply),
        }
        let packet = |(port, header): (Port, Header)| Sent {
            port,
            bytes: encode(&header, 0).to_vec(),
        };
        Ok(Reply::Sent(sent.into_iter().map(packet).collect()))
    }

    fn registers(&mut self) -> Result<Vec<Register>, String> {
        Ok(self.rust.registers())
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
