//! One node: its home's regions, and what its threads ask of homes, one question a slot.
//!
//! A question is one packet and its answer another. A slot's numbers rise and outlive epochs, so
//! what changes something takes effect once, and a late answer is known.

use super::{BiNews, BiOut, MAX_ITEM, Stock};
use crate::bi::LINE;
use crate::call::Ticks;
use crate::wire::{
    Contract, Copyset, Dest, Flags, Header, Kind, MAX_REQUESTERS, NodeId, OWN_LEN, Own, Reason,
    RequesterId, Seq, Tag,
};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// What a thread asks a region's home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum BiAsk {
    /// An item, of so many bytes as far as the thread knows.
    Read(Tag, u32, u32),
    /// An item is this from now on.
    Write(Tag, u32, Vec<u8>),
    /// What was modified after this write?
    News(Tag, u64),
    /// A region in the memory that this address is in: bytes of an item, and how many.
    Reserve(Tag, u32, u32),
    /// The region is no more.
    Remove(Tag),
}

impl BiAsk {
    /// What it is about.
    pub const fn tag(&self) -> Tag {
        match self {
            BiAsk::Read(tag, ..)
            | BiAsk::Write(tag, ..)
            | BiAsk::News(tag, _)
            | BiAsk::Reserve(tag, ..)
            | BiAsk::Remove(tag) => *tag,
        }
    }

    /// The packet that asks for it, and what answers that.
    const fn kinds(&self) -> (Kind, Kind) {
        match self {
            BiAsk::Read(..) => (Kind::BiRead, Kind::BiData),
            BiAsk::Write(..) => (Kind::BiWrite, Kind::BiWriteAck),
            BiAsk::News(..) => (Kind::BiAskNews, Kind::BiNews),
            BiAsk::Reserve(..) | BiAsk::Remove(_) => (Kind::BiReserve, Kind::BiReserveAck),
        }
    }

    fn own(&self) -> Own {
        let (a, b) = match self {
            BiAsk::Read(_, item, _) | BiAsk::Write(_, item, _) => (0, (*item).into()),
            BiAsk::News(_, from) => (*from, 0),
            BiAsk::Reserve(_, bytes, items) => ((*bytes).into(), (*items).into()),
            BiAsk::Remove(_) => (0, 0),
        };
        Own { a, b }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            BiAsk::Write(_, _, bytes) => bytes,
            _ => &[],
        }
    }

    /// Bytes behind what answers has of its own, where the kernel of the home's host may answer.
    fn room(&self) -> usize {
        match self {
            // Whole lines: the kernel copies those.
            BiAsk::Read(_, _, bytes) => {
                (OWN_LEN + (*bytes).min(MAX_ITEM) as usize).next_multiple_of(LINE as usize)
                    - OWN_LEN
            }
            // The region's shape.
            BiAsk::News(..) => 8,
            _ => 0,
        }
    }

    /// What an answer says; none: nothing that it could.
    fn told(&self, header: &Header, own: &Own, body: &[u8]) -> Option<BiReply> {
        if header.reason != Reason::None {
            return Some(BiReply::Refused(header.reason));
        }
        Some(match self {
            BiAsk::Read(..) => {
                let len = u32::try_from(own.b).ok().filter(|len| *len <= MAX_ITEM)?;
                let mut value = body.to_vec();
                if !value.is_empty() && value.len() != len as usize {
                    return None;
                }
                value.resize(len as usize, 0);
                BiReply::Item(own.a, value)
            }
            BiAsk::Write(..) => BiReply::Written(own.a),
            BiAsk::News(..) => BiReply::News(BiNews::decode(own, body)?),
            BiAsk::Reserve(..) | BiAsk::Remove(_) => BiReply::Region(header.tag),
        })
    }
}

/// What it is told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum BiReply {
    /// The item, and the region's number when it was read.
    Item(u64, Vec<u8>),
    /// The number of the write.
    Written(u64),
    /// What was modified.
    News(BiNews),
    /// The region.
    Region(Tag),
    /// Why not.
    Refused(Reason),
}

#[derive(Clone, Default, Debug)]
struct Slot {
    /// The last number that was used.
    number: Seq,
    /// What is under way, and where its thread listens.
    asked: Option<(BiAsk, u16)>,
    told: Option<BiReply>,
    pace: Ticks,
}

impl Slot {
    fn ask(&self, (who, incarnation): (RequesterId, u32), kernels: Copyset, out: &mut BiOut) {
        let Some((ask, reply_port)) = &self.asked else {
            return;
        };
        let (tag, (kind, _)) = (ask.tag(), ask.kinds());
        let mut header = Header::request(kind, out.epoch(), tag, who, self.number);
        header.incarnation = incarnation;
        // The node's own home answers by a call.
        header.reply_port = match tag.home().is_of(who.node) {
            true => 0,
            false => *reply_port,
        };
        let to = Dest::Home(tag.home());
        match ask.room() {
            room if room > 0 && header.reply_port != 0 && kernels.contains(tag.home().0) => {
                out.ask(to, &header, ask.own(), room);
            }
            _ => out.send(to, &header, ask.own(), ask.bytes()),
        }
    }
}

