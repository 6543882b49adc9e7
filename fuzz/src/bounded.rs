//! Any sequence of packets to nodes of bounded memory, beside threads that use some.
//!
//! Each write of a thread is of one letter, so what an item is has bytes of one letter, whatever
//! packets came.

use crate::dice::Dice;
use rackmem_proto::bi::Tick;
use rackmem_proto::bi::cached::{
    Bi, BiAsk, BiNews, BiOut, BiReply, Hearing, HeldItem, MAX_ITEM, MAX_ITEMS, Stock,
};
use rackmem_proto::wire::{
    Contract, Flags, Header, HomeId, Kind, NodeId, Own, Reason, RequesterId, Seq, Tag,
};

/// Packets of one run at most.
const MAX_PACKETS: usize = 256;
const NODES: NodeId = 3;
/// Threads of a node.
const SLOTS: u8 = 2;
/// Items of a region of one run, and their bytes.
const ITEMS: u32 = 5;
const BYTES: u32 = 8;
/// Where a home's memory begins, and how much there is: an earlier life had what is below.
const BASE: u64 = 1 << 12;
const LIMIT: u64 = 1 << 16;

/// A node, and what it has copies of: items of the region at node 0.
struct BoundedNode {
    bi: Bi,
    copies: Vec<HeldItem<Vec<u8>>>,
    hearing: Hearing,
}

struct BoundedRack {
    nodes: Vec<BoundedNode>,
    region: Tag,
    /// Packets that are under way: to which node.
    under_way: Vec<(NodeId, Header, Own, Vec<u8>)>,
}

/// Whether bytes are of one letter.
fn whole(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == bytes[0])
}

impl BoundedRack {
    fn new() -> Self {
        let node = |node| BoundedNode {
            bi: Bi::new((node, 1), Stock::new(HomeId::of(node), BASE, LIMIT)),
            copies: vec![HeldItem::default(); ITEMS as usize],
            hearing: Hearing::default(),
        };
        let mut rack = BoundedRack {
            nodes: (0..NODES).map(node).collect(),
            region: HomeId::of(0).start().under(Contract::Bounded),
            under_way: Vec::new(),
        };
        let there = rack.region;
        rack.act(1, |bi, out| {
            bi.ask(0, (BiAsk::Reserve(there, BYTES, ITEMS), 0), out)
        });
        while !rack.under_way.is_empty() {
            rack.arrive(0);
        }
        if let Some(BiReply::Region(region)) = rack.nodes[1].bi.take(0) {
            rack.region = region;
        }
        rack
    }

    /// What one node does, and what that sends.
    fn act(&mut self, node: NodeId, act: impl FnOnce(&mut Bi, &mut BiOut)) {
        let mut out = BiOut::new(node, 1);
        act(&mut self.nodes[usize::from(node)].bi, &mut out);
        assert!(out.sent.len() <= usize::from(SLOTS), "{:?}", out.sent);
        for parcel in out.sent {
            assert!((Kind::BiRead..=Kind::BiReserveAck).contains(&parcel.header.kind));
            let (own, body) = parcel.split();
            let of = |node: &NodeId| match parcel.header.kind.asks_bounded() {
                true => parcel.header.tag.home().is_of(*node),
                false => parcel.header.requester.node == *node,
            };
            if let Some(to) = (0..NODES).find(of) {
                let packet = (to, parcel.header, own, body.to_vec());
                self.under_way.push(packet);
            }
        }
        // What is under way in a network is bounded as well.
        let more = self.under_way.len().saturating_sub(16);
        self.under_way.drain(..more);
    }

    /// One of those that are under way arrives.
    fn arrive(&mut self, nth: usize) {
        let (to, header, own, body) = self.under_way.remove(nth);
        self.act(to, |bi, out| bi.packet(&header, &own, &body, out));
    }

    /// What the home has is of one write.
    fn check(&self) {
        for item in 0..ITEMS {
            let value = self.nodes[0].bi.stock.value(self.region, item);
            assert!(whole(value), "item {item} is {value:?}");
        }
    }
}

/// Nothing panics, no item is of two writes, and no packet is answered by a storm.
pub fn fuzz(input: &[u8]) {
    let mut dice = Dice::new(input);
    let mut rack = BoundedRack::new();
    for _ in 0..MAX_PACKETS {
        if dice.is_empty() {
            break;
        }
        step(&mut dice, &mut rack);
        rack.check();
    }
}

fn step(dice: &mut Dice<'_>, rack: &mut BoundedRack) {
    let node = dice.below(usize::from(NODES)) as NodeId;
    let slot = dice.below(usize::from(SLOTS)) as u8;
    match dice.below(8) {
        0 | 1 => {
            let (ask, idle) = (
                ask(dice, rack.region),
                rack.nodes[usize::from(node)].bi.take(slot),
            );
            told(dice, &mut rack.nodes[usize::from(node)], idle);
            rack.act(node, |bi, out| {
                bi.abandon(slot);
                bi.ask(slot, (ask, 0), out);
            });
        }
        2 => rack.act(node, |bi, out| bi.tick(out)),
        3 => rack.act(node, |bi, out| bi.resume(out)),
        4 | 5 if !rack.under_way.is_empty() => {
            let nth = dice.below(rack.under_way.len());
            if dice.one_in(4) {
                // It comes twice.
                let again = rack.under_way[nth].clone();
                rack.under_way.push(again);
            }
            rack.arrive(nth);
        }
        _ => {
            let (header, own, body) = packet(dice, rack.region);
            rack.act(node, |bi, out| bi.packet(&header, &own, &body, out));
        }
    }
}

