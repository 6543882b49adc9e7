//! Many locks behind short queues: a switch starts anew in a rack that knows more locks than any
//! queue holds packets.
//!
//! Members are the shipped roles. Their time is what handling and sending a packet costs,
//! and a packet that finds its receiver's queue full is lost, as in a socket. Nothing else goes
//! wrong. What must come true: threads that want locks are served in a time that depends on how
//! many they want, not on how many there are.

use super::host::{LockSite, LocksOnly};
use crate::site::{Bare, Deed, Load, LockDeed, Site};
use crate::world::Random;
use rackmem_proto::Output;
use rackmem_proto::engine::{self, Change, Gcp, LockCommand, LockHost, Protocol, Reporter};
use rackmem_proto::flowcc::Members;
use rackmem_proto::gcp::{Access, LockPlace};
use rackmem_proto::membership::{View, host};
use rackmem_proto::switch::{LockConfig, LockProgram};
use rackmem_proto::wire::{Contract, Copyset, Dest, Header, Record, Tag};
use std::collections::{BTreeSet, VecDeque};

/// From the end of one tick to the next, in units of work.
const TICK: u64 = 200;
/// Packets that a member handles between two ticks at least, if so many wait.
const SHARE: u32 = 64;
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

/// A packet that waits for its receiver.
type Waiting = (Header, Vec<Record>);

#[derive(Default)]
struct Member {
    clock: u64,
    ticked: u64,
    handled: u32,
    queue: VecDeque<Waiting>,
}

/// A node, and what its threads want.
struct Wanting {
    site: LockSite,
    /// Locks that threads wait for.
    waiting: BTreeSet<Tag>,
    /// Acquisitions that have not begun.
    left: u32,
    random: Random,
}

struct Hall {
    crowd: Crowd,
    members: Vec<Member>,
    nodes: Vec<Wanting>,
    switch: LockProgram,
    outcome: CrowdOutcome,
    served: u64,
}

/// The epoch in which the switch is new.
const EPOCH: u32 = 2;

fn tag(home: u16, nth: u64) -> Tag {
    Tag(u64::from(home) << 48 | nth << 6).under(Contract::Locked)
}

/// Runs it.
pub fn crowd(crowd: &Crowd) -> CrowdOutcome {
    let mut hall = Hall::new(crowd);
    hall.begin();
    let wanted = u64::from(crowd.nodes) * crowd.threads as u64 * u64::from(crowd.acquisitions);
    while hall.served < wanted {
        let times = hall.members.iter().map(|member| member.clock);
        let (at, now) = times
            .enumerate()
            .min_by_key(|row| row.1)
            .unwrap_or_default();
        if now > crowd.patience {
            break;
        }
        hall.step(at);
    }
    let cells = hall
        .nodes
        .iter()
        .flat_map(|node| node.site.locks.cells.values());
    let entries = cells.filter_map(|cell| cell.lock.entry());
    CrowdOutcome {
        missing: wanted - hall.served,
        time: hall.members.iter().map(|m| m.clock).max().unwrap_or(0),
        placed: entries.filter(|entry| entry.1 == LockPlace::Switch).count() as u64,
        ..hall.outcome
    }
}

impl Hall {
    fn new(crowd: &Crowd) -> Hall {
        let mut view = View::first(Copyset((1 << crowd.nodes) - 1), true);
        view.epoch = EPOCH - 1;
        let node = |id: u16| {
            let mut site = Site::bare(id, view, 1, LocksOnly);
            (site.locks.cohort, site.locks.bytes) = (1, 0);
            let all = (0..crowd.nodes).flat_map(|home| (0..crowd.locks).map(move |n| (home, n)));
            all.for_each(|(home, nth)| site.open_lock(tag(home, nth), [0; 4], None));
            Wanting {
                site,
                waiting: BTreeSet::new(),
                left: crowd.threads as u32 * crowd.acquisitions,
                random: Random::new(crowd.seed ^ u64::from(id) << 32),
            }
        };
        Hall {
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
        let members = Members {
            epoch: EPOCH,
            founders: self.nodes[0].site.view.founders,
            switch: true,
        };
        let mut told = Vec::new();
        for node in &mut self.nodes {
            node.site.view.epoch = EPOCH;
            engine::stop(&mut node.site, members);
            let from = Reporter::Node(node.site.id);
            told.extend(
                Gcp::report(&mut node.site)
                    .into_iter()
                    .map(|record| (from, record)),
            );
        }
        for at in 0..self.nodes.len() {
            let site = &mut self.nodes[at].site;
            let me = site.id;
            let mine = told.iter().filter(|row| row.1.tag.home().is_of(me));
            mine.for_each(|(from, record)| Gcp::hear(site, *from, *record));
            let change = Change {
                members,
                settled: EPOCH - 1,
                gone: Copyset::EMPTY,
                switch_lost: false,
            };
            Gcp::settle(site, &change);
            engine::resume(site);
            if self.crowd.place_all {
                site.each_lock(|lock, fx| {
                    if lock.is_home() {
                        lock.place_at_switch(fx);
                    }
                });
            }
            self.follow(at);
        }
    }

    /// A member does the next thing.
    fn step(&mut self, at: usize) {
        let member = &mut self.members[at];
        let rested = member.clock - member.ticked >= TICK;
        if rested && (member.queue.is_empty() || member.handled >= SHARE) {
            if let Some(node) = self.nodes.get_mut(at) {
                engine::tick(&mut node.site, false);
                self.follow(at);
            }
            let member = &mut self.members[at];
            member.clock += 1;
            (member.ticked, member.handled) = (member.clock, 0);
            return;
        }
        let packet = member.queue.pop_front();
        member.handled += 1;
        member.clock += if packet.is_some() { 1 } else { IDLE };
        match (packet, self.nodes.get_mut(at)) {
            (Some((header, records)), Some(node)) => {
                let body = Bare::of(records);
                node.site.take(&header, body);
                self.follow(at);
            }
            (Some((header, _)), None) => {
                let outputs = self.switch.handle(&header);
                outputs.iter().for_each(|output| self.send(at, output, &[]));
            }
            (None, _) => {}
        }
        if at < self.nodes.len() {
            self.want(at);
        }
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
            self.command(at, tag, LockCommand::Enter(0, Access::Write));
        }
    }

    fn command(&mut self, at: usize, tag: Tag, command: LockCommand<u16>) {
        Gcp::command(&mut self.nodes[at].site, 0, (tag, command));
        self.follow(at);
    }

    /// Does what a node wants done. A thread that is inside leaves at once.
    fn follow(&mut self, at: usize) {
        for deed in std::mem::take(&mut self.nodes[at].site.deeds) {
            match deed {
                Deed::Sent(output, load) => {
                    let records = match load {
                        Load::Records(records) => records,
                        _ => Vec::new(),
                    };
                    self.send(at, &output, &records);
                }
                Deed::Lock(tag, LockDeed::Inside(..)) => {
                    self.served += 1;
                    self.nodes[at].waiting.remove(&tag);
                    self.command(at, tag, LockCommand::Leave(Access::Write));
                }
                _ => {}
            }
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
            queue.push_back((header, records.to_vec()));
            self.outcome.deepest = self.outcome.deepest.max(queue.len());
        }
    }
}