/// Reads of other nodes' items, and questions to them for news, by what has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Answerers {
    /// The kernels of their hosts.
    pub kernel: u64,
    /// Their agents.
    pub agent: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Bi {
    me: NodeId,
    incarnation: u32,
    /// Its home's regions.
    pub stock: Stock,
    slots: Vec<Slot>,
    /// Homes whose hosts' kernels answer reads, as their last answers said. Where they do not all
    /// the same, zeros were sent for nothing.
    kernels: Copyset,
    /// What has answered.
    pub answerers: Answerers,
}

impl Bi {
    /// A node whose home has these regions.
    pub fn new((me, incarnation): (NodeId, u32), stock: Stock) -> Self {
        Bi {
            me,
            incarnation,
            stock,
            slots: Vec::new(),
            kernels: Copyset::EMPTY,
            answerers: Answerers::default(),
        }
    }

    fn who(&self, slot: u8) -> (RequesterId, u32) {
        let id = RequesterId {
            node: self.me,
            slot: slot.into(),
        };
        (id, self.incarnation)
    }

    /// A thread asks for something in a slot in which nothing is under way, and listens there.
    pub fn ask(&mut self, slot: u8, (ask, reply_port): (BiAsk, u16), out: &mut BiOut) {
        let who = self.who(slot);
        let at = usize::from(slot);
        if at >= MAX_REQUESTERS {
            return;
        }
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, Slot::default);
        }
        let row = &mut self.slots[at];
        row.number = row.number.next();
        (row.asked, row.told) = (Some((ask, reply_port)), None);
        row.pace.reset();
        row.ask(who, self.kernels, out);
    }

    /// What the thread in this slot was told, once it was.
    pub fn take(&mut self, slot: u8) -> Option<BiReply> {
        self.slots.get_mut(usize::from(slot))?.told.take()
    }

    /// The thread in this slot does not wait any longer.
    pub fn abandon(&mut self, slot: u8) {
        if let Some(row) = self.slots.get_mut(usize::from(slot)) {
            (row.asked, row.told) = (None, None);
        }
    }

    /// A packet of one of its kinds, with these bytes behind what its kind has of its own.
    pub fn packet(&mut self, header: &Header, own: &Own, body: &[u8], out: &mut BiOut) {
        if header.kind.asks_bounded() {
            return self.stock.packet(header, own, body, out);
        }
        let slot = header.requester.slot;
        let ours = self.who(slot as u8) == (header.requester, header.incarnation);
        let bounded = header.tag.is_under(Contract::Bounded) || header.reason != Reason::None;
        let Some(row) = self.slots.get_mut(usize::from(slot)) else {
            return;
        };
        let Some((ask, _)) = &row.asked else {
            return;
        };
        let answers = header.seq == row.number && header.kind == ask.kinds().1;
        if !(ours && bounded && answers) {
            return;
        }
        if let Some(told) = ask.told(header, own, body) {
            let reads = matches!(told, BiReply::Item(..) | BiReply::News(_));
            (row.asked, row.told) = (None, Some(told));
            out.ended = true;
            if reads && !header.tag.home().is_of(self.me) {
                self.note(header);
            }
        }
    }

    /// A home's answer to a read.
    fn note(&mut self, header: &Header) {
        let home = header.tag.home().0;
        self.kernels = match header.flags.has(Flags::BY_GRANULES) {
            true => self.kernels.with(home),
            false => self.kernels.without(home),
        };
        let by = match header.flags.has(Flags::BY_KERNEL) {
            true => &mut self.answerers.kernel,
            false => &mut self.answerers.agent,
        };
        *by += 1;
    }

    /// What is due every few round trips: packets may have been lost, and epochs may have begun.
    pub fn tick(&mut self, out: &mut BiOut) {
        for at in 0..self.slots.len() {
            let who = self.who(at as u8);
            let row = &mut self.slots[at];
            if row.asked.is_some() && row.pace.tick() {
                row.ask(who, self.kernels, out);
            }
        }
    }

    /// All homes serve in a new epoch: what was asked in the last one was dropped.
    pub fn resume(&mut self, out: &mut BiOut) {
        for at in 0..self.slots.len() {
            let who = self.who(at as u8);
            let row = &mut self.slots[at];
            row.pace.reset();
            row.ask(who, self.kernels, out);
        }
    }

    /// Everything that decides what it will do, but when.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (self.me, self.incarnation, self.kernels).hash(into);
        self.stock.fingerprint(into);
        for slot in &self.slots {
            (slot.number, &slot.asked, &slot.told).hash(into);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::HomeId;

    const HOME: HomeId = HomeId::of(0);

    /// A home at node 0, and node 1, whose packets arrive.
    struct Two {
        home: Bi,
        member: Bi,
    }

    impl Two {
        fn new() -> Self {
            let part = |me| Bi::new((me, 1), Stock::new(HomeId::of(me), 0, 1 << 20));
            Two {
                home: part(0),
                member: part(1),
            }
        }

        fn ask(&mut self, ask: BiAsk) -> BiReply {
            let mut out = BiOut::new(1, 1);
            self.member.ask(3, (ask, 0), &mut out);
            self.arrive(out);
            self.member.take(3).unwrap()
        }

        /// Each packet comes twice.
        fn arrive(&mut self, out: BiOut) {
            for parcel in out.sent {
                let (own, body) = parcel.split();
                let mut answers = BiOut::new(0, 1);
                for _ in 0..2 {
                    self.home.packet(&parcel.header, &own, body, &mut answers);
                }
                for answer in answers.sent {
                    let (own, body) = answer.split();
                    let mut none = BiOut::new(1, 1);
                    self.member.packet(&answer.header, &own, body, &mut none);
                    assert!(none.sent.is_empty());
                }
            }
        }

        fn region(&mut self) -> Tag {
            let there = HOME.start().under(Contract::Bounded);
            match self.ask(BiAsk::Reserve(there, 4, 10)) {
                BiReply::Region(tag) => tag,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_is_written_is_read_numbered_and_told() {
        let mut two = Two::new();
        let region = two.region();
        assert_eq!(
            two.ask(BiAsk::Read(region, 3, 4)),
            BiReply::Item(0, alloc::vec![0; 4])
        );
        let write = BiAsk::Write(region, 3, alloc::vec![1, 2, 3, 4]);
        assert_eq!(two.ask(write.clone()), BiReply::Written(1));
        assert_eq!(two.ask(write), BiReply::Written(2));
        assert_eq!(
            two.ask(BiAsk::Read(region, 3, 4)),
            BiReply::Item(2, alloc::vec![1, 2, 3, 4])
        );
        let BiReply::News(news) = two.ask(BiAsk::News(region, 1)) else {
            panic!("no news");
        };
        assert_eq!((news.upto, news.shape), (2, (4, 10)));
        assert_eq!(news.items, Some(alloc::vec![3]));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut two = Two::new();
        let region = two.region();
        let other = Tag(region.0 + 64);
        for (ask, reason) in [
            (BiAsk::Read(region, 10, 4), Reason::Refused),
            (BiAsk::Write(region, 1, alloc::vec![1; 5]), Reason::Refused),
            (BiAsk::Read(other, 0, 4), Reason::NoMemory),
            (BiAsk::Read(Tag(region.0 + 1), 0, 4), Reason::NoMemory),
            (
                BiAsk::News(region.under(Contract::Coherent), 0),
                Reason::Refused,
            ),
            (BiAsk::Reserve(region, 1025, 1), Reason::Refused),
            (BiAsk::Reserve(region, 1, u32::MAX), Reason::Refused),
            (BiAsk::Reserve(region, 1024, 1024), Reason::Full),
        ] {
            assert_eq!(two.ask(ask.clone()), BiReply::Refused(reason), "{ask:?}");
        }
        assert_eq!(two.ask(BiAsk::Remove(region)), BiReply::Region(region));
        assert_eq!(two.home.stock.regions(), 0);
        assert_eq!(
            two.ask(BiAsk::Remove(region)),
            BiReply::Refused(Reason::Gone)
        );
        assert_eq!(
            two.ask(BiAsk::News(region, 0)),
            BiReply::Refused(Reason::Gone)
        );
        // Its name is never another's.
        assert_eq!(two.region(), other);
    }

    /// A late copy of a write does not put back what a later one has written.
    #[test]
    fn a_write_takes_effect_once() {
        let mut two = Two::new();
        let region = two.region();
        let mut late = BiOut::new(1, 1);
        let first = BiAsk::Write(region, 0, alloc::vec![1; 4]);
        two.member.ask(3, (first, 0), &mut late);
        two.arrive(late.clone());
        two.ask(BiAsk::Write(region, 0, alloc::vec![2; 4]));
        two.arrive(late);
        assert_eq!(
            two.ask(BiAsk::Read(region, 0, 4)),
            BiReply::Item(2, alloc::vec![2; 4])
        );
    }

    #[test]
    fn what_is_not_answered_is_asked_again() {
        let mut two = Two::new();
        let region = two.region();
        two.member
            .ask(3, (BiAsk::Read(region, 0, 4), 0), &mut BiOut::new(1, 1));
        let mut out = BiOut::new(1, 1);
        (0..3).for_each(|_| two.member.tick(&mut out));
        assert!(!out.sent.is_empty());
        two.arrive(out);
        assert!(two.member.take(3).is_some());
        let mut out = BiOut::new(1, 2);
        two.member.resume(&mut out);
        assert!(out.sent.is_empty());
    }
}
