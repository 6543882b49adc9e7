//! One packet to a small rack causes boundedly many, whoever answers whom: no role answers an answer for ever.

use rackmem_baselines::gather;
use rackmem_proto::flowcc::{HomeConfig, LocalStatus, MakeAnswering, Migration};
use rackmem_proto::gcp::{
    Access, Blade, BladeConfig, Body, Event, LockDirectory, Regions, Steps, first, with_version,
};
use rackmem_proto::switch::{LockConfig, LockProgram, SWITCH, SwitchConfig, SwitchProgram};
use rackmem_proto::{Dest, Output};
use rackmem_wire::{Header, Kind, Record, Tag};
use std::collections::VecDeque;

use crate::dice::{Dice, EPOCH};
use crate::node;

/// Packets of one run from outside at most.
const MAX_PACKETS: usize = 256;
/// Packets that one may cause in the whole rack: hand-overs through all nodes, or a shadow that reads all tags.
const ECHOES: usize = 256;
const NODES: u16 = 3;
const BLOCK: u32 = 4096;
/// Locks of each node.
const LOCKS: u64 = 2;

struct Node {
    agents: node::Node,
    locks: LockDirectory,
    blade: Blade,
}

struct Packet {
    to: Dest,
    header: Header,
    records: Vec<Record>,
}

struct Rack {
    nodes: Vec<Node>,
    switch: SwitchProgram,
    lock_switch: LockProgram,
    flying: VecDeque<Packet>,
}

fn lock(home: u16, nth: u64) -> Tag {
    Tag((u64::from(home) << 48) | (nth * 4096))
}

/// Traffic dies down after every packet, and whenever threads leave locks.
pub fn fuzz(input: &[u8]) {
    let mut dice = Dice::new(input);
    let mut rack = Rack::new(&mut dice);
    for _ in 0..MAX_PACKETS {
        if dice.is_empty() {
            break;
        }
        match dice.below(8) {
            0 => rack.threads(&mut dice),
            1 => rack.tick(),
            _ => rack.forge(&mut dice),
        }
        rack.quiet();
    }
}

impl Rack {
    fn new(dice: &mut Dice) -> Rack {
        let switch = SwitchConfig {
            epoch: EPOCH,
            ways: 2,
            sets: 2,
            shadow: Some(0),
            ..SwitchConfig::default()
        };
        let answering = dice.pick(&[None, Some(gather::answering as MakeAnswering)]);
        Rack {
            nodes: (0..NODES).map(|node| Node::new(node, answering)).collect(),
            switch: SwitchProgram::new(switch),
            lock_switch: LockProgram::new(LockConfig {
                epoch: EPOCH,
                ways: 1,
                sets: 4,
            }),
            flying: VecDeque::new(),
        }
    }

    fn forge(&mut self, dice: &mut Dice) {
        let mut header = dice.header();
        let number = first(EPOCH) + dice.below(12) as u64;
        let far = first(EPOCH) + u64::from(dice.word());
        if dice.one_in(2) {
            header = with_version(header, dice.pick(&[number, far]));
        }
        let records = (0..dice.below(4)).map(|_| Record {
            tag: Tag(dice.below(4) as u64),
            word: first(EPOCH) + dice.below(12) as u64,
        });
        let records = records.collect();
        let to = match dice.below(4) {
            3 => Dest::Switch,
            node => Dest::Agent(node as u16),
        };
        self.flying.push_back(Packet {
            to,
            header,
            records,
        });
    }

    /// A thread of some node enters a lock, or leaves it.
    fn threads(&mut self, dice: &mut Dice) {
        let node = dice.below(NODES.into());
        let tag = lock(
            dice.below(NODES.into()) as u16,
            dice.below(LOCKS as usize) as u64,
        );
        let access = dice.pick(&[Access::Read, Access::Write]);
        let mut steps = Steps::new();
        let blade = &mut self.nodes[node].blade;
        let inside = blade.lock(tag).map(|lock| (lock.inside(), lock.waits()));
        match inside {
            Some(((0, false), None)) => _ = blade.enter(tag, access, &mut steps),
            Some(((_, true), _)) => _ = blade.leave(tag, Access::Write, None, &mut steps),
            Some(((1.., _), _)) => _ = blade.leave(tag, Access::Read, None, &mut steps),
            _ => {}
        }
        self.run(steps);
    }

    fn tick(&mut self) {
        let nodes = self.nodes.iter_mut();
        let caused: Vec<node::Caused> = nodes.map(|node| node.agents.tick(true)).collect();
        for caused in caused {
            self.follow(caused);
        }
    }

