//! The network of a world: virtual time, and what happens to packets on their way.

use super::block::{Block, GRANULE_BYTES};
use super::config::Config as WorldConfig;
use super::faults::Faults;
use super::keeping::Keep;
use super::membership::Change;
use super::random::Random;
use super::scene::{Fate, Passing, Watcher};
use super::trace::Trace;
use crate::site::Load;
use rackmem_proto::Output;
use rackmem_proto::abd::Config;
use rackmem_proto::flowcc::KeptBlocks;
use rackmem_proto::gcp::SEGMENT;
use rackmem_proto::membership::View;
use rackmem_proto::membership::host;
use rackmem_proto::switch::SWITCH;
use rackmem_proto::wire::{
    Contract, Copyset, Dest, Header, HomeId, Kind, MAX_NODES, NodeId, Record, RequesterId, Tag,
};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// The shortest way of a packet, in nanoseconds.
const LATENCY: u64 = 1_000;
/// What is added to it at random, at most: neighbours may overtake each other on any network.
const JITTER: u64 = 1_000;

/// A packet on its way.
#[derive(Clone)]
pub struct WorldPacket {
    /// To whom.
    pub to: Dest,
    /// What.
    pub header: Header,
    /// Words of a block, or nothing.
    pub body: Rc<[u64]>,
    number: u64,
}

/// Something that will happen.
pub enum Occurrence {
    /// A packet arrives.
    Arrival(WorldPacket),
    /// A thread has waited long enough.
    Wake(usize),
    /// A node's agents, or the switch, look after what they have not had answered.
    Tick(NodeId),
    /// A node learns who keeps a group's copies.
    Group(NodeId, u16, Box<Config>),
    /// A node learns what the home has that a group keeps.
    Hear(NodeId, u16, KeptBlocks),
    /// A member learns who belongs to the rack.
    Learn(NodeId, Box<View>),
    /// The rack's members change, or something breaks or is mended.
    Change(Change),
    /// A step of a keeper.
    Keep(Keep),
    /// A thread's turn to enter a lock, or to leave it.
    Lock(usize),
}

impl WorldPacket {
    fn passing(&self, fate: Fate, from: NodeId) -> Passing<'_> {
        Passing {
            fate,
            from,
            from_requester: false,
            to: self.to,
            header: &self.header,
            body: &self.body,
        }
    }

    /// Whether it is a list of a rebuild, with blocks and locks in it.
    fn tells_of_both(&self) -> bool {
        let is_lock = |record: Record| record.tag.is_under(Contract::Locked);
        self.header.kind == Kind::Rebuild
            && records(&self.body).any(is_lock)
            && !records(&self.body).all(is_lock)
    }
}

/// The records that words are.
pub fn records(words: &[u64]) -> impl Iterator<Item = Record> {
    words.chunks_exact(2).map(|pair| Record {
        tag: Tag(pair[0]),
        word: pair[1],
    })
}

struct Scheduled {
    at: u64,
    order: u64,
    what: Occurrence,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    /// The earliest is the greatest, because a heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// What the network has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Packets sent.
    pub packets: u64,
    /// Of these, never delivered, by chance.
    pub lost: u64,
    /// Of these, never delivered because their receiver heard nothing for a while.
    pub one_way: u64,
    /// Deliveries that were held back, so that others overtake them.
    pub late: u64,
    /// Of these, delivered twice.
    pub duplicated: u64,
    /// Packets that did not get through to another part of the network.
    pub parted: u64,
    /// Deliveries of a packet that was sent before one its receiver already has.
    pub reordered: u64,
}

/// Time and the network.
pub struct Fabric {
    /// Virtual time in nanoseconds.
    pub now: u64,
    /// What happened.
    pub trace: Trace,
    /// In figures.
    pub traffic: Traffic,
    faults: Faults,
    segment: usize,
    nodes: u16,
    /// Whose packets are sent just now: a node's, or [`SWITCH`].
    pub from: NodeId,
    /// Who serves homes that groups keep, as that node knows.
    pub keeper: Option<NodeId>,
    /// Whether one of the node's requesters sends them.
    pub from_requester: bool,
    /// Nodes that can only talk among themselves.
    pub parted: Copyset,
    /// A node whose packets take so many times longer.
    pub slow: Option<(NodeId, u64)>,
    one_way: Option<NodeId>,
    stretch: u64,
    random: Random,
    queue: BinaryHeap<Scheduled>,
    scheduled: u64,
    in_flight: u64,
    newest: Vec<u64>,
    /// Packets of a rebuild that told of blocks and of locks, and were lost.
    pub mixed_lists_lost: u64,
    /// Blocks that something has happened to since the last check.
    pub touched: Vec<Tag>,
}

