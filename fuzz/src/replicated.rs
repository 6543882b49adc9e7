//! Any sequence of packets to nodes of replicated memory, and to the switch that counts for them.

use crate::dice::Dice;
use rackmem_proto::abd::{
    Abd, Body, Change, Command, Config, Effects, Layout, Member, Outcome, Replica, Staging, Stamp,
    first_line,
};
use rackmem_proto::switch::{Counted, QuorumProgram, SWITCH};
use rackmem_proto::wire::{
    Copyset, Dest, Flags, Header, Kind, NodeId, Own, Reason, Record, RequesterId, Seq, Tag,
};
use std::collections::BTreeMap;

/// Packets of one run at most, and of what one is answered by.
const MAX_PACKETS: usize = 256;
const MAX_ANSWERS: usize = 80;
const LINE: u32 = 64;
const NODES: NodeId = 4;

/// A node's bytes, as a host keeps them: it puts them where the core says that they belong.
struct Bytes {
    staging: BTreeMap<Staging, [u8; LINE as usize]>,
    operand: [u8; LINE as usize],
    stamps: BTreeMap<Tag, Stamp>,
    syncs: Vec<(Header, Own)>,
}

struct Fx<'a> {
    bytes: &'a mut Bytes,
    packet: Option<(&'a Header, &'a Own, &'a [u8])>,
    sent: usize,
}

impl Effects for Fx<'_> {
    fn stage(&mut self, at: Staging) {
        let (header, _, body) = self.packet.expect("a segment is staged from a packet");
        let from = header.offset as usize;
        let staging = self.bytes.staging.entry(at).or_insert([0; LINE as usize]);
        staging[from..from + body.len()].copy_from_slice(body);
    }

    fn sync(&mut self, at: Staging, header: &Header, own: Own) {
        assert!(self.bytes.staging.contains_key(&at));
        self.bytes.syncs.push((*header, own));
    }

    fn commit(&mut self, at: Staging, line: Tag, stamp: Stamp) {
        assert!(self.bytes.staging.contains_key(&at), "{at:?}");
        let before = self.bytes.stamps.insert(line, stamp).unwrap_or_default();
        assert!(before < stamp, "{line:?}: {before:?} before {stamp:?}");
    }

    fn gather(&mut self, _: u8) {
        let (header, _, body) = self.packet.expect("a segment is read from a packet");
        let from = header.offset as usize;
        self.bytes.operand[from..from + body.len()].copy_from_slice(body);
    }

    fn send(&mut self, _: Dest, header: &Header, own: Own, body: Body<'_>) {
        self.sent += 1;
        assert!(header.kind.is_fenced_by_config());
        // What a durable member acknowledges it has written down.
        let stores = matches!(header.kind, Kind::AbdWriteAck | Kind::AbdWriteBackAck);
        if stores && body == Body::Nothing && own.a != 0 {
            let has = self.bytes.stamps.get(&header.tag).copied();
            assert!(has >= Some(Stamp(own.a)), "{:?}: {has:?}", header.tag);
        }
    }

    fn done(&mut self, _: u8, _: Outcome) {}
}

struct ReplicatedRack {
    nodes: Vec<(Abd, Bytes)>,
    switch: QuorumProgram,
    config: Config,
}

