//! Whole objects, read without tearing and without a lock: SABRes, the `Object` contract.
//!
//! An object has a version in front of it. Writers are threads of its home's process; readers copy
//! it wherever they can reach it and look at the version before and after ([`rule`]).
//! `docs/protocols/sabres.md` tells what is the paper's and what is not.
//!
//! | question | answered in |
//! |---|---|
//! | how does an object lie in memory? | [`Meta`], `layout` |
//! | may it be copied, and was it whole? | [`rule`] |
//! | what of a home's memory is given out? | [`Book`] |
//! | what does a home do with a packet? | [`Home`] |
//! | what does a thread do that cannot reach the memory? | [`Operation`] |
//! | and when a writer is in, or the object has moved? | [`Retry`] |
//!
//! [`Sabre`] is all of it at one node. The words of objects are the host's ([`Words`]);
//! what travels and what threads hold is beside it ([`Section`], [`Values`]). The hardware that the
//! paper proposes is [`controller`], for the checker and the cycle model.

mod book;
pub mod controller;
mod effects;
mod home;
mod layout;
mod operation;
mod retry;
pub mod rule;
mod section;

pub use book::{Book, Given, Spot};
pub use effects::{Bytes, Defect, Effects, Memory};
pub use home::{Answer, Home, Write};
pub use layout::{
    GRANULE, HEADER, LINE, MAX_BYTES, Meta, SLAB, all_granules, class_bytes, class_of, granules,
};
pub use operation::{Command, Heard, Lane, Operation, Outcome, Ref};
pub use retry::{Attempts, Next, Retry, Then};
pub use section::{Section, Sender, Values, Words};

use crate::call::Ticks;
use crate::wire::{Contract, Header, MAX_REQUESTERS, NodeId, Own, Reason, RequesterId, Seq};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// What kinds from 0x60 to 0x6f have of their own.
pub const fn own(version: u64, generation: u32, len: u32) -> Own {
    Own {
        a: version,
        b: (generation as u64) << 32 | len as u64,
    }
}

/// The generation in it.
pub const fn generation_of(own: &Own) -> u32 {
    (own.b >> 32) as u32
}

/// The length in it.
pub const fn len_of(own: &Own) -> u32 {
    own.b as u32
}

/// Reads that one thread has under way together, at most.
pub const MANY: usize = 16;

#[derive(Clone, Default, Debug)]
struct Slot {
    /// The last number that was used.
    number: Seq,
    /// What began together and has not ended; empty when all of it has.
    lanes: Vec<Option<Operation>>,
    pace: Ticks,
}

impl Slot {
    /// Asks for everything that has not ended.
    fn ask(&self, slot: u8, who: (RequesterId, u32), fx: &mut impl Effects) {
        for operation in self.lanes.iter().flatten() {
            operation.ask(slot, who, fx);
        }
    }

    fn end(&mut self, nth: usize) {
        if let Some(lane) = self.lanes.get_mut(nth) {
            *lane = None;
        }
        if self.lanes.iter().all(Option::is_none) {
            self.lanes.clear();
        }
    }
}

/// Objects at one node: those of its home, and what its threads do with others.
#[derive(Clone, Debug)]
pub struct Sabre {
    me: NodeId,
    incarnation: u32,
    /// Its home.
    pub home: Home,
    slots: Vec<Slot>,
}

impl Sabre {
    /// A node with these books.
    pub fn new((me, incarnation): (NodeId, u32), book: Book) -> Self {
        Sabre {
            me,
            incarnation,
            home: Home::new(book),
            slots: Vec::new(),
        }
    }

    fn who(&self, slot: u8) -> (RequesterId, u32) {
        let id = RequesterId {
            node: self.me,
            slot: slot.into(),
        };
        (id, self.incarnation)
    }

    /// A thread asks for something, in a slot in which nothing is under way.
    pub fn command(&mut self, slot: u8, command: Command, fx: &mut impl Effects) {
        self.begin(slot, core::iter::once(command), fx);
    }

    /// A thread asks for several objects at once, [`MANY`] at most, each unless it has this
    /// version. Each read is on its own. Nothing but reads can be under way together: a home
    /// remembers one call of a requester, and reads are none.
    pub fn reads(&mut self, slot: u8, objects: &[(Ref, u64)], fx: &mut impl Effects) {
        let reads = objects.iter().take(MANY);
        let reads = reads.map(|(object, known)| Command::Read(*object, *known));
        self.begin(slot, reads, fx);
    }

    fn begin(&mut self, slot: u8, all: impl Iterator<Item = Command>, fx: &mut impl Effects) {
        if usize::from(slot) >= MAX_REQUESTERS {
            return;
        }
        let at = usize::from(slot);
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, Slot::default);
        }
        let who = self.who(slot);
        let row = &mut self.slots[at];
        row.lanes.clear();
        for command in all {
            row.number = row.number.next();
            row.lanes.push(Some(Operation::begin(command, row.number)));
        }
        row.pace.reset();
        row.ask(slot, who, fx);
    }

    /// The thread in this slot does not wait for this operation any longer.
    pub fn abandon(&mut self, lane: Lane) {
        if let Some(row) = self.slots.get_mut(usize::from(lane.slot)) {
            row.end(lane.nth.into());
        }
    }

    /// What is due every few round trips: packets may have been lost, and epochs may have begun.
    pub fn tick(&mut self, fx: &mut impl Effects) {
        for at in 0..self.slots.len() {
            let who = self.who(at as u8);
            let row = &mut self.slots[at];
            if !row.lanes.is_empty() && row.pace.tick() {
                row.ask(at as u8, who, fx);
            }
        }
    }

    /// All homes serve in a new epoch: what was asked in the last one was dropped.
    pub fn resume(&mut self, fx: &mut impl Effects) {
        for at in 0..self.slots.len() {
            let who = self.who(at as u8);
            let row = &mut self.slots[at];
            row.pace.reset();
            row.ask(at as u8, who, fx);
        }
    }

    /// A packet of one of its kinds. `bytes`: how many are behind what its kind has of its own.
    pub fn packet(&mut self, header: &Header, own: &Own, bytes: u32, fx: &mut impl Effects) {
        if header.kind.asks_object() {
            return self.home.packet(header, own, bytes, fx);
        }
        let slot = header.requester.slot;
        let ours = self.who(slot as u8) == (header.requester, header.incarnation);
        // What was refused may have an address that is under no contract.
        let object = header.tag.is_under(Contract::Object) || header.reason != Reason::None;
        let who = self.who(slot as u8);
        let Some(row) = self.slots.get_mut(usize::from(slot)) else {
            return;
        };
        let mut lanes = row.lanes.iter_mut().enumerate();
        let meant = lanes.find_map(|(nth, lane)| {
            let operation = lane.as_mut()?;
            (operation.number() == header.seq).then_some((nth, operation))
        });
        let Some((nth, operation)) = meant.filter(|_| ours && object) else {
            return;
        };
        let lane = Lane {
            slot: slot as u8,
            nth: nth as u8,
        };
        match operation.packet(header, own, (lane, bytes), fx) {
            Heard::Nothing => {}
            Heard::News => row.pace.reset(),
            Heard::Behind => {
                operation.ask(lane.slot, who, fx);
                row.pace.reset();
            }
            Heard::Ended(outcome) => {
                row.end(nth);
                row.pace.reset();
                fx.done(lane, outcome);
            }
        }
    }

    /// Everything that decides what it will do, but when.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (self.me, self.incarnation).hash(into);
        self.home.fingerprint(into);
        for slot in &self.slots {
            (slot.number, &slot.lanes).hash(into);
        }
    }
}