/// The member of the rack that a packet goes to.
pub fn member(to: Dest) -> Option<NodeId> {
    match to {
        Dest::Switch => Some(SWITCH),
        Dest::Agent(node) => Some(node),
        Dest::Requester(id) => Some(id.node),
        Dest::Agents { .. } | Dest::Home(_) => None,
    }
}

/// A number for every receiver.
fn port(to: Dest) -> usize {
    match to {
        Dest::Switch | Dest::Agents { .. } | Dest::Home(_) => 0,
        Dest::Agent(node) => 1 + node as usize % MAX_NODES,
        Dest::Requester(id) => 1 + MAX_NODES + id.index(),
    }
}

impl Fabric {
    /// A world's network, and somebody who follows what happens, if anyone does.
    pub fn new(random: Random, config: &WorldConfig, watcher: Option<Watcher>) -> Self {
        Fabric {
            now: 0,
            trace: Trace::new(config.homes(), watcher),
            traffic: Traffic::default(),
            faults: config.faults,
            segment: config.segment,
            nodes: config.nodes,
            from: 0,
            keeper: None,
            from_requester: false,
            parted: Copyset::EMPTY,
            slow: None,
            one_way: None,
            stretch: 0,
            random,
            queue: BinaryHeap::new(),
            scheduled: 0,
            in_flight: 0,
            mixed_lists_lost: 0,
            touched: Vec::new(),
            newest: vec![0; 1 + MAX_NODES + RequesterId::COUNT],
        }
    }

    /// Packets that have not arrived yet.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// From now on the network only takes its time.
    pub fn calm_down(&mut self) {
        self.faults = Faults::NONE;
        self.stretch = self.now;
    }

    /// Sends what a role wants sent, with a block's words in as many segments as they need.
    pub fn send(&mut self, output: &Output, words: &[u64]) {
        for (to, header) in output.copies(self.hosts()) {
            // Blocks of long ranges travel whole, as many as one packet holds.
            if words.is_empty()
                || matches!(header.kind, Kind::FetchAck | Kind::Store | Kind::Operate)
            {
                self.post(to, header, words);
                continue;
            }
            for (i, part) in words.chunks(self.segment).enumerate() {
                let offset = (i * self.segment) as u32 * GRANULE_BYTES;
                self.post(to, Header { offset, ..header }, part);
            }
        }
    }

    /// Lets a thread look again, after so many nanoseconds.
    pub fn wake(&mut self, thread: usize, after: u64) {
        self.schedule(after, Occurrence::Wake(thread));
    }

    /// Sends what a node wants sent.
    pub fn send_load(&mut self, output: &Output, load: &Load<Block>) {
        match load {
            Load::Nothing => self.send(output, &[]),
            Load::Block(words) => self.send(output, words),
            Load::Records(records) => self.send_records(output, records),
            Load::Words(words) => self.send_words(output, words),
        }
    }

    /// Sends what a lock protects, torn in two.
    fn send_words(&mut self, output: &Output, words: &[u64]) {
        for (nth, part) in words.chunks(words.len() / 2).enumerate() {
            for (to, mut header) in output.copies(self.hosts()) {
                header.offset = (nth * part.len()) as u32 * SEGMENT;
                self.post(to, header, part);
            }
        }
    }

    /// Sends a packet whose body is records.
    pub fn send_records(&mut self, output: &Output, records: &[Record]) {
        let words: Vec<u64> = records
            .iter()
            .flat_map(|record| [record.tag.0, record.word])
            .collect();
        self.post(output.to, output.header, &words);
    }

    /// Who serves a home, as the sender knows.
    fn hosts(&self) -> impl Fn(HomeId) -> Option<NodeId> + Copy + use<> {
        let keeper = self.keeper;
        move |home| match home.is_own() {
            true => host(home),
            false => keeper,
        }
    }

