//! Many locks behind short queues: a switch starts anew in a rack that knows more locks than any
//! queue holds packets.
//!
//! Members are the shipped roles. Their time is what handling and sending a packet costs,
//! and a packet that finds its receiver's queue full is lost, as in a socket. Nothing else goes
//! wrong. What must come true: threads that want locks are served in a time that depends on how
//! many they want, not on how many there are.

use crate::world::Random;
use rackmem_proto::gcp::{
    Access, Blade, BladeConfig, Body, Event, LockDirectory, LockPlace, Queue, Regions, Report,
    Steps,
};
use rackmem_proto::membership::host;
use rackmem_proto::switch::{LockConfig, LockProgram};
use rackmem_proto::wire::{Copyset, Dest, Header, NodeId, Record, Tag};
use rackmem_proto::{Output, Outputs};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// From the end of one tick to the next, in units of work.
const TICK: u64 = 200;
/// Packets that a member handles between two ticks at least, if so many wait.
const SHARE: u32 = 64;
/// The first pause before a node asks again, and the longest.
const PAUSES: [u64; 2] = [100, 2_000];
/// Locks that one tick looks at.
const A_TICK: usize = 512;
/// What a member without work waits for some.
const IDLE: u64 = 4;

/// A rack, and what its threads want when the switch is new.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Nodes.
    pub nodes: u16,
    /// Locks of each.
    pub locks: u64,
    /// Packets that wait for one member at most.
    pub queue: usize,
    /// Threads of each node.
    pub threads: usize,
    /// Locks that each thread takes, one after the other.
    pub acquisitions: u32,
    /// Units of work of a member after which the rack is stuck.
    pub patience: u64,
    /// Decides who takes what.
    pub seed: u64,
    /// A defect: homes place all of their locks when an epoch begins,
    /// and ask for each until it is answered.
    pub place_all: bool,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CrowdOutcome {
    /// Acquisitions that were not served.
    pub missing: u64,
    /// Units of work of the busiest member.
    pub time: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets that found a queue full.
    pub lost: u64,
    /// The most packets that waited for one member.
    pub deepest: usize,
    /// Locks that homes have placed at the switch.
    pub placed: u64,
}

struct LockPacket {
    header: Header,
    records: Vec<Record>,
}

#[derive(Default)]
struct Member {
    clock: u64,
    ticked: u64,
    handled: u32,
    queue: VecDeque<LockPacket>,
}

struct LockNode {
    blade: Blade,
    home: LockDirectory,
    /// Locks that may have to be asked for again: when, and the pause after that.
    busy: VecDeque<(Tag, u64, u64)>,
    kept: BTreeSet<Tag>,
    /// Threads that wait.
    waiting: BTreeSet<Tag>,
    /// Acquisitions that have not begun.
    left: u32,
    random: Random,
}

struct World {
    crowd: Crowd,
    members: Vec<Member>,
    nodes: Vec<LockNode>,
    switch: LockProgram,
    outcome: CrowdOutcome,
    served: u64,
}

/// The epoch in which the switch is new.
const EPOCH: u32 = 2;

fn tag(home: u16, nth: u64) -> Tag {
    Tag(u64::from(home) << 48 | nth << 6)
}

/// Runs it.
pub fn crowd(crowd: &Crowd) -> CrowdOutcome {
    let mut world = World::new(crowd);
    world.begin();
    let wanted = u64::from(crowd.nodes) * crowd.threads as u64 * u64::from(crowd.acquisitions);
    while world.served < wanted {
        let times = world.members.iter().map(|member| member.clock);
        let (at, now) = times
            .enumerate()
            .min_by_key(|row| row.1)
            .unwrap_or_default();
        if now > crowd.patience {
            break;
        }
        world.step(at);
    }
    let placed = |node: &LockNode| {
        let places = node.home.tags().filter_map(|tag| node.home.entry(tag));
        places
            .filter(|(_, place)| *place == LockPlace::Switch)
            .count() as u64
    };
    CrowdOutcome {
        missing: wanted - world.served,
        time: world.members.iter().map(|m| m.clock).max().unwrap_or(0),
        placed: world.nodes.iter().map(placed).sum(),
        ..world.outcome
    }
}

