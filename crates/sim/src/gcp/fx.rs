//! What a lock acts by here: small arrays in place of bytes, a list in place of a port.

use super::mutation::Mutation;
use super::packet::{LIFE, Packet, TRUTH, Value, WORDS};
use rackmem_proto::engine::{Defect, LockFx};
use rackmem_proto::gcp::{Body, Entered, Life, SEGMENT};
use rackmem_proto::wire::{Dest, Header};

/// Where what a lock protects was: no writer leaves this.
const FORGOTTEN: Value = {
    let mut value = [0xee; WORDS];
    (value[LIFE], value[TRUTH]) = (0, 0);
    value
};

/// What has come of a section, in order; with the data as it was then.
pub enum Done {
    /// A packet is sent.
    Sent(Dest, Header, Body, Value),
    /// A thread is inside; by a packet, or at once.
    Inside(u8, Entered, bool, Value),
    /// The data was dropped.
    Dropped,
}

/// See the module.
pub struct Fx<'a> {
    pub data: &'a mut Value,
    pub beside: &'a mut Value,
    pub packet: Option<&'a Packet>,
    pub mutation: Option<Mutation>,
    pub done: Vec<Done>,
}

impl LockFx for Fx<'_> {
    type Seat = u8;

    fn store(&mut self, header: &Header) {
        let packet = self.packet.expect("a packet with a body");
        let at = (header.offset / SEGMENT) as usize;
        self.beside[at..at + packet.words.len()].copy_from_slice(&packet.words);
    }

    fn install(&mut self, _: bool) {
        if self.mutation != Some(Mutation::SkipInstall) {
            *self.data = *self.beside;
        }
    }

    fn clear(&mut self) {
        *self.data = FORGOTTEN;
        self.done.push(Done::Dropped);
    }

    fn life(&self) -> Life {
        Life::from_word(self.data[LIFE].into())
    }

    fn send(&mut self, to: Dest, header: &Header, body: &Body) {
        let sent = Done::Sent(to, *header, body.clone(), *self.data);
        self.done.push(sent);
    }

    fn inside(&mut self, thread: u8, entered: Entered, at_once: bool) {
        let inside = Done::Inside(thread, entered, !at_once, *self.data);
        self.done.push(inside);
    }

    fn send_away(&mut self, _: u8) {}

    /// What a lock sends to its own node travels, may be lost and overtaken: whatever the library does is one of these orders.
    fn loops(&self) -> bool {
        false
    }

    fn defect(&self) -> Option<Defect> {
        self.mutation.and_then(Mutation::in_engine)
    }
}
