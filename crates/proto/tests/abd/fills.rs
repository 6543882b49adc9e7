//! A member that fills, and what comes late of what it has asked for.

use rackmem_proto::abd::{
    Change, Command, Config, Effect, Layout, Member, Replica, ReplicatedMemory, first_line,
};
use rackmem_proto::call::Parcel;
use rackmem_proto::wire::{Dest, Kind, NodeId, Tag};

const LINE: u32 = 4096;
/// A line takes three packets.
const ROOM: usize = 1440;
/// The member that fills.
const FILLS: NodeId = 3;

struct Four {
    nodes: Vec<ReplicatedMemory>,
    config: Config,
    packets: Vec<(NodeId, Parcel)>,
}

impl Four {
    /// Of which the first three have copies.
    fn new(durable: bool) -> Four {
        let members = [0, 1, 2].map(|node| Member { node, life: 1 });
        let mut four = Four {
            nodes: (0..4)
                .map(|node| ReplicatedMemory::new((node, 1), ROOM))
                .collect(),
            config: Config::first(&members).unwrap(),
            packets: Vec::new(),
        };
        for node in 0..4 {
            let memory = &mut four.nodes[usize::from(node)];
            memory.abd.keep(0, 1, Replica::new(durable));
            memory.lines.lay_out(0, layout());
            four.learn(node);
        }
        four
    }

    fn learn(&mut self, node: NodeId) {
        let config = self.config;
        let memory = &mut self.nodes[usize::from(node)];
        let learn = memory.section((0, &[]), |abd, fx| abd.learn(0, layout(), &config, fx));
        self.carry_out(node, learn.1);
    }

    fn carry_out(&mut self, node: NodeId, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(mut parcel) => {
                    parcel.header.sender = node;
                    let Dest::Agent(to) = parcel.to else {
                        panic!("{:?}", parcel.to);
                    };
                    self.packets.push((to, parcel));
                }
                Effect::Sync(_, header, own) => {
                    let memory = &mut self.nodes[usize::from(node)];
                    let done = memory.section((0, &[]), |abd, fx| abd.synced(&header, &own, fx));
                    self.carry_out(node, done.1);
                }
                _ => {}
            }
        }
    }

    /// Packets of this kind to this node arrive, or all: others wait.
    fn arrive(&mut self, chosen: impl Fn(NodeId, &Parcel) -> bool) {
        while let Some(at) = (self.packets.iter()).position(|(to, parcel)| chosen(*to, parcel)) {
            let (to, parcel) = self.packets.remove(at);
            let effects = self.nodes[usize::from(to)].packet(&parcel);
            self.carry_out(to, effects);
        }
    }

    /// The last of the three leaves, and the one without a copy takes its place.
    fn replace(&mut self) {
        let fills = Member {
            node: FILLS,
            life: 1,
        };
        self.config = self.config.step(Change::Replace(2, fills)).unwrap();
        for node in [0, 1, FILLS] {
            self.learn(node);
        }
    }

    fn refill(&mut self) {
        let memory = &mut self.nodes[usize::from(FILLS)];
        let asks = memory.section((0, &[]), |abd, fx| abd.refill(0, fx));
        self.carry_out(FILLS, asks.1);
    }

    fn write(&mut self, line: Tag, byte: u8) {
        let memory = &mut self.nodes[0];
        let value = vec![byte; LINE as usize];
        memory.lines.operands.begin(0, value, 0);
        let begins = memory.section((0, &[]), |abd, fx| {
            abd.command(0, Command::Write(line), fx);
        });
        self.carry_out(0, begins.1);
        self.arrive(|_, _| true);
        assert!(self.nodes[0].lines.operands.take(0).is_some());
    }
}

fn layout() -> Layout {
    Layout::new(LINE, 1 << 20).unwrap()
}

fn line(nth: u64) -> Tag {
    Tag(first_line(0).0 + nth * u64::from(LINE))
}

/// It asks for the lists of a range again while lines are on their way to it. They come between the
/// first list and the second, when it knows of lines for which it has yet to ask.
#[test]
fn lines_that_come_late_never_mix() {
    for durable in [false, true] {
        let mut four = Four::new(durable);
        for nth in 0..3 {
            four.write(line(nth), nth as u8 + 1);
        }
        four.replace();
        four.arrive(|_, parcel| parcel.header.kind != Kind::AbdReadAck);
        let late = four.packets.len();
        assert_eq!(late, 9, "segments");
        four.refill();
        four.arrive(|to, parcel| match parcel.header.kind {
            Kind::AbdFill => to == 0,
            Kind::AbdFillAck => true,
            _ => false,
        });
        // The first segments of all lines, then the second ones, then the last.
        (four.packets).sort_by_key(|(_, parcel)| {
            let lines = parcel.header.kind == Kind::AbdReadAck;
            (!lines, parcel.header.offset)
        });
        four.arrive(|_, parcel| parcel.header.kind == Kind::AbdReadAck);
        four.arrive(|_, _| true);
        let filled = &four.nodes[usize::from(FILLS)];
        assert!(filled.abd.fill(0).unwrap().is_whole());
        for nth in 0..3 {
            let bytes = filled.lines.line(line(nth)).unwrap();
            let whole = bytes.iter().all(|byte| *byte == nth as u8 + 1);
            assert!(whole && bytes.len() == LINE as usize, "line {nth}");
        }
    }
}

/// A write that comes while lists are on their way is the member's already, and one that has come
/// since is newer than what the lists say.
#[test]
fn what_has_come_as_a_write_is_not_fetched() {
    let mut four = Four::new(false);
    for nth in 0..3 {
        four.write(line(nth), 1);
    }
    four.replace();
    let asks = core::mem::take(&mut four.packets);
    four.write(line(1), 2);
    four.packets = asks;
    four.arrive(|_, parcel| parcel.header.kind == Kind::AbdFill);
    let lists = core::mem::take(&mut four.packets);
    four.write(line(2), 2);
    four.packets = lists;
    four.arrive(|_, _| true);
    let filled = &four.nodes[usize::from(FILLS)];
    let fill = filled.abd.fill(0).unwrap();
    assert!(fill.is_whole());
    assert_eq!(fill.progress().1, 1, "lines fetched");
    for (nth, byte) in [(0, 1), (1, 2), (2, 2)] {
        let bytes = filled.lines.line(line(nth)).unwrap();
        assert!(bytes.iter().all(|is| *is == byte), "line {nth}");
    }
}