/// A node's thread is told something, which may be forged.
fn told(dice: &mut Dice<'_>, node: &mut BoundedNode, told: Option<BiReply>) {
    let now = Tick(u64::from(dice.byte()));
    let place = |item: u32| (item as usize).min(ITEMS as usize - 1);
    match told {
        Some(BiReply::Item(number, value)) => {
            let heard = node.hearing.upto;
            node.copies[place(u32::from(dice.byte()))].put(value, number, heard, None);
        }
        Some(BiReply::News(news)) => {
            let question = node.hearing.ask(now);
            let Some((hearing, _)) = question.answered(&news, now, None) else {
                return;
            };
            assert!(hearing.upto >= node.hearing.upto, "it has heard of less");
            node.hearing = hearing;
            hear(&news, &mut node.copies, place);
        }
        _ => {}
    }
}

fn hear(news: &BiNews, copies: &mut [HeldItem<Vec<u8>>], place: impl Fn(u32) -> usize) {
    let Some(each) = news.each() else {
        copies.iter_mut().for_each(|copy| {
            copy.hear(news.upto);
        });
        return;
    };
    for (item, value) in each {
        let copy = &mut copies[place(item)];
        match value {
            Some(value) => {
                assert!(value.len() <= news.shape.0 as usize);
                copy.refresh(value.to_vec(), news.now(), None);
            }
            None => {
                copy.hear(news.upto);
            }
        }
    }
}

fn ask(dice: &mut Dice<'_>, region: Tag) -> BiAsk {
    let item = dice.pick(&[0, 1, ITEMS - 1, ITEMS, u32::MAX]);
    let tag = tag(dice, region);
    let len = dice.pick(&[BYTES, BYTES, BYTES, 0, BYTES + 1]);
    match dice.below(8) {
        0..=2 => BiAsk::Write(tag, item, vec![dice.byte(); len as usize]),
        3 | 4 => BiAsk::Read(tag, item, len),
        5 | 6 => BiAsk::News(tag, dice.pick(&[0, 1, 2, u64::MAX])),
        _ if dice.one_in(2) => BiAsk::Remove(Tag(region.0 + 64)),
        _ => {
            let shapes = [
                (BYTES, 1),
                (MAX_ITEM, 1),
                (1, MAX_ITEMS),
                (u32::MAX, 2),
                (0, 0),
            ];
            let (bytes, items) = dice.pick(&shapes);
            BiAsk::Reserve(region, bytes, items)
        }
    }
}

/// Mostly the region's.
fn tag(dice: &mut Dice<'_>, region: Tag) -> Tag {
    match dice.below(8) {
        0 => Tag(region.0 + 64),
        1 => Tag(region.0 ^ u64::from(dice.word())),
        2 => region.under(Contract::Coherent),
        _ => region,
    }
}

fn packet(dice: &mut Dice<'_>, region: Tag) -> (Header, Own, Vec<u8>) {
    let wild = dice.one_in(12);
    let kinds: Vec<Kind> = Kind::ALL
        .iter()
        .copied()
        .filter(|kind| (Kind::BiRead..=Kind::BiReserveAck).contains(kind))
        .collect();
    let requester = RequesterId {
        node: dice.below(if wild { 40 } else { 3 }) as NodeId,
        slot: dice.below(if wild { 80 } else { 2 }) as u16,
    };
    let kind = dice.pick(&kinds);
    let tag = tag(dice, region);
    let mut header = Header::request(kind, 1, tag, requester, Seq(dice.below(6) as u64));
    header.incarnation = if wild { dice.word() } else { 1 };
    header.flags = Flags(dice.byte() & Flags::KNOWN);
    header.reason = match dice.one_in(4) {
        true => Reason::from_byte(dice.byte() % 16).unwrap_or_default(),
        false => Reason::None,
    };
    let words = [
        0,
        1,
        2,
        4,
        u64::from(BYTES),
        u64::from(dice.word()),
        u64::MAX,
    ];
    let own = Own {
        a: dice.pick(&words),
        b: dice.pick(&words),
    };
    let body = vec![dice.byte(); dice.pick(&[0, 1, 8, 8, 8, 9, 12, 40, 1024, 3500])];
    (header, own, body)
}

/// Bytes of several lengths: every byte string is a sequence of steps.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(5);
    [64, 256, 1024, 4096]
        .map(|n| std::iter::repeat_with(|| random.u8(..)).take(n).collect())
        .into()
}
