//! Forged and repeated packets of the present epoch: whatever they make roles believe,
//! traffic dies down.
//!
//! A rack without threads of its own accord: nodes take a lock and leave it at random while packets
//! are lost, doubled, late and repeated, and somebody forges others, with any fields. Then nothing
//! happens any more but that packets arrive, threads leave and nodes ask again, and each of these
//! must end after a bounded number of packets: no answer may cause an answer of the same size for
//! ever. What the forged packets do to the lock is not judged: nothing here tells them from true
//! ones.

use super::host::{LockSite, LocksOnly};
use super::mutation::Mutation;
use super::world::TAG;
use crate::site::{Bare, Fx, Site};
use crate::world::Random;
use rackmem_proto::Output;
use rackmem_proto::engine::{LockHost, NodeLock};
use rackmem_proto::gcp::{Access, Lock, Queue, first, version, with_version};
use rackmem_proto::membership::{View, host};
use rackmem_proto::switch::{LockConfig, LockProgram};
use rackmem_proto::wire::{
    Copyset, Dest, Flags, GlobalStatus, Header, Kind, MAX_NODES, NodeId, Reason, Record,
    RequesterId, Seq,
};
use std::collections::VecDeque;

const EPOCH: u32 = 3;
/// Packets of which copies are kept, to be repeated.
const KEPT: usize = 256;
/// Packets after which traffic does not die down.
pub const STORM: u64 = 5_000;

/// The kinds of packets that are about locks.
const KINDS: [Kind; 10] = [
    Kind::Acquire,
    Kind::Release,
    Kind::Place,
    Kind::Grant,
    Kind::Invalidate,
    Kind::Wait,
    Kind::InvAck,
    Kind::Give,
    Kind::Queue,
    Kind::ReleaseAck,
];

/// What a rack came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settling {
    /// Packets until quiet after the forged ones, and after each thread that left: the most.
    pub after: u64,
    /// Packets until quiet after every node has asked again: the most.
    pub again: u64,
    /// The same when they had done so many times.
    pub last: u64,
    /// Packets were forged.
    pub forged: u64,
}

#[derive(Clone)]
struct ForgedPacket {
    to: Dest,
    header: Header,
    records: Vec<Record>,
}

struct ForgedRack {
    nodes: Vec<LockSite>,
    switch: Option<LockProgram>,
    flying: VecDeque<ForgedPacket>,
    seen: VecDeque<ForgedPacket>,
    random: Random,
    mutation: Option<Mutation>,
}

/// Does it to a rack of so many nodes.
pub fn forge(seed: u64, nodes: u16, switch: bool, mutation: Option<Mutation>) -> Settling {
    let mut rack = ForgedRack::new(seed, nodes, switch, mutation);
    let mut settling = Settling::default();
    for _ in 0..rack.random.below(80) {
        rack.live();
    }
    settling.forged = 1 + rack.random.below(12);
    for _ in 0..settling.forged {
        let forged = rack.forged();
        rack.flying.push_back(forged);
        for _ in 0..rack.random.below(4) {
            rack.live();
        }
    }
    settling.after = rack.quiet();
    for node in 0..usize::from(nodes) {
        while rack.leave(node) {
            settling.after = settling.after.max(rack.quiet());
        }
    }
    for _ in 0..16 {
        for node in 0..usize::from(nodes) {
            rack.turn(node, |lock, fx| _ = lock.retry(fx));
        }
        settling.last = rack.quiet();
        settling.again = settling.again.max(settling.last);
        (0..usize::from(nodes)).for_each(|node| while rack.leave(node) {});
    }
    settling
}

impl ForgedRack {
    fn new(seed: u64, nodes: u16, switch: bool, mutation: Option<Mutation>) -> ForgedRack {
        let mut view = View::first(Copyset((1 << nodes) - 1), switch);
        view.epoch = EPOCH;
        let node = |node| {
            let mut site = Site::bare(node, view, 1, LocksOnly);
            // Nothing is put in its place.
            site.locks.bytes = 0;
            site.open_lock(TAG, [0; 4], None);
            site
        };
        ForgedRack {
            nodes: (0..nodes).map(node).collect(),
            switch: switch.then(|| {
                LockProgram::new(LockConfig {
                    epoch: EPOCH,
                    ways: 1,
                    sets: 1,
                })
            }),
            flying: VecDeque::new(),
            seen: VecDeque::new(),
            random: Random::new(seed),
            mutation,
        }
    }

    /// Something that happens to every rack.
    fn live(&mut self) {
        let node = self.random.below(self.nodes.len() as u64) as usize;
        match self.random.below(10) {
            0..3 => self.enter(node),
            3 => _ = self.leave(node),
            4 => self.turn(node, |lock, fx| _ = lock.retry(fx)),
            _ if self.flying.is_empty() => {}
            at => {
                let nth = self.random.below(self.flying.len() as u64) as usize;
                let nth = if at < 8 { 0 } else { nth };
                let packet = self.flying.remove(nth).expect("one of them");
                if self.random.below(20) == 0 {
                    self.flying.push_back(packet.clone());
                }
                if self.random.below(20) > 0 {
                    self.deliver(&packet);
                }
            }
        }
    }

    /// A node's side of the lock.
    fn lock(&self, node: usize) -> &Lock {
        let lock = self.nodes[node].locks.cells[&TAG].lock.lock();
        lock.expect("every node knows it")
    }