    fn follow(&mut self, caused: node::Caused) {
        for (output, records) in caused.sent {
            for (to, header) in output.copies() {
                let records = records.clone();
                self.flying.push_back(Packet {
                    to,
                    header,
                    records,
                });
            }
        }
    }

    fn quiet(&mut self) {
        for _ in 0..ECHOES {
            let Some(packet) = self.flying.pop_front() else {
                return;
            };
            self.deliver(&packet);
        }
        let next = self.flying.front().map(|packet| (packet.to, packet.header));
        assert_eq!(
            next, None,
            "one packet has caused {ECHOES}, and there is more"
        );
    }

    fn deliver(&mut self, packet: &Packet) {
        let of_lock =
            (Kind::Acquire as u8..=Kind::YieldAck as u8).contains(&(packet.header.kind as u8));
        match packet.to {
            Dest::Switch if of_lock => {
                let outputs = self.lock_switch.handle(&packet.header);
                self.send_all(outputs.iter());
            }
            Dest::Switch if packet.header.kind == Kind::ReadTags => self.tell_tags(&packet.header),
            Dest::Switch => {
                let outputs = self.switch.handle(&packet.header);
                self.send_all(outputs.iter());
            }
            // Whoever names an agent's port as a requester's has the agent answered.
            Dest::Requester(id) => self.deliver_to_agent(id.node, packet),
            Dest::Agent(node) => self.deliver_to_agent(node, packet),
            Dest::Agents { .. } => {}
        }
    }

    fn tell_tags(&mut self, header: &Header) {
        let (records, next) = self.switch.tags(header.offset as usize, 1);
        let mut header = header.answer(Kind::Tags, SWITCH);
        header.tag = Tag(next as u64);
        self.flying.push_back(Packet {
            to: Dest::Agent(header.requester.node),
            header,
            records,
        });
    }

    /// As a node's agents do.
    fn deliver_to_agent(&mut self, at: u16, packet: &Packet) {
        let header = &packet.header;
        let Some(node) = self.nodes.get_mut(usize::from(at)) else {
            return;
        };
        let caused = node.agents.packet(header, 0, &packet.records);
        if !caused.of_nobody {
            return self.follow(caused);
        }
        if header.kind.asks_directory() {
            let outputs = node.locks.handle_or_place(header);
            return self.send_all(outputs.iter());
        }
        let mut steps = Steps::new();
        node.blade.handle(header, 0, &packet.records, &mut steps);
        self.run(steps);
    }

    fn run(&mut self, steps: Steps) {
        for step in steps {
            if let Event::Send(send) = step {
                let records = match &send.body {
                    Body::Queue(queue) => queue.records().collect(),
                    _ => Vec::new(),
                };
                for (to, header) in Output::new(send.to, send.header).copies() {
                    let records = records.clone();
                    self.flying.push_back(Packet {
                        to,
                        header,
                        records,
                    });
                }
            }
        }
    }

    fn send_all<'a>(&mut self, outputs: impl IntoIterator<Item = &'a Output>) {
        for (to, header) in outputs.into_iter().flat_map(|output| output.copies()) {
            self.flying.push_back(Packet {
                to,
                header,
                records: Vec::new(),
            });
        }
    }
}

impl Node {
    fn new(node: u16, answering: Option<MakeAnswering>) -> Node {
        let home = HomeConfig {
            node,
            epoch: EPOCH,
            block: BLOCK,
            chunks: 1,
            incarnation: 1,
            migration: Some(Migration::default()),
            answering,
            seed: 0,
        };
        let shadow = (node == 0).then_some((2, 2));
        let mut agents = node::Node::new(home, shadow);
        for (home, nth) in (0..NODES).flat_map(|home| (0..4).map(move |nth| (home, nth))) {
            agents.cache.insert(lock(home, nth), LocalStatus::Shared);
        }
        let mut blade = Blade::new(BladeConfig {
            node,
            epoch: EPOCH,
            switch: true,
            cohort: 2,
            locks: 64,
        });
        let mut locks = LockDirectory::new(node, EPOCH);
        for tag in (0..NODES).flat_map(|home| (0..LOCKS).map(move |nth| lock(home, nth))) {
            if tag.home() == node {
                blade.create(tag, Regions::default());
                locks.create(tag);
            } else {
                blade.open(tag, Regions::default());
            }
        }
        Node {
            agents,
            locks,
            blade,
        }
    }
}

/// Bytes of several lengths: every byte string is a sequence of packets.
pub fn seeds() -> Vec<Vec<u8>> {
    crate::switch_program::seeds()
}
