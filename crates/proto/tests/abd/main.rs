//! Replicated memory with real bytes: lines of every length in segments, 1 to 7 copies, with and
//! without a switch, packets in any order, some twice and some never;
//! and packets that no node has sent.

mod configs;
mod epochs;
mod fills;

use rackmem_proto::abd::{
    Abd, Body, Change, Command, Config, Effects, Layout, Member, Outcome, Replica, Staging, Stamp,
    Why, first_line,
};
use rackmem_proto::switch::{Counted, QuorumProgram, SWITCH};
use rackmem_proto::wire::{
    Contract, Copyset, Dest, Flags, HomeId, Kind, NodeId, Own, Record, RequesterId, Seq, Tag,
    segment_len,
};
use rackmem_proto::{Data, Output, wire::Header};
use std::collections::BTreeMap;

/// A packet: to whom, what, and its bytes or records.
type Message = (NodeId, Header, Own, Vec<u8>, Vec<Record>);

/// One that is to be sent, to whom a role says.
type Sent = (Dest, Header, Own, Vec<u8>, Vec<Record>);

/// A node's bytes.
#[derive(Default)]
struct Bytes {
    lines: BTreeMap<Tag, Vec<u8>>,
    staging: BTreeMap<Staging, Vec<u8>>,
    operand: Vec<u8>,
    done: Vec<Outcome>,
    /// Of a durable member: what is not durable yet.
    syncing: Vec<(Header, Own)>,
    /// Groups of which somebody lives by this later config.
    behind: Vec<(u16, u32)>,
}

struct Fx<'a> {
    bytes: &'a mut Bytes,
    segment: (u32, &'a [u8]),
    /// Of a line, and of a body.
    lens: (u32, u32),
    sent: Vec<Sent>,
}

impl Fx<'_> {
    fn put(line: &mut Vec<u8>, (offset, bytes): (u32, &[u8]), len: u32) {
        line.resize(len as usize, 0);
        let at = offset as usize;
        line[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

impl Effects for Fx<'_> {
    fn stage(&mut self, at: Staging) {
        let staging = self.bytes.staging.entry(at).or_default();
        Self::put(staging, self.segment, self.lens.0);
    }

    fn sync(&mut self, _: Staging, header: &Header, own: Own) {
        self.bytes.syncing.push((*header, own));
    }

    fn commit(&mut self, at: Staging, line: Tag, _: Stamp) {
        let staged = self.bytes.staging[&at].clone();
        self.bytes.lines.insert(line, staged);
    }

    fn gather(&mut self, _: u8) {
        Self::put(&mut self.bytes.operand, self.segment, self.lens.0);
    }

    fn send(&mut self, to: Dest, header: &Header, own: Own, body: Body<'_>) {
        let zeros = vec![0; self.lens.0 as usize];
        let line = match body {
            Body::Line => self.bytes.lines.get(&header.tag).cloned().unwrap_or(zeros),
            Body::Value(_) => self.bytes.operand.clone(),
            Body::Nothing => return self.sent.push((to, *header, own, vec![], vec![])),
            Body::Records(records) => {
                let records = records.to_vec();
                return self.sent.push((to, *header, own, vec![], records));
            }
        };
        let len = segment_len(self.lens.0, self.lens.1) as usize;
        for (nth, segment) in line.chunks(len).enumerate() {
            let mut header = *header;
            header.flags = header.flags.and(Flags::DATA);
            header.offset = (nth * len) as u32;
            self.sent.push((to, header, own, segment.to_vec(), vec![]));
        }
    }

    fn behind(&mut self, group: u16, config: u32) {
        self.bytes.behind.push((group, config));
    }

    fn done(&mut self, _: u8, outcome: Outcome) {
        self.bytes.done.push(outcome);
    }
}

/// Numbers that are as good as drawn.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % bound
    }
}

struct Registers {
    nodes: Vec<(Abd, Bytes)>,
    switch: Option<QuorumProgram>,
    config: Config,
    layout: Layout,
    packets: Vec<Message>,
    dice: Dice,
}

const BODY: u32 = 1_424;