    fn enter(&mut self, node: usize) {
        let lock = self.lock(node);
        if lock.waits().is_some() || lock.inside() != (0, false) {
            return;
        }
        let access = match self.random.below(2) {
            0 => Access::Read,
            _ => Access::Write,
        };
        self.turn(node, |lock, fx| lock.enter(0, access, fx));
    }

    fn leave(&mut self, node: usize) -> bool {
        let access = match self.lock(node).inside() {
            (_, true) => Access::Write,
            (0, false) => return false,
            _ => Access::Read,
        };
        self.turn(node, |lock, fx| lock.leave(access, fx));
        true
    }

    /// A packet that was never sent, or was sent before, perhaps with another field.
    fn forged(&mut self) -> ForgedPacket {
        let count = self.seen.len() as u64;
        let mut packet = match count > 0 && self.random.below(3) > 0 {
            true => self.seen[self.random.below(count) as usize].clone(),
            false => {
                let kind = KINDS[self.random.below(KINDS.len() as u64) as usize];
                let requester = RequesterId { node: 0, slot: 0 };
                let header = Header::request(kind, EPOCH, TAG, requester, Seq(0));
                let header = with_version(header, first(EPOCH));
                ForgedPacket {
                    to: Dest::Agent(0),
                    header,
                    records: Vec::new(),
                }
            }
        };
        for _ in 0..self.random.below(4) {
            self.change(&mut packet);
        }
        packet
    }

    fn change(&mut self, packet: &mut ForgedPacket) {
        let some_node = self.some_node();
        let header = &mut packet.header;
        match self.random.below(10) {
            0 => packet.to = Dest::Agent(some_node),
            1 => packet.to = Dest::Switch,
            2 => header.requester.node = some_node,
            3 => header.sender = some_node,
            4 => header.copyset = Copyset(self.random.below(1 << 32) as u32),
            5 => header.status = GlobalStatus::from_byte(self.random.below(3) as u8).expect("one"),
            6 => header.reason = [Reason::None, Reason::Moved][self.random.below(2) as usize],
            7 => {
                header.flags = [Flags::default(), Flags::PROVIDER][self.random.below(2) as usize];
            }
            8 => {
                let near = version(header)
                    .wrapping_add(self.random.below(9))
                    .wrapping_sub(4);
                let far = first(EPOCH) + self.random.below(1 << 40);
                *header = with_version(*header, [near, near, far][self.random.below(3) as usize]);
                header.offset =
                    [header.offset, version(header) as u32][self.random.below(2) as usize];
            }
            _ => {
                let mut queue = Queue::default();
                for _ in 0..self.random.below(4) {
                    queue.add(rackmem_proto::gcp::Waiter {
                        version: first(EPOCH) + self.random.below(40),
                        node: self.some_node(),
                        access: [Access::Read, Access::Write][self.random.below(2) as usize],
                    });
                }
                packet.records = queue.records().collect();
            }
        }
    }

    /// Mostly a node of the rack, sometimes one that is not.
    fn some_node(&mut self) -> NodeId {
        let nodes = match self.random.below(8) {
            0 => MAX_NODES as u64,
            _ => self.nodes.len() as u64,
        };
        self.random.below(nodes) as NodeId
    }

    /// Lets packets arrive until there are none. Says how many there were.
    fn quiet(&mut self) -> u64 {
        let mut delivered = 0;
        while let Some(packet) = self.flying.pop_front() {
            self.deliver(&packet);
            delivered += 1;
            if delivered >= STORM {
                self.flying.clear();
            }
        }
        delivered
    }

    fn deliver(&mut self, packet: &ForgedPacket) {
        let mut header = packet.header;
        match (packet.to, &mut self.switch) {
            (Dest::Switch, Some(switch)) => {
                let outputs = switch.handle(&header);
                outputs.iter().for_each(|output| self.send(output, &[]));
            }
            (Dest::Agent(node), _) if usize::from(node) < self.nodes.len() => {
                let node = usize::from(node);
                if self.mutation == Some(Mutation::BelieveHeard) && header.kind == Kind::ReleaseAck
                {
                    // What the directory has is not believed over what was heard.
                    let heard = self.lock(node).releasing().unwrap_or(0);
                    header = with_version(header, version(&header).max(heard));
                }
                let records = packet.records.clone();
                let body = Bare {
                    records,
                    ..Bare::default()
                };
                self.nodes[node].take(&header, body);
                self.follow(node);
            }
            _ => {}
        }
    }

    /// A turn at a node's lock.
    fn turn(&mut self, node: usize, act: impl FnOnce(&mut NodeLock<u16>, &mut Fx<()>)) {
        self.nodes[node].lock(TAG, act);
        self.follow(node);
    }

    /// Sends what a node wants sent.
    fn follow(&mut self, node: usize) {
        let sent: Vec<_> = self.nodes[node].sent().collect();
        sent.iter()
            .for_each(|(output, records)| self.send(output, records));
    }

    fn send(&mut self, output: &Output, records: &[Record]) {
        let hosted = |(to, header): (Dest, Header)| Some((to.hosted(host)?, header));
        for (to, header) in output.copies(host).filter_map(hosted) {
            let packet = ForgedPacket {
                to,
                header,
                records: records.to_vec(),
            };
            if self.seen.len() == KEPT {
                self.seen.pop_front();
            }
            self.seen.push_back(packet.clone());
            self.flying.push_back(packet);
        }
    }
}
