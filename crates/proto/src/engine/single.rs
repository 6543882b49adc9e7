//! A protocol whose part of a node is one value behind one lock: plain functions of that value,
//! which say what they want sent and which command is answered. The rest of [`Protocol`] follows.

use super::{Change, Holds, Payload, Protocol, Reporter};
use crate::flowcc::Members;
use crate::wire::{Copyset, Dest, Header, Kind, NodeId, Record};
use crate::{Data, Output};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::RangeInclusive;

/// What a step of a [`Single`] wants done when its section is over, in order.
#[derive(Debug)]
pub struct Wants<O> {
    sent: Vec<(NodeId, Header, Vec<Record>)>,
    done: Vec<(u8, O)>,
}

impl<O> Wants<O> {
    /// Sends a packet to the agents of a node, with these records behind it. Epoch, sender and
    /// incarnation are put in on its way.
    pub fn send(&mut self, to: NodeId, header: Header, records: &[Record]) {
        self.sent.push((to, header, records.to_vec()));
    }

    /// The command in this slot is answered.
    pub fn done(&mut self, slot: u8, outcome: O) {
        self.done.push((slot, outcome));
    }
}

/// See the module. Functions are those of [`Protocol`], where they are described.
#[expect(missing_docs, reason = "they are those of `Protocol`")]
pub trait Single: Hash + Sized {
    const NAME: &'static str;
    const NUMBER: u8;
    const KINDS: &'static [RangeInclusive<Kind>];
    type Command;
    type Outcome;

    fn packet(&mut self, header: &Header, wants: &mut Wants<Self::Outcome>);
    fn command(&mut self, slot: u8, command: Self::Command, wants: &mut Wants<Self::Outcome>);
    fn tick(&mut self, _wants: &mut Wants<Self::Outcome>) {}
    fn enter(&mut self, members: Members);
    fn forget(&mut self, _gone: Copyset) {}
    fn report(&self) -> Vec<Record>;
    fn hear(&mut self, from: Reporter, record: Record);
    fn settle(&mut self, _change: &Change) {}
    fn resume(&mut self, _wants: &mut Wants<Self::Outcome>) {}
}

/// A section, and then what it wants done.
fn section<P: Single, H: Holds<P>>(
    host: &mut H,
    act: impl FnOnce(&mut P, &mut Wants<<P as Single>::Outcome>),
) {
    let (sent, done) = (Vec::new(), Vec::new());
    let mut wants = Wants { sent, done };
    host.part(|part| act(part, &mut wants));
    for (to, mut header, records) in wants.sent {
        (header.epoch, header.sender) = (host.epoch(), host.me());
        header.incarnation = host.incarnation(header.requester.node);
        let output = Output::with(Dest::Agent(to), header, Data::Records);
        host.send(&output, Payload::Records(&records));
    }
    for (slot, outcome) in wants.done {
        host.done(slot, outcome);
    }
}

impl<P: Single, H: Holds<P>> Protocol<H> for P {
    const NAME: &'static str = P::NAME;
    const NUMBER: u8 = P::NUMBER;
    const KINDS: &'static [RangeInclusive<Kind>] = P::KINDS;
    type Command = P::Command;
    type Outcome = P::Outcome;

    fn packet(host: &mut H, header: &Header) {
        section::<P, H>(host, |part, wants| part.packet(header, wants));
    }

    fn command(host: &mut H, slot: u8, command: P::Command) {
        section::<P, H>(host, |part, wants| part.command(slot, command, wants));
    }

    fn tick(host: &mut H, _: bool) {
        section::<P, H>(host, P::tick);
    }

    fn enter(host: &mut H, members: Members) {
        host.part(|part| part.enter(members));
    }

    fn forget(host: &mut H, gone: Copyset) {
        host.part(|part| part.forget(gone));
    }

    fn report(host: &mut H) -> Vec<Record> {
        host.part(|part| part.report())
    }

    fn hear(host: &mut H, from: Reporter, record: Record) {
        host.part(|part| part.hear(from, record));
    }

    fn settle(host: &mut H, change: &Change) {
        host.part(|part| part.settle(change));
    }

    fn resume(host: &mut H) {
        section::<P, H>(host, P::resume);
    }

    fn fingerprint(host: &mut H, into: &mut impl Hasher)
    where
        H::Bytes: Hash,
    {
        host.part(|part| part.hash(into));
    }
}
