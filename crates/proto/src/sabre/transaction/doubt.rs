//! What is in doubt: a dead coordinator has left objects locked here, and it wrote objects with
//! copies beside them. Then a record with their keeper says whether it takes effect, so the home
//! asks, for as long as it takes. Nothing of the dead is accepted in the epoch in which it asks: so
//! what a keeper answers in it stays so.
//!
//! | the keeper of the lowest region that is written says | then |
//! |---|---|
//! | it has taken effect | it is committed |
//! | it has not | it is released |
//! | the region is removed, and nobody has been told that it has | the next region is asked; after the last one it is released |
//! | nothing | it is asked again, and in each epoch |
//!
//! What says it may be a row of the requester, which keepers overwrite when its node is back and
//! calls them from the same slot. So when an epoch begins, a home reports to nodes that are back of
//! which slots it has something in doubt. Such a slot ([`super::super::Sabre`]) asks that home
//! whether it has ended ([`ENDED`]), and asks nobody for anything else before.

use super::super::Who;
use super::super::effects::{Bytes, Effects};
use super::super::home::Home;
use super::super::kept::{Call, who_of, who_to};
use super::participant::{Open, Participant, acknowledge};
use crate::wire::{
    Contract, Copyset, Dest, Header, HomeId, Kind, NodeId, Own, Reason, Record, Seq, Tag,
};

/// The number of a question whether what an earlier life of the requester has left is over. No
/// transaction has it.
pub(in super::super) const ENDED: Seq = Seq(0);

/// A record is about what is in doubt.
const DOUBT: u64 = 1 << 44;
/// Where it has the home that reports, and the slot.
const HOME: u32 = 38;
const SLOT: u32 = 32;

/// The slot of the node that a record comes to, and the home that has something of it in doubt.
pub(in super::super) fn slot_in_doubt(record: Record) -> Option<(u8, NodeId)> {
    let offset = record.tag.offset();
    let (slot, home) = (
        (offset >> SLOT & 0x3f) as u8,
        (offset >> HOME & 0x1f) as NodeId,
    );
    (offset & DOUBT != 0).then_some((slot, home))
}

/// Asks a home whether what an earlier life of a requester has left there is over.
pub(in super::super) fn ask_whether_ended(home: NodeId, who: Who, fx: &mut impl Effects) {
    let tag = HomeId::of(home).start().under(Contract::Object);
    let mut header = Header::request(Kind::TxCommit, fx.epoch(), tag, who.0, ENDED);
    header.incarnation = who.1;
    fx.send(
        Dest::Home(tag.home()),
        &header,
        Own::default(),
        Bytes::Nothing,
    );
}

impl Open {
    /// Whether a keeper is to say what comes of it.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_orphan && !self.locked.is_empty() && !self.deciders.is_empty()
    }
}

impl Participant {
    /// Transactions of dead coordinators of which a keeper is to say what comes.
    pub fn in_doubt(&self) -> usize {
        self.open.values().filter(|open| open.is_in_doubt()).count()
    }

    /// What it reports to nodes that are back.
    pub(super) fn report_doubts(
        &self,
        me: NodeId,
        members: Copyset,
    ) -> impl Iterator<Item = Record> {
        let open = self.open.iter().filter(|(_, open)| open.is_in_doubt());
        let back = open.filter(move |(who, _)| members.contains(who.node));
        back.map(move |(who, _)| {
            let (home, slot) = (u64::from(me) << HOME, u64::from(who.slot) << SLOT);
            let start = HomeId::of(who.node).start().0;
            Record {
                tag: Tag(start + (DOUBT | home | slot)),
                word: 0,
            }
        })
    }
}

impl Home {
    /// Asks keepers for what is in doubt. `me`: a requester of this node.
    pub(in super::super) fn ask_in_doubt(&self, me: Who, fx: &mut impl Effects) {
        let open = self.participant.open.iter();
        for (who, open) in open.filter(|(_, open)| open.is_in_doubt()) {
            let (Some(row), Some(tag)) = (self.participant.rows.get(*who), open.deciders.first())
            else {
                continue;
            };
            let (incarnation, number) = (row.incarnation, row.number);
            let (b, a) = who_to(&Call {
                who: *who,
                incarnation,
                number,
            });
            let mut header = Header::request(Kind::TxLock, fx.epoch(), *tag, me.0, ENDED);
            header.incarnation = me.1;
            fx.send(
                Dest::Home(tag.home()),
                &header,
                Own { a, b },
                Bytes::Nothing,
            );
        }
    }

    /// The same, if it is time.
    pub(in super::super) fn tick_in_doubt(&mut self, me: Who, fx: &mut impl Effects) {
        if self.participant.in_doubt() > 0 && self.participant.pace.tick() {
            self.ask_in_doubt(me, fx);
        }
    }

    /// A keeper has said what has come of one.
    pub(in super::super) fn hear_outcome(
        &mut self,
        header: &Header,
        own: &Own,
        fx: &mut impl Effects,
    ) {
        let call = who_of(own.b, own.a);
        let row = self.participant.rows.get(call.who);
        let is_last =
            row.is_some_and(|row| (row.incarnation, row.number) == (call.incarnation, call.number));
        let open = self.participant.open.get_mut(&call.who);
        let open = open.filter(|open| is_last && open.is_in_doubt());
        let Some(open) = open.filter(|open| open.deciders.first() == Some(&header.tag)) else {
            return;
        };
        match header.reason {
            Reason::None => self.settle_one(call.who, true, fx),
            Reason::Gone if open.deciders.len() > 1 => {
                open.deciders.remove(0);
                self.participant.pace.reset();
            }
            Reason::Gone | Reason::Invalid | Reason::Refused => {
                self.settle_one(call.who, false, fx)
            }
            _ => {}
        }
    }

    /// Whether what an earlier life of a requester has left here is over: no answer until it is.
    pub(super) fn answer_whether_ended(&self, header: &Header, fx: &mut impl Effects) {
        let open = self.participant.open.get(&header.requester);
        if !open.is_some_and(Open::is_in_doubt) {
            acknowledge(header, 0, fx);
        }
    }
}