impl ReplicatedRack {
    fn act(
        &mut self,
        node: NodeId,
        packet: Option<(&Header, &Own, &[u8])>,
        act: impl FnOnce(&mut Abd, &mut Fx<'_>),
    ) {
        let (abd, bytes) = &mut self.nodes[usize::from(node)];
        let mut fx = Fx {
            bytes,
            packet,
            sent: 0,
        };
        act(abd, &mut fx);
        assert!(fx.sent <= MAX_ANSWERS, "{} packets at once", fx.sent);
    }

    fn learn(&mut self, node: NodeId) {
        let config = self.config;
        let Some(layout) = Layout::new(LINE, 1 << 12) else {
            return;
        };
        self.act(node, None, |abd, fx| abd.learn(0, layout, &config, fx));
        self.switch.count(0, Some(Counted::new(&config)));
    }
}

/// Nothing panics, no line's stamp falls, nothing is acknowledged that is not stored, and no packet
/// is answered by a storm.
pub fn fuzz(input: &[u8]) {
    let mut dice = Dice::new(input);
    let members = [0, 1, 2].map(|node| Member { node, life: 1 });
    let Ok(mut config) = Config::first(&members) else {
        return;
    };
    config.through_switch = dice.one_in(2);
    config.chooser = u32::from(config.through_switch && dice.one_in(2));
    let durable = dice.one_in(2);
    let node = |node| {
        let bytes = Bytes {
            staging: BTreeMap::new(),
            operand: [0; LINE as usize],
            stamps: BTreeMap::new(),
            syncs: Vec::new(),
        };
        (Abd::new(node, 1), bytes)
    };
    let mut rack = ReplicatedRack {
        nodes: (0..NODES).map(node).collect(),
        switch: QuorumProgram::new(2, 2).of_life(1),
        config,
    };
    for node in 0..NODES {
        rack.nodes[usize::from(node)]
            .0
            .keep(0, 1, Replica::new(durable));
        rack.learn(node);
    }
    for _ in 0..MAX_PACKETS {
        if dice.is_empty() {
            break;
        }
        step(&mut dice, &mut rack);
    }
}

fn step(dice: &mut Dice<'_>, rack: &mut ReplicatedRack) {
    let node = dice.below(usize::from(NODES)) as NodeId;
    let line = Tag(first_line(0).0 + u64::from(LINE) * dice.below(3) as u64);
    let slot = dice.below(2) as u8;
    match dice.below(16) {
        0 => rack.act(node, None, |abd, fx| {
            abd.command(slot, Command::Write(line), fx)
        }),
        1 => rack.act(node, None, |abd, fx| {
            abd.command(slot, Command::Read(line), fx)
        }),
        2 => rack.act(node, None, |abd, fx| abd.retry(slot, fx)),
        3 => rack.act(node, None, |abd, _| abd.abandon(slot)),
        4 => rack.act(node, None, |abd, fx| abd.tick(fx)),
        5 => {
            let (life, of) = (1 + u64::from(dice.byte() % 2), dice.below(4) as NodeId);
            let steps = [
                Change::Replace(2, Member { node: 3, life }),
                Change::Filled(3),
                Change::Cancel(3),
                Change::Add(Member { node: of, life }),
                Change::ThroughSwitch(dice.one_in(2)),
                Change::AtOnce(dice.below(3) as u32),
                Change::Held(dice.below(3) as u32),
            ];
            if let Ok(next) = rack.config.step(dice.pick(&steps)) {
                rack.config = next;
            }
            rack.learn(node);
        }
        6 => {
            let syncs = &mut rack.nodes[usize::from(node)].1.syncs;
            if !syncs.is_empty() {
                let (header, own) = syncs.remove(dice.below(syncs.len()));
                rack.act(node, None, |abd, fx| abd.synced(&header, &own, fx));
            }
        }
        _ => {
            let (header, own, body, records) = packet(dice, rack.config.number);
            let len = body.len() as u32;
            let at_hand = Some((&header, &own, &body[..]));
            rack.act(node, at_hand, |abd, fx| {
                abd.packet(&header, &own, (len, &records), fx);
            });
            rack.switch.handle(&header, &own, &body);
        }
    }
}

fn packet(dice: &mut Dice<'_>, config: u32) -> (Header, Own, Vec<u8>, Vec<Record>) {
    let wild = dice.one_in(12);
    let kinds: Vec<Kind> = Kind::ALL
        .iter()
        .copied()
        .filter(|k| k.is_fenced_by_config())
        .collect();
    let requester = RequesterId {
        node: dice.below(if wild { 40 } else { 4 }) as NodeId,
        slot: dice.below(if wild { 80 } else { 2 }) as u16,
    };
    let line =
        Tag(first_line(u16::from(dice.one_in(16))).0 + u64::from(LINE) * dice.below(3) as u64);
    let line = if wild {
        Tag(line.0 + u64::from(dice.word()))
    } else {
        line
    };
    let mut header = Header::request(
        dice.pick(&kinds),
        0,
        line,
        requester,
        Seq(dice.below(6) as u64),
    );
    header.incarnation = if wild { dice.word() } else { 1 };
    header.sender = dice.pick(&[0, 1, 2, 3, 31, SWITCH]);
    header.flags = Flags(dice.byte() & Flags::KNOWN);
    header.reason = Reason::from_byte(dice.byte() % 16).unwrap_or_default();
    header.offset = dice.pick(&[0, 0, 0, 1, 32, 64, u32::MAX]);
    header.copyset = Copyset(if wild {
        dice.word()
    } else {
        dice.below(8) as u32 * 0x101
    });
    let rounds = [0, 1 << 28, 2 << 28, u64::MAX, u64::from(dice.word())];
    let own = Own {
        a: dice.pick(&rounds),
        b: u64::from(config.wrapping_add(dice.below(3) as u32).wrapping_sub(1)) << 32,
    };
    let body = vec![0xee; dice.pick(&[0, 1, 32, 64, 64, 64, 128])];
    let record = Record {
        tag: line,
        word: own.a,
    };
    let records = vec![record; dice.below(4)];
    (header, own, body, records)
}

/// Bytes of several lengths: every byte string is a sequence of steps.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(3);
    [64, 256, 1024, 4096]
        .map(|n| std::iter::repeat_with(|| random.u8(..)).take(n).collect())
        .into()
}
