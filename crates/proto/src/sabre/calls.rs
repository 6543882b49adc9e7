//! What changes something takes effect once: of each requester a home remembers the last call, by a
//! number that outlives epochs, with what has come of it and what was answered.
//!
//! | a call | then |
//! |---|---|
//! | is new | its segments are awaited; when all are here it takes effect, and is answered |
//! | has taken effect | it is answered as before |
//! | meets a writer of the home's own process | `Locked`, and so are its copies: it never takes effect, and its requester makes another one |
//! | is of an older number, or of an older life of its node | nothing |
//! | has the number of the last one and asks for something else | nothing: it is forged |

use super::effects::{Bytes, Defect, Effects};
use super::layout::{all_granules, granules};
use super::{len_of, own};
use crate::call::PerRequester;
use crate::wire::{Dest, Flags, Header, Kind, Own, Reason, RequesterId, Tag};
use core::hash::Hasher;

/// What a call was answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Answer {
    /// Why not.
    pub reason: Reason,
    /// The object.
    pub tag: Tag,
    /// Its version.
    pub version: u64,
    /// Its generation.
    pub generation: u32,
}

impl Default for Answer {
    fn default() -> Self {
        Answer::refused(Tag(0), Reason::None)
    }
}

impl Answer {
    pub(super) fn refused(tag: Tag, reason: Reason) -> Self {
        Answer {
            reason,
            tag,
            version: 0,
            generation: 0,
        }
    }

    /// Tells a requester what has come of its call.
    pub(super) fn tell(&self, header: &Header, flags: Flags, fx: &mut impl Effects) {
        let kind = match header.kind {
            Kind::ObjWrite => Kind::ObjWriteAck,
            Kind::ObjAlloc => Kind::ObjAllocAck,
            Kind::TxCommit => Kind::TxCommitAck,
            _ => Kind::ObjFreeAck,
        };
        let mut ack = header.refuse(kind, header.sender, self.reason);
        (ack.tag, ack.offset, ack.flags) = (self.tag, 0, flags);
        let own = own(self.version, self.generation, 0);
        fx.send(Dest::Requester(header.requester), &ack, own, Bytes::Nothing);
    }
}

/// The last call of a requester.
#[derive(Clone, Copy, PartialEq, Hash, Debug, Default)]
struct Row {
    incarnation: u32,
    number: u64,
    /// What it asks for: its kind, of what, and how.
    asked: Option<(Kind, Tag, Own)>,
    /// Granules of what it writes that have come.
    received: u64,
    ended: bool,
    answer: Answer,
}

/// What a packet of a call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Came {
    /// Of an older call, of an older life of its node, or forged.
    Late,
    /// Of one that has ended with this.
    Again(Answer),
    /// Of one that has not taken effect.
    Open,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    rows: PerRequester<Row>,
}

impl Calls {
    /// A packet of a call has come.
    pub fn came(&mut self, header: &Header, own: &Own, defect: Option<Defect>) -> Came {
        let row = self.rows.row(header.requester);
        let which = (header.incarnation, header.seq.0);
        let known = (row.incarnation, row.number);
        let asked = (header.kind, header.tag, *own);
        if which < known {
            return Came::Late;
        }
        if which > known {
            let received = match defect {
                Some(Defect::MixTwoWrites) => row.received,
                _ => 0,
            };
            *row = Row {
                incarnation: header.incarnation,
                number: header.seq.0,
                asked: Some(asked),
                received,
                ..Row::default()
            };
        }
        if row.asked != Some(asked) {
            // Segments of one call are alike in this: a granule of another one proves nothing.
            return Came::Late;
        }
        match row.ended && defect != Some(Defect::WriteTwiceOnCopy) {
            true => Came::Again(row.answer),
            false => Came::Open,
        }
    }

    /// A segment of what a call writes has come. Whether all of it is here; none: it is no segment
    /// of it.
    pub fn stage(
        &mut self,
        header: &Header,
        own: &Own,
        bytes: u32,
        fx: &mut impl Effects,
    ) -> Option<bool> {
        let len = len_of(own);
        let granules = granules(header.offset, bytes, len)?;
        fx.stage(header.requester);
        let row = self.rows.row(header.requester);
        row.received |= granules;
        let all = all_granules(len);
        let early = fx.defect() == Some(Defect::WriteInPart);
        Some(row.received & all == all || early)
    }

    /// A call has ended with this.
    pub fn end(&mut self, of: RequesterId, answer: Answer, defect: Option<Defect>) {
        let row = self.rows.row(of);
        // Were it to take effect later, its requester would have made another one meanwhile.
        let open = answer.reason == Reason::Locked && defect == Some(Defect::RefuseForNow);
        (row.ended, row.answer) = (!open, answer);
    }

    /// The last call that has come of a requester: its incarnation, and the call's number.
    pub fn last(&mut self, of: RequesterId) -> (u32, u64) {
        let row = self.rows.row(of);
        (row.incarnation, row.number)
    }

    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.rows.fingerprint(into);
    }
}