impl Registers {
    /// Nodes of which the first have copies; the last have none.
    fn new((copies, line, switch): (NodeId, u32, bool), seed: u64) -> Registers {
        let layout = Layout::new(line, 1 << 20).unwrap();
        let members: Vec<Member> = (0..copies).map(|node| Member { node, life: 1 }).collect();
        let mut config = Config::first(&members).unwrap();
        if switch {
            config = config.step(Change::ThroughSwitch(true)).unwrap();
        }
        let mut program = QuorumProgram::default();
        program.count(0, Some(Counted::new(&config)));
        let mut rack = Registers {
            nodes: (0..copies + 2)
                .map(|n| (Abd::new(n, 1), Bytes::default()))
                .collect(),
            switch: switch.then_some(program),
            config,
            layout,
            packets: vec![],
            dice: Dice(seed),
        };
        for node in 0..copies + 2 {
            rack.nodes[usize::from(node)]
                .0
                .keep(0, 1, Replica::new(false));
            rack.learn(node);
        }
        rack
    }

    fn learn(&mut self, node: NodeId) {
        let (config, layout) = (self.config, self.layout);
        self.act(node, (0, &[]), |abd, fx| abd.learn(0, layout, &config, fx));
    }

    fn act<R>(
        &mut self,
        node: NodeId,
        segment: (u32, &[u8]),
        act: impl FnOnce(&mut Abd, &mut Fx<'_>) -> R,
    ) -> R {
        let (abd, bytes) = &mut self.nodes[usize::from(node)];
        let lens = (self.layout.line, BODY);
        let sent = Vec::new();
        let mut fx = Fx {
            bytes,
            segment,
            lens,
            sent,
        };
        let result = act(abd, &mut fx);
        for (to, mut header, own, bytes, records) in fx.sent {
            header.sender = node;
            self.put(to, header, own, (&bytes, &records));
        }
        result
    }

    fn put(&mut self, to: Dest, header: Header, own: Own, (bytes, records): (&[u8], &[Record])) {
        let output = Output::with(to, header, Data::Operand);
        for (to, header) in output.copies(|_: HomeId| None) {
            let to = match to {
                Dest::Agent(node) => node,
                _ => SWITCH,
            };
            self.packets
                .push((to, header, own, bytes.to_vec(), records.to_vec()));
        }
    }

    fn arrive(&mut self, (to, header, own, bytes, records): &Message) {
        if *to == SWITCH {
            let switch = self.switch.as_mut().expect("packets to it");
            if let Some((to, header, own, carries)) = switch.handle(header, own, bytes) {
                self.put(to, header, own, (carries.bytes(bytes), records));
            }
            return;
        }
        let len = bytes.len() as u32;
        self.act(*to, (header.offset, bytes), |abd, fx| {
            abd.packet(header, own, (len, records), fx);
        });
    }

    /// Packets arrive in any order; one in `one_in` is lost or comes twice.
    /// Nodes ask again when none is left.
    fn run(&mut self, node: NodeId, command: Command, one_in: usize) -> Outcome {
        self.act(node, (0, &[]), |abd, fx| abd.command(0, command, fx));
        for _ in 0..200_000 {
            if let Some(outcome) = self.nodes[usize::from(node)].1.done.pop() {
                return outcome;
            }
            self.sync_one();
            if self.packets.is_empty() {
                self.act(node, (0, &[]), |abd, fx| abd.retry(0, fx));
                continue;
            }
            let nth = self.dice.below(self.packets.len());
            let packet = self.packets[nth].clone();
            match self.dice.below(one_in * 2) {
                0 => drop(self.packets.swap_remove(nth)),
                1 => self.arrive(&packet),
                _ => {
                    self.packets.swap_remove(nth);
                    self.arrive(&packet);
                }
            }
        }
        panic!("{command:?} does not end");
    }

    /// Of some durable member something becomes durable.
    fn sync_one(&mut self) {
        let node = self.dice.below(self.nodes.len());
        let syncing = self.nodes[node].1.syncing.len();
        if syncing > 0 {
            let nth = self.dice.below(syncing);
            let (header, own) = self.nodes[node].1.syncing.swap_remove(nth);
            self.act(node as NodeId, (0, &[]), |abd, fx| {
                abd.synced(&header, &own, fx)
            });
        }
    }

    fn write(&mut self, node: NodeId, line: Tag, byte: u8) -> Outcome {
        let len = self.layout.line as usize;
        self.nodes[usize::from(node)].1.operand = (0..len).map(|at| byte ^ at as u8).collect();
        self.run(node, Command::Write(line), 20)
    }

    fn read(&mut self, node: NodeId, line: Tag) -> (Outcome, Vec<u8>) {
        let outcome = self.run(node, Command::Read(line), 20);
        (
            outcome,
            std::mem::take(&mut self.nodes[usize::from(node)].1.operand),
        )
    }
}

#[test]
fn what_was_written_is_read_at_every_length_and_number_of_copies() {
    let lines = [64, 256, 4_096, 65_536];
    for (line, copies, switch) in lines.into_iter().flat_map(|line| {
        let copies = [1, 3, 5, 7].into_iter();
        copies.flat_map(move |copies| [(line, copies, false), (line, copies, true)])
    }) {
        let seed = u64::from(line) << 8 | u64::from(copies) << 1 | u64::from(switch);
        let mut rack = Registers::new((copies, line, switch), seed);
        let at = Tag(first_line(0).0 + u64::from(line));
        let (writers, reader) = ([copies, copies + 1], 0);
        let (zero, bytes) = rack.read(reader, at);
        assert!(
            matches!(
                zero,
                Outcome::Read {
                    stamp: Stamp::NONE,
                    ..
                }
            ),
            "{zero:?}"
        );
        assert!(bytes.iter().all(|byte| *byte == 0) && bytes.len() == line as usize);
        for round in 0..4u8 {
            let writer = writers[usize::from(round % 2)];
            let written = rack.write(writer, at, round);
            let Outcome::Written { stamp, .. } = written else {
                panic!("{written:?}");
            };
            let (read, bytes) = rack.read(reader, at);
            assert!(
                matches!(read, Outcome::Read { stamp: s, .. } if s == stamp),
                "{read:?}"
            );
            assert!(
                bytes
                    .iter()
                    .enumerate()
                    .all(|(at, byte)| *byte == round ^ at as u8)
            );
        }
    }
}

#[test]
fn a_read_takes_one_round_when_all_is_quiet_and_a_write_two() {
    for switch in [false, true] {
        let mut rack = Registers::new((3, 64, switch), 1);
        let line = first_line(0);
        rack.nodes[4].1.operand = vec![7; 64];
        let written = rack.run(4, Command::Write(line), usize::MAX / 4);
        assert!(
            matches!(written, Outcome::Written { rounds: 2, .. }),
            "{written:?}"
        );
        while let Some(packet) = rack.packets.pop() {
            rack.arrive(&packet);
        }
        let read = rack.run(3, Command::Read(line), usize::MAX / 4);
        assert!(matches!(read, Outcome::Read { rounds: 1, .. }), "{read:?}");
    }
}

/// Of three members, with a switch that chooses stamps, and that may not know the line.
fn at_once() -> Registers {
    let mut rack = Registers::new((3, 64, true), 1);
    rack.config = rack.config.step(Change::AtOnce(1)).unwrap();
    let mut program = QuorumProgram::default().of_life(1);
    program.count(0, Some(Counted::new(&rack.config)));
    rack.switch = Some(program);
    (0..5).for_each(|node| rack.learn(node));
    rack
}

#[test]
fn a_write_takes_one_round_where_the_switch_knows_the_line_and_two_after_one_was_given_up() {
    let mut rack = at_once();
    let line = first_line(0);
    let begun = |rack: &mut Registers| {
        rack.packets.clear();
        rack.act(4, (0, &[]), |abd, fx| {
            abd.command(0, Command::Write(line), fx)
        });
        let (to, header, own, ..) = &rack.packets[0];
        assert_eq!(*to, SWITCH);
        (header.kind, own.a)
    };
    for round in 0..3 {
        rack.nodes[4].1.operand = vec![7; 64];
        let written = rack.run(4, Command::Write(line), usize::MAX / 4);
        let Outcome::Written { rounds, stamp } = written else {
            panic!("{written:?}");
        };
        // The first one's answer was that the switch knows nothing of the line.
        assert_eq!(
            (rounds, stamp.is_chosen()),
            if round == 0 { (3, false) } else { (1, true) }
        );
    }
    assert_eq!(begun(&mut rack), (Kind::AbdWrite, 0));
    rack.act(4, (0, &[]), |abd, _| abd.abandon(0));
    assert_eq!(begun(&mut rack), (Kind::AbdStamp, 0));
}

/// A switch that has begun anew knows no stamp of a line, and has chosen one of this write before.
#[test]
fn a_write_that_has_its_stamp_ends_by_it_whatever_the_switch_says_then() {
    let (chosen, other) = (Stamp(9 << 32), Stamp(10 << 32));
    let mut rack = at_once();
    rack.nodes[4].1.operand = vec![7; 64];
    rack.act(4, (0, &[]), |abd, fx| {
        abd.command(0, Command::Write(first_line(0)), fx)
    });
    let (_, request, own, ..) = rack.packets[0].clone();
    let answer = |rack: &mut Registers, sender: NodeId, stamp: Stamp| {
        rack.packets.clear();
        let header = request.answer(Kind::AbdWriteAck, sender);
        let own = Own { a: stamp.0, ..own };
        rack.act(4, (0, &[]), |abd, fx| {
            abd.packet(&header, &own, (0, &[]), fx)
        });
        let sent = rack.packets.iter().map(|(_, header, ..)| header.kind);
        (sent.collect(), rack.nodes[4].1.done.pop())
    };
    let nothing = (vec![], None);
    assert_eq!(answer(&mut rack, 0, Stamp::NONE), nothing, "no switch");
    assert_eq!(answer(&mut rack, 0, chosen), nothing, "no quorum");
    assert_eq!(answer(&mut rack, SWITCH, Stamp::NONE), nothing, "late");
    assert_eq!(answer(&mut rack, 1, other), nothing, "another's");
    let (rounds, stamp) = (1, chosen);
    let written = Outcome::Written { rounds, stamp };
    assert_eq!(answer(&mut rack, 2, chosen), (vec![], Some(written)));
}

#[test]
fn what_cannot_begin_is_refused_and_changes_nothing() {
    let mut rack = Registers::new((3, 64, false), 1);
    let line = first_line(0);
    let mut refused = |slot: u8, command: Command, why: Why| {
        rack.act(3, (0, &[]), |abd, fx| abd.command(slot, command, fx));
        assert_eq!(rack.nodes[3].1.done.pop(), Some(Outcome::Refused(why)));
        assert!(rack.packets.is_empty());
    };
    refused(0, Command::Read(Tag(line.0 + 1)), Why::NoLine);
    refused(0, Command::Read(Tag(line.0 + (1 << 20))), Why::NoLine);
    refused(
        0,
        Command::Write(line.under(Contract::Coherent)),
        Why::NoLine,
    );
    refused(0, Command::Write(first_line(1)), Why::NoLine);
    refused(0, Command::Write(first_line(40)), Why::NoLine);
    refused(64, Command::Read(line), Why::Slot);
    rack.act(3, (0, &[]), |abd, fx| {
        abd.command(0, Command::Read(line), fx)
    });
    rack.act(3, (0, &[]), |abd, fx| {
        abd.command(0, Command::Write(line), fx)
    });
    assert_eq!(rack.nodes[3].1.done, [Outcome::Refused(Why::Slot)]);
}

#[test]
fn packets_that_no_node_has_sent_break_nothing() {
    for seed in 0..60 {
        let mut rack = Registers::new((3, 64, seed % 2 == 0), seed);
        // A member that fills, so that lists and lines for it are looked at.
        let spare = Change::Replace(2, Member { node: 4, life: 1 });
        let good = rack.config;
        rack.write(3, first_line(0), 1);
        rack.config = good.step(spare).unwrap();
        for node in 0..5 {
            rack.learn(node);
        }
        let kinds: Vec<Kind> = Kind::ALL
            .iter()
            .copied()
            .filter(|kind| kind.is_fenced_by_config())
            .collect();
        for _ in 0..400 {
            let d = &mut rack.dice;
            let requester = RequesterId {
                node: d.below(8) as NodeId,
                slot: d.below(3) as u16,
            };
            let line = Tag(first_line(d.below(2) as u16).0 + d.below(4) as u64 * 32);
            let kind = kinds[d.below(kinds.len())];
            let mut header = Header::request(kind, 0, line, requester, Seq(d.below(4) as u64));
            header.incarnation = d.below(3) as u32;
            header.sender = [0, 1, 2, 3, 4, 31, SWITCH][d.below(7)];
            header.flags = Flags(d.below(128) as u8);
            header.offset = [0, 1, 32, 64, u32::MAX][d.below(5)];
            header.copyset = Copyset(d.below(1 << 20) as u32);
            let stamp = [0, 1 << 27, u64::MAX, d.below(1 << 30) as u64][d.below(4)];
            let config = rack.config.number.wrapping_sub(1) + d.below(3) as u32;
            let own = Own {
                a: stamp,
                b: u64::from(config) << 32,
            };
            let bytes = vec![0xee; [0, 1, 32, 64][d.below(4)]];
            let record = Record {
                tag: line,
                word: stamp,
            };
            let to = d.below(5) as NodeId;
            // A host puts bytes where a core has said that they belong: elsewhere this would be out
            // of bounds.
            rack.arrive(&(to, header, own, bytes, vec![record; 2]));
            if let Some(switch) = &mut rack.switch {
                switch.handle(&header, &own, &[]);
            }
            assert!(rack.packets.len() < 10_000, "a storm");
            rack.packets.clear();
        }
    }
}