impl World {
    fn new(crowd: &Crowd) -> World {
        let node = |id: u16| {
            let mut blade = Blade::new(BladeConfig {
                node: id,
                epoch: EPOCH - 1,
                switch: true,
                cohort: 1,
                locks: usize::MAX,
            });
            let mut home = LockDirectory::new(id, EPOCH - 1);
            for (owner, nth) in (0..crowd.nodes).flat_map(|o| (0..crowd.locks).map(move |n| (o, n)))
            {
                let tag = tag(owner, nth);
                if owner == id {
                    assert!(blade.create(tag, Regions::default()) && home.create(tag));
                } else {
                    assert!(blade.open(tag, Regions::default()));
                }
            }
            LockNode {
                blade,
                home,
                busy: VecDeque::new(),
                kept: BTreeSet::new(),
                waiting: BTreeSet::new(),
                left: crowd.threads as u32 * crowd.acquisitions,
                random: Random::new(crowd.seed ^ u64::from(id) << 32),
            }
        };
        World {
            crowd: *crowd,
            members: (0..=crowd.nodes).map(|_| Member::default()).collect(),
            nodes: (0..crowd.nodes).map(node).collect(),
            switch: LockProgram::new(LockConfig {
                epoch: EPOCH,
                ..LockConfig::default()
            }),
            outcome: CrowdOutcome::default(),
            served: 0,
        }
    }

    /// The epoch begins: nodes have told homes what they have.
    fn begin(&mut self) {
        let live = (0..self.crowd.nodes).fold(Copyset::EMPTY, Copyset::with);
        let mut told: BTreeMap<Tag, Vec<(NodeId, Report)>> = BTreeMap::new();
        for (id, node) in (0u16..).zip(&self.nodes) {
            for (tag, report) in node.blade.reports() {
                told.entry(tag).or_default().push((id, report));
            }
        }
        let tell = |tag: Tag, each: &mut dyn FnMut(NodeId, Report)| {
            let all = told.get(&tag).into_iter().flatten();
            all.for_each(|(node, report)| each(*node, *report));
        };
        for at in 0..self.nodes.len() {
            let node = &mut self.nodes[at];
            node.home.enter_epoch(EPOCH, live, 0, tell, |_| None);
            node.blade.enter_epoch(EPOCH, live, true);
            let all = self.crowd.place_all;
            let tags: Vec<Tag> = node.home.tags().filter(|_| all).collect();
            for tag in tags {
                self.place(at, tag);
                self.look_after(at, tag);
            }
        }
    }

    fn place(&mut self, at: usize, tag: Tag) {
        let mut outputs = Outputs::default();
        self.nodes[at].home.place(tag, &mut outputs);
        self.send_all(at, outputs.iter());
    }

    /// A member does the next thing.
    fn step(&mut self, at: usize) {
        let member = &mut self.members[at];
        let rested = member.clock - member.ticked >= TICK;
        if rested && (member.queue.is_empty() || member.handled >= SHARE) {
            self.tick(at);
            let member = &mut self.members[at];
            member.clock += 1;
            (member.ticked, member.handled) = (member.clock, 0);
            return;
        }
        let packet = member.queue.pop_front();
        member.handled += 1;
        member.clock += if packet.is_some() { 1 } else { IDLE };
        if let Some(packet) = packet {
            self.handle(at, &packet);
        }
        if at < self.nodes.len() {
            self.want(at);
        }
    }

    fn handle(&mut self, at: usize, packet: &LockPacket) {
        let header = &packet.header;
        if at == self.nodes.len() {
            let outputs = self.switch.handle(header);
            return self.send_all(at, outputs.iter());
        }
        if header.kind.asks_directory() {
            let outputs = match self.crowd.place_all {
                true => self.nodes[at].home.handle(header),
                false => self.nodes[at].home.handle_or_place(header),
            };
            self.send_all(at, outputs.iter());
        } else {
            let mut steps = Steps::new();
            let blade = &mut self.nodes[at].blade;
            blade.handle(header, 0, &packet.records, &mut steps);
            self.run(at, header.tag, steps);
        }
        self.look_after(at, header.tag);
    }

