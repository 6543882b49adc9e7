//! One packet to a small rack causes boundedly many, whoever answers whom:
//! no role answers an answer for ever.

use rackmem_baselines::gather;
use rackmem_proto::engine::{self, Gcp, LockCommand, Protocol};
use rackmem_proto::flowcc::{HomeConfig, LocalStatus, MakeAnswering, Migration};
use rackmem_proto::gcp::{Access, first, with_version};
use rackmem_proto::membership::host;
use rackmem_proto::switch::{LockConfig, LockProgram, SWITCH, SwitchConfig, SwitchProgram};
use rackmem_proto::{Dest, Output};
use rackmem_sim::site::Bare;
use rackmem_wire::{Contract, Header, Kind, Record, Tag};
use std::collections::VecDeque;

use crate::dice::{Dice, EPOCH};
use crate::node::{self, FuzzNode};

/// Packets of one run from outside at most.
const MAX_PACKETS: usize = 256;
/// Packets that one may cause in the whole rack: hand-overs through all nodes,
/// or a shadow that reads all tags.
const ECHOES: usize = 256;
const NODES: u16 = 3;
const BLOCK: u32 = 4096;
/// Locks of each node.
const LOCKS: u64 = 2;

struct FuzzPacket {
    to: Dest,
    header: Header,
    records: Vec<Record>,
}

struct FuzzRack {
    nodes: Vec<FuzzNode>,
    switch: SwitchProgram,
    lock_switch: LockProgram,
    flying: VecDeque<FuzzPacket>,
}

fn block(home: u16, nth: u64) -> Tag {
    Tag((u64::from(home) << 48) | (nth * 4096))
}

fn lock(home: u16, nth: u64) -> Tag {
    block(home, nth).under(Contract::Locked)
}

/// Traffic dies down after every packet, and whenever threads leave locks.
pub fn fuzz(input: &[u8]) {
    let mut dice = Dice::new(input);
    let mut rack = FuzzRack::new(&mut dice);
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

impl FuzzRack {
    fn new(dice: &mut Dice) -> FuzzRack {
        let switch = SwitchConfig {
            epoch: EPOCH,
            ways: 2,
            sets: 2,
            shadow: Some(0),
            ..SwitchConfig::default()
        };
        let answering = dice.pick(&[None, Some(gather::answering as MakeAnswering)]);
        FuzzRack {
            nodes: (0..NODES).map(|id| node(id, answering)).collect(),
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
        if Gcp::takes(header.kind) {
            header.tag = header.tag.under(Contract::Locked);
        }
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
        self.flying.push_back(FuzzPacket {
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
        let cell = self.nodes[node].locks.cells.get(&tag);
        let inside =
            cell.and_then(|cell| cell.lock.lock().map(|lock| (lock.inside(), lock.waits())));
        let command = match inside {
            Some(((0, false), None)) => LockCommand::Enter(0, access),
            Some(((_, true), _)) => LockCommand::Leave(Access::Write),
            Some(((1.., _), _)) => LockCommand::Leave(Access::Read),
            _ => return,
        };
        Gcp::command(&mut self.nodes[node], 0, (tag, command));
        self.follow();
    }

    fn tick(&mut self) {
        for node in &mut self.nodes {
            engine::tick(node, true);
        }
        self.follow();
    }

    /// What nodes send is on its way.
    fn follow(&mut self) {
        for (output, records) in self.nodes.iter_mut().flat_map(FuzzNode::sent) {
            for (to, header) in output.copies(host) {
                let records = records.clone();
                self.flying.push_back(FuzzPacket {
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

    fn deliver(&mut self, packet: &FuzzPacket) {
        let of_lock = Gcp::takes(packet.header.kind);
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
            Dest::Agents { .. } | Dest::Home(_) => {}
        }
    }

    fn tell_tags(&mut self, header: &Header) {
        let (records, next) = self.switch.tags(header.offset as usize, 1);
        let mut header = header.answer(Kind::Tags, SWITCH);
        header.tag = Tag(next as u64);
        self.flying.push_back(FuzzPacket {
            to: Dest::Agent(header.requester.node),
            header,
            records,
        });
    }

    /// As a node's agents do.
    fn deliver_to_agent(&mut self, at: u16, packet: &FuzzPacket) {
        if let Some(node) = self.nodes.get_mut(usize::from(at)) {
            let (bytes, records) = (0, packet.records.clone());
            node.take(
                &packet.header,
                Bare {
                    bytes,
                    records,
                    ..Bare::default()
                },
            );
        }
        self.follow();
    }

    fn send_all<'a>(&mut self, outputs: impl IntoIterator<Item = &'a Output>) {
        for (to, header) in outputs.into_iter().flat_map(|output| output.copies(host)) {
            self.flying.push_back(FuzzPacket {
                to,
                header,
                records: Vec::new(),
            });
        }
    }
}

/// A node with copies of all blocks, which knows all locks.
fn node(id: u16, answering: Option<MakeAnswering>) -> FuzzNode {
    let home = HomeConfig {
        node: id,
        epoch: EPOCH,
        block: BLOCK,
        chunks: 1,
        incarnation: 1,
        migration: Some(Migration::default()),
        answering,
        seed: 0,
    };
    let mut node = node::node(home, (id == 0).then_some((2, 2)));
    for (home, nth) in (0..NODES).flat_map(|home| (0..4).map(move |nth| (home, nth))) {
        node.cache.install(block(home, nth), LocalStatus::Shared);
    }
    node.view.switch = Some(0);
    for tag in (0..NODES).flat_map(|home| (0..LOCKS).map(move |nth| lock(home, nth))) {
        node.open_lock(tag, [0; 4], None);
    }
    node
}

/// Bytes of several lengths: every byte string is a sequence of packets.
pub fn seeds() -> Vec<Vec<u8>> {
    crate::switch_program::seeds()
}
