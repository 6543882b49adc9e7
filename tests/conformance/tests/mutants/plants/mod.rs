//! The planted differences: a rule each.

mod lock_directory;
mod locks;
mod parser;
mod ports;
mod tables;
mod unlocks;

use crate::planted::{Hook, Plant, register};
use rackmem_conformance::Port;
use rackmem_proto::flowcc::migration::MAX_MOVES;
use rackmem_proto::switch::{Field, Register, SwitchProgram, numbers, set_of};
use rackmem_proto::wire::{Flags, Header, Kind};
use std::cmp::Ordering;
use std::rc::Rc;

pub fn plants() -> Vec<Plant> {
    let mut plants = parser::parser();
    plants.extend(parser::fences());
    plants.extend(tables::tables());
    plants.extend(tables::packets());
    plants.extend(locks::locks());
    plants.extend(locks::scores());
    plants.extend(unlocks::unlocks());
    plants.extend(unlocks::moves());
    plants.extend(lock_directory::requests());
    plants.extend(lock_directory::packets());
    plants.extend(ports::ports());
    plants
}

pub type Sent = Vec<(Port, Header)>;

pub fn bytes(name: &str, change: impl Fn(&mut Vec<u8>) + 'static) -> Plant {
    let hook = Hook::Bytes(Rc::new(change));
    let name = name.into();
    Plant { name, hook }
}

pub fn before(
    name: &str,
    change: impl Fn(&mut SwitchProgram, &mut Header) -> bool + 'static,
) -> Plant {
    let hook = Hook::Before(Rc::new(change));
    let name = name.into();
    Plant { name, hook }
}

pub fn after(
    name: &str,
    change: impl Fn(&SwitchProgram, &mut SwitchProgram, &Header, &mut Sent) + 'static,
) -> Plant {
    let hook = Hook::After(Rc::new(change));
    let name = name.into();
    Plant { name, hook }
}

/// Does this to every packet that leaves for a request that was granted.
pub fn granted(name: &str, change: impl Fn(&Header, &mut Header) + 'static) -> Plant {
    after(name, move |_, _, asked, sent| {
        let leaving = sent.iter_mut().map(|(_, header)| header);
        leaving
            .filter(|header| asked.kind.is_request() && header.flags.has(Flags::GRANTED))
            .for_each(|header| change(asked, header));
    })
}

pub fn is_move(header: &Header) -> bool {
    matches!(header.kind, Kind::AddToSwitch | Kind::RemoveFromSwitch)
}

/// Where a tag's entry is.
pub fn place(program: &SwitchProgram, header: &Header) -> Option<(u8, usize)> {
    let at = set_of(header.tag, 4);
    let here = |way: &u8| register(program, Field::Tag, *way, at).value == header.tag.0 | 1;
    (0..2).find(here).map(|way| (way, at))
}

pub fn change(program: &mut SwitchProgram, header: &Header, field: Field, f: impl Fn(u64) -> u64) {
    if let Some((way, at)) = place(program, header) {
        let found = register(program, field, way, at);
        program.set_register(Register {
            value: f(found.value),
            ..found
        });
    }
}

pub fn score(program: &SwitchProgram, header: &Header) -> Register {
    let id = header.requester;
    let row = usize::from(id.node * 2 + id.slot) * 2 + header.seq.parity();
    register(program, Field::Score, 0, row)
}

pub fn move_of(program: &SwitchProgram, header: &Header) -> Register {
    let id = header.requester;
    let row = usize::from(id.node) * MAX_MOVES + usize::from(id.slot);
    register(program, Field::Move, 0, row)
}

/// How a request's number stands to its score.
pub fn order(program: &SwitchProgram, header: &Header) -> Ordering {
    let score = score(program, header).value;
    numbers::order(header.seq, (score >> 32) as u32)
}

/// Whether an event ended between the two.
pub fn over(was: &SwitchProgram, is: &SwitchProgram, header: &Header) -> bool {
    score(was, header).value != score(is, header).value
}