    /// A thread of a node that does not wait takes another lock.
    fn want(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.left > 0 && node.waiting.len() < self.crowd.threads {
            let home = node.random.below(self.crowd.nodes.into()) as u16;
            let tag = tag(home, node.random.below(self.crowd.locks));
            if !node.waiting.insert(tag) {
                return;
            }
            node.left -= 1;
            let mut steps = Steps::new();
            let (entered, known) = node.blade.enter(tag, Access::Write, &mut steps);
            assert!(known);
            self.run(at, tag, steps);
            if entered.is_some() {
                self.leave(at, tag);
            }
            self.look_after(at, tag);
        }
    }

    fn leave(&mut self, at: usize, tag: Tag) {
        self.served += 1;
        let node = &mut self.nodes[at];
        node.waiting.remove(&tag);
        let mut steps = Steps::new();
        let next = node.blade.leave(tag, Access::Write, None, &mut steps);
        assert!(next.is_none());
        self.run(at, tag, steps);
    }

    fn run(&mut self, at: usize, tag: Tag, steps: Steps) {
        for step in steps {
            match step {
                Event::Store | Event::Install | Event::Drop => {}
                Event::Enter(_) => self.leave(at, tag),
                Event::Send(send) => {
                    let records = match &send.body {
                        Body::Queue(queue) => Queue::records(queue).collect(),
                        _ => Vec::new(),
                    };
                    self.send(at, &Output::new(send.to, send.header), &records);
                }
            }
        }
    }

    /// Asks again for what has not come.
    fn tick(&mut self, at: usize) {
        if at == self.nodes.len() {
            return;
        }
        let all = self.crowd.place_all;
        let turns = self.nodes[at].busy.len();
        for _ in 0..if all { turns } else { turns.min(A_TICK) } {
            let Some((tag, due, pause)) = self.nodes[at].busy.pop_front() else {
                return;
            };
            if !self.is_busy(at, tag) {
                self.nodes[at].kept.remove(&tag);
                continue;
            }
            let now = self.members[at].clock;
            if due > now {
                self.nodes[at].busy.push_back((tag, due, pause));
                continue;
            }
            let pause = (pause * 2).min(PAUSES[1]);
            self.nodes[at].busy.push_back((tag, now + pause, pause));
            if self.placing(at, tag) {
                self.place(at, tag);
            }
            let mut steps = Steps::new();
            self.nodes[at].blade.retry(tag, &mut steps);
            self.run(at, tag, steps);
        }
    }

    fn placing(&self, at: usize, tag: Tag) -> bool {
        let place = self.nodes[at].home.entry(tag);
        place.is_some_and(|(_, place)| place == LockPlace::Placing)
    }

    fn is_busy(&self, at: usize, tag: Tag) -> bool {
        let lock = self.nodes[at].blade.lock(tag);
        self.placing(at, tag) || lock.is_some_and(|lock| lock.unfinished())
    }

    fn look_after(&mut self, at: usize, tag: Tag) {
        if self.is_busy(at, tag) && self.nodes[at].kept.insert(tag) {
            let due = self.members[at].clock + PAUSES[0];
            self.nodes[at].busy.push_back((tag, due, PAUSES[0]));
        }
    }

    fn send_all<'a>(&mut self, at: usize, outputs: impl Iterator<Item = &'a Output>) {
        for output in outputs {
            self.send(at, output, &[]);
        }
    }

    fn send(&mut self, at: usize, output: &Output, records: &[Record]) {
        for (to, header) in output.copies(host) {
            let to = match to {
                Dest::Agent(node) => usize::from(node),
                _ => self.nodes.len(),
            };
            self.members[at].clock += 1;
            self.outcome.packets += 1;
            let queue = &mut self.members[to].queue;
            if queue.len() >= self.crowd.queue {
                self.outcome.lost += 1;
                continue;
            }
            let records = records.to_vec();
            queue.push_back(LockPacket { header, records });
            self.outcome.deepest = self.outcome.deepest.max(queue.len());
        }
    }
}
