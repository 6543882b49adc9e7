//! A coherence event of a requester: what it asked for, what it was granted, what is still missing.

use crate::call::{Assembly, Sent};
use crate::wire::{Copyset, Flags, GlobalStatus, Header, Kind, NodeId, Reason, Tag};
use crate::{Data, Dest, Output};
use core::hash::{Hash, Hasher};

/// A coherence event to begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// A request, `Alloc`, `Free`, or a question to a guest.
    pub kind: Kind,
    /// The block.
    pub tag: Tag,
    /// `offset` of the request.
    pub offset: u32,
    /// Where the requester listens, if the fabric needs to know.
    pub reply_port: u16,
}

/// What an event was granted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grant {
    /// The entry's status before the event.
    pub status: GlobalStatus,
    /// The entry's copyset before the event.
    pub copyset: Copyset,
    /// The tag of the answer: for `Alloc`, where the first object begins; `copyset` tells of which
    /// it is one. For `Free`, the first object that is not given out;
    /// `copyset` is how many of them.
    pub tag: Tag,
    /// `offset` of the answer.
    pub(super) offset: u32,
    pub(super) flags: Flags,
}

impl Grant {
    /// For `Fetch`: blocks have come.
    pub fn has_data(&self) -> bool {
        self.flags.has(Flags::DATA)
    }

    /// For `Store`: how many blocks, from the first on, home's memory has.
    pub fn stored(&self) -> u32 {
        self.copyset.0
    }

    /// For `Operate`: what the word was before, if it is done.
    pub fn operated(&self) -> Option<u64> {
        let old = u64::from(self.offset) << 32 | u64::from(self.copyset.0);
        self.flags.has(Flags::DATA).then_some(old)
    }

    /// For `Operate`: nobody else has used the block for a while.
    pub fn brings(&self) -> bool {
        self.flags.has(Flags::BRING)
    }

    /// For `Alloc`: what was given is zeros.
    pub fn zeros(&self) -> bool {
        self.flags.has(Flags::ZEROS)
    }
}

/// How far the event is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Answers are missing.
    Waiting,
    /// All is here: install it, then unlock. (`Alloc`, `Free` and questions to guests are simply
    /// done.)
    Held(Grant),
    /// Refused, and the event is over: try again under a new one.
    Refused(Reason),
    /// There was no answer in time, and the event is over.
    Lost,
}

/// What to do with a packet's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accept {
    /// Nothing.
    Drop,
    /// Copy it into the reserved block at the packet's offset (or take it as the operand's result).
    Store,
}

/// Whether home's memory has the block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Home {
    /// Home's memory is current.
    Current,
    /// The provider is writing the block back.
    Expected,
    /// We are, to empty our cache.
    WritingBack,
}

/// An event under way.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    pub request: Header,
    pub step: Step,
    pub grant: Option<Grant>,
    pub acks: Copyset,
    pub assembly: Assembly,
    pub home: Home,
    pub home_done: bool,
    /// Held when its epoch ended: it takes effect here, and there is nothing to unlock.
    pub fenced: bool,
    pub sent: Sent,
}

impl Running {
    /// An event that begins with this request.
    pub fn new(request: Header, now: u64) -> Self {
        Running {
            request,
            step: Step::Waiting,
            grant: None,
            acks: Copyset::EMPTY,
            assembly: Assembly::default(),
            home: Home::Current,
            home_done: false,
            fenced: false,
            sent: Sent::now(now),
        }
    }

    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.request.hash(into);
        self.step.hash(into);
        self.grant.hash(into);
        self.acks.hash(into);
        self.assembly.hash(into);
        self.home.hash(into);
        self.home_done.hash(into);
        self.fenced.hash(into);
    }

    /// What it waits for an answer to.
    pub fn asked(&self) -> Header {
        match self.home {
            Home::WritingBack => self.write_back().header,
            _ => self.request,
        }
    }

    pub fn home_is_current(&self) -> bool {
        self.home == Home::Current || self.home_done
    }

    pub fn ack(&mut self, header: &Header, body_len: u32, block: u32) -> Accept {
        if header.reason != Reason::None {
            self.step = Step::Refused(header.reason);
            // A granted event that its provider cannot serve still holds the entry's lock.
            self.note_grant(header);
            return Accept::Drop;
        }
        self.note_grant(header);
        if !header.flags.has(Flags::DATA) {
            self.acks = self.acks.with(header.sender);
            return Accept::Drop;
        }
        match self.assembly.add(header.offset, body_len, block) {
            Some(fresh) => {
                self.acks = self.acks.with(header.sender);
                if fresh { Accept::Store } else { Accept::Drop }
            }
            None => Accept::Drop,
        }
    }

    pub fn note_grant(&mut self, header: &Header) {
        if !header.flags.has(Flags::GRANTED) {
            return;
        }
        let grant = Grant {
            status: header.status,
            copyset: header.copyset,
            tag: header.tag,
            offset: 0,
            flags: header.flags,
        };
        // Every copy of the request goes the way of the first, so all answers agree on who writes
        // back.
        let provider_writes_back =
            header.status == GlobalStatus::Modified && !header.flags.has(Flags::GATHER);
        if self.request.kind == Kind::ReadMiss && provider_writes_back {
            self.home = Home::Expected;
        }
        self.grant.get_or_insert(grant);
    }

    pub fn done(&mut self, header: &Header) -> Accept {
        if header.reason != Reason::None {
            self.step = Step::Refused(header.reason);
            return Accept::Drop;
        }
        let grant = Grant {
            status: header.status,
            copyset: header.copyset,
            tag: header.tag,
            offset: header.offset,
            flags: header.flags,
        };
        self.step = Step::Held(grant);
        Accept::Store
    }

    pub fn write_back(&self) -> Output {
        let flags = Flags::DATA;
        let header = Header {
            kind: Kind::WriteBack,
            flags,
            offset: 0,
            ..self.request
        };
        Output::with(Dest::Home(header.tag.home()), header, Data::Cache)
    }

    /// Moves on to `Held` when every answer that the grant calls for is here.
    pub fn settle(&mut self, me: NodeId) {
        let (Step::Waiting, Some(grant)) = (self.step, self.grant) else {
            return;
        };
        let gathered = grant.flags.has(Flags::GATHER);
        let sharers = if gathered {
            Copyset::EMPTY
        } else {
            grant.copyset.without(me)
        };
        let complete = match self.request.kind {
            Kind::ReadMiss => self.assembly.complete(),
            Kind::WriteMiss => self.assembly.complete() && self.acks.covers(sharers),
            Kind::WriteShared => self.acks.covers(sharers),
            Kind::EvictModified => self.home_is_current(),
            _ => true,
        };
        if complete {
            self.step = Step::Held(grant);
        }
    }
}