    fn post(&mut self, to: Dest, header: Header, body: &[u64]) {
        let Some(to) = to.hosted(self.hosts()) else {
            return;
        };
        self.traffic.packets += 1;
        let packet = WorldPacket {
            to,
            header,
            body: body.into(),
            number: self.traffic.packets,
        };
        if self.parted(to) {
            self.traffic.parted += 1;
            return self.passes(Fate::Lost, &packet);
        }
        if self.one_way(to) {
            self.traffic.one_way += 1;
            return self.passes(Fate::Lost, &packet);
        }
        if self.random.per_mille(self.faults.loss) {
            self.traffic.lost += 1;
            self.mixed_lists_lost += u64::from(packet.tells_of_both());
            return self.passes(Fate::Lost, &packet);
        }
        let twice = self.random.per_mille(self.faults.duplication);
        if twice {
            self.traffic.duplicated += 1;
            let later = self.delay(to) + self.random.below(self.faults.late_by);
            self.schedule(later, Occurrence::Arrival(packet.clone()));
        }
        let fate = if twice { Fate::Doubled } else { Fate::Sent };
        self.passes(fate, &packet);
        let delay = self.delay(to);
        self.schedule(delay, Occurrence::Arrival(packet));
    }

    /// Whether the receiver's node hears nothing just now.
    fn one_way(&mut self, to: Dest) -> bool {
        if self.now >= self.stretch {
            self.stretch = self.now + Faults::STRETCH;
            let one_way = self.random.per_mille(self.faults.one_way);
            let node = self.random.below(u64::from(self.nodes)) as NodeId;
            self.one_way = one_way.then_some(node);
        }
        match to {
            Dest::Agent(node) => self.one_way == Some(node),
            Dest::Requester(id) => self.one_way == Some(id.node),
            Dest::Switch | Dest::Agents { .. } | Dest::Home(_) => false,
        }
    }

    fn parted(&self, to: Dest) -> bool {
        let here = |member: NodeId| member != SWITCH && self.parted.contains(member);
        member(to).is_some_and(|to| here(to) != here(self.from))
    }

    fn delay(&mut self, to: Dest) -> u64 {
        let mut delay = LATENCY + self.random.below(JITTER);
        if let Some((slow, factor)) = self.slow
            && (self.from == slow || member(to) == Some(slow))
        {
            delay *= factor;
        }
        if self.random.per_mille(self.faults.late) {
            self.traffic.late += 1;
            delay += self.random.below(self.faults.late_by);
        }
        delay
    }

    /// Lets something happen `after` so many nanoseconds.
    pub fn schedule(&mut self, after: u64, what: Occurrence) {
        self.scheduled += 1;
        self.in_flight += u64::from(matches!(what, Occurrence::Arrival(_)));
        self.queue.push(Scheduled {
            at: self.now + after,
            order: self.scheduled,
            what,
        });
    }

    /// Moves on to what happens next.
    pub fn next(&mut self) -> Option<Occurrence> {
        let Scheduled { at, what, .. } = self.queue.pop()?;
        self.now = at;
        if let Occurrence::Arrival(packet) = &what {
            self.in_flight -= 1;
            self.touched.push(packet.header.tag);
            let newest = &mut self.newest[port(packet.to)];
            self.traffic.reordered += u64::from(packet.number < *newest);
            *newest = packet.number.max(*newest);
            let passing = packet.passing(Fate::Arrived, packet.header.sender);
            self.trace.packet(at, passing);
        }
        Some(what)
    }

    fn passes(&mut self, fate: Fate, packet: &WorldPacket) {
        let passing = Passing {
            from_requester: self.from_requester,
            ..packet.passing(fate, self.from)
        };
        self.trace.packet(self.now, passing);
    }

    /// Tells whoever follows the run what happened to an operation.
    pub fn tell_operation(&mut self, tag: Option<Tag>, text: impl FnOnce() -> String) {
        self.trace.operation(self.now, tag, text);
    }

    /// Tells whoever follows the run what happened to the rack.
    pub fn tell(&mut self, text: impl FnOnce() -> String) {
        self.trace.rack(self.now, text);
    }

    /// Notes a change in a node's cache.
    pub fn note(&mut self, node: NodeId, tag: Tag, action: &'static str) {
        self.touched.push(tag);
        self.trace.local(self.now, node, tag, action);
    }
}
