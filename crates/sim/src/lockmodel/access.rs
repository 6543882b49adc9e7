//! How a thread gets at a block: the library's slow path, cut at the places where it waits. Nothing is evicted.

use super::memory::Memory;
use super::{BLOCK, EPOCH, NEVER};
use crate::model::fabric::Packet;
use rackmem_proto::flowcc::{Event, Requester, RequesterConfig, Step};
use rackmem_proto::wire::{Kind, Reason, RequesterId};
use rackmem_proto::{Output, Outputs};

/// What becomes of an event when it is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The block is here.
    Held,
    /// What was asked for does not fit what is here any more: look again.
    Again,
    /// Somebody else's event on it is under way: look again after a while.
    Locked,
}

/// One event at a time, and the unlock of the one before.
pub struct Access {
    engine: Requester,
    event: Option<(u32, Kind)>,
    /// Set when an event is over but for its unlock, which waits for that of the one before.
    pub ends: Option<End>,
    /// Answers that no correct rack gives.
    pub failures: u64,
}

impl Access {
    /// A thread's.
    pub fn new(id: RequesterId, switch: bool) -> Self {
        Access {
            engine: Requester::new(RequesterConfig {
                id,
                epoch: EPOCH,
                incarnation: 1,
                block: BLOCK,
                switch,
                min_timeout: NEVER,
                give_up: NEVER,
            }),
            event: None,
            ends: None,
            failures: 0,
        }
    }

    /// Begins an event.
    pub fn begin(&mut self, now: u64, block: u32, kind: Kind, memory: &Memory) -> Output {
        self.event = Some((block, kind));
        self.ends = None;
        let event = Event {
            kind,
            tag: memory.tag(block),
            offset: 0,
            reply_port: 0,
        };
        self.engine.begin(now, event)
    }

    /// Whether only a packet can make it go on.
    pub fn waits(&self) -> bool {
        match (self.event, self.ends) {
            (None, _) => false,
            (Some(_), None) => self.engine.step() == Step::Waiting,
            (Some(_), Some(_)) => !self.engine.can_unlock(),
        }
    }

    /// Whether an event or an unlock is under way.
    pub fn unfinished(&self) -> bool {
        self.event.is_some() || !self.engine.can_unlock()
    }

    /// Takes a packet; what is returned is to be sent.
    pub fn take(&mut self, now: u64, packet: &Packet) -> Outputs {
        let (_, outputs) = self.engine.handle(now, &packet.header, packet.body);
        outputs
    }

    /// The event's end, when it has come. For one that is held, the block is the blade's from here on.
    pub fn ended(&mut self, memory: &mut Memory) -> Option<End> {
        let (block, kind) = self.event?;
        let end = match self.engine.step() {
            Step::Waiting => return None,
            Step::Held(_) => {
                memory.install(block, kind);
                End::Held
            }
            Step::Refused(Reason::Locked) => End::Locked,
            Step::Refused(Reason::Invalid | Reason::Moved) => End::Again,
            Step::Refused(_) | Step::Lost => {
                self.failures += 1;
                End::Locked
            }
        };
        self.ends = Some(end);
        Some(end)
    }

    /// Ends the event for its owner, when the one before has ended: the packet for that, if any, and which block is free again.
    pub fn finish(&mut self, now: u64) -> Option<(Option<Output>, u32)> {
        let (block, _) = self.event?;
        let end = self.ends?;
        let mut unlock = None;
        if self.engine.holds() {
            if !self.engine.can_unlock() {
                return None;
            }
            unlock = self.engine.unlock(now, end != End::Held);
        }
        (self.event, self.ends) = (None, None);
        Some((unlock, block))
    }
}
