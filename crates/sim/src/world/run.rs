//! Putting a world together, and letting it run.

use super::config::{Config, Rack};
use super::fabric::{Fabric, Occurrence, Packet, Traffic};
use super::node::{Node, home_config, tell_tags};
use super::oracle::Oracle;
use super::random::Random;
use super::thread::{Around, Thread, Work};
use super::violation::Violation;
use crate::invariants::liveness;
use rackmem_proto::flowcc::{HomeConfig, Migration, Style};
use rackmem_proto::switch::{SwitchConfig, SwitchProgram};
use rackmem_proto::wire::{Dest, Kind, RequesterId};

/// How often agents look after what they have not had answered, in nanoseconds.
const TICK: u64 = 40_000;
/// Faults last no longer than this, even if they keep threads from working: 100 ms.
const FAULTS_END: u64 = 100_000_000;

/// What a run came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// What threads did.
    pub work: Work,
    /// What the network did.
    pub traffic: Traffic,
    /// What else was seen, so that nothing passes for want of an occasion.
    pub seen: Seen,
    /// Virtual time in nanoseconds.
    pub time: u64,
    /// Hash of everything that happened, in order.
    pub trace: u64,
}

/// Occasions for defects to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Entries that moved to the switch.
    pub migrated: u64,
    /// Entries that the switch had no room for.
    pub collided: u64,
    /// Entries that came back from the switch.
    pub returned: u64,
    /// Entries that the shadow sent away for a hotter one.
    pub displaced: u64,
    /// Requests that found the entry locked.
    pub locked: u64,
    /// Requests that the check table refused.
    pub invalid: u64,
    /// Packets that requesters sent again.
    pub retransmissions: u64,
    /// Answers from retained data.
    pub recalled: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Working,
    Flushing,
}

/// A rack, its network and its threads.
pub struct World {
    pub(super) seed: u64,
    pub(super) config: Config,
    pub(super) fabric: Fabric,
    pub(super) switch: Option<SwitchProgram>,
    pub(super) nodes: Vec<Node>,
    pub(super) threads: Vec<Thread>,
    pub(super) oracle: Oracle,
    phase: Phase,
    calm: Option<u64>,
}

impl World {
    /// Runs a world until all its work is done and checked.
    pub fn run(seed: u64, config: &Config) -> Result<Report, Box<Violation>> {
        let mut world = World::new(seed, config);
        world.start();
        while let Some(what) = world.fabric.next() {
            world.happen(what);
            world.check()?;
            if world.turn_page()? {
                break;
            }
        }
        Ok(world.report())
    }

    fn new(seed: u64, config: &Config) -> Self {
        let mut random = Random::new(seed);
        let draw = random.draw() as u32;
        let switch = match config.rack {
            Rack::Switch { ways, sets } => Some(SwitchProgram::new(SwitchConfig {
                epoch: super::EPOCH,
                ways,
                sets,
                seed: draw,
                shadow: Some(0),
                ..SwitchConfig::default()
            })),
            Rack::HomeOnly | Rack::Gather => None,
        };
        let home = |node| HomeConfig {
            migration: switch.is_some().then_some(Migration {
                top: 4,
                least: 1,
                tracked: 16,
            }),
            style: if config.rack == Rack::Gather {
                Style::Gather
            } else {
                Style::Forward
            },
            ..home_config(node, draw)
        };
        let threads = usize::from(config.nodes) * usize::from(config.threads);
        World {
            seed,
            config: *config,
            nodes: (0..config.nodes)
                .map(|node| Node::new(home(node), config.cache, config.mutation))
                .collect(),
            threads: (0..threads)
                .map(|index| Thread::new(index, config, random.fork()))
                .collect(),
            fabric: Fabric::new(random.fork(), config.faults, config.segment, config.nodes),
            switch,
            oracle: Oracle::new(config.blocks),
            phase: Phase::Working,
            calm: None,
        }
    }

    fn start(&mut self) {
        if let Rack::Switch { ways, sets } = self.config.rack {
            for node in &mut self.nodes {
                node.migrate(0, ways, sets);
            }
        }
        for thread in 0..self.threads.len() {
            self.fabric.schedule(0, Occurrence::Wake(thread));
        }
        for node in 0..self.nodes.len() {
            self.fabric.schedule(TICK, Occurrence::Tick(node));
        }
    }

    fn happen(&mut self, what: Occurrence) {
        match what {
            Occurrence::Wake(thread) => self.with_thread(thread, Thread::advance),
            Occurrence::Tick(node) => {
                self.nodes[node].tick(&mut self.fabric);
                self.fabric.schedule(TICK, Occurrence::Tick(node));
            }
            Occurrence::Arrival(packet) => self.deliver(&packet),
        }
    }

    fn deliver(&mut self, packet: &Packet) {
        match packet.to {
            Dest::Switch => {
                let Some(switch) = &mut self.switch else {
                    return;
                };
                if packet.header.kind == Kind::ReadTags {
                    let (output, records) = tell_tags(switch, &packet.header, 4);
                    return self.fabric.send_records(&output, &records);
                }
                let outputs = switch.handle(&packet.header);
                outputs
                    .iter()
                    .for_each(|output| self.fabric.send(output, &[]));
            }
            // A requester's thread may have gone on: its node's agent takes this for it.
            Dest::Agent(_) if packet.header.kind == Kind::WriteBackAck => {
                self.answer(packet.header.requester, packet);
            }
            Dest::Agent(node) => {
                if let Some(node) = self.nodes.get_mut(usize::from(node)) {
                    node.handle(packet, &mut self.fabric);
                }
            }
            Dest::Requester(id) => self.answer(id, packet),
            Dest::Agents { .. } => {}
        }
    }

    fn answer(&mut self, requester: RequesterId, packet: &Packet) {
        let per_node = usize::from(self.config.threads);
        let thread = usize::from(requester.node) * per_node + usize::from(requester.slot);
        self.with_thread(thread, |thread, around| thread.receive(packet, around));
    }

    fn with_thread(&mut self, thread: usize, act: impl FnOnce(&mut Thread, &mut Around<'_>)) {
        let Some(thread) = self.threads.get_mut(thread) else {
            return;
        };
        let mut around = Around {
            node: &mut self.nodes[usize::from(thread.id.node)],
            fabric: &mut self.fabric,
            oracle: &mut self.oracle,
        };
        act(thread, &mut around);
    }

    /// Moves on from faults to calm, from work to the emptying of caches, from there to the end.
    fn turn_page(&mut self) -> Result<bool, Box<Violation>> {
        let now = self.fabric.now;
        let all = self.threads.len() as u64 * u64::from(self.config.operations);
        let done: u64 = self.threads.iter().map(|t| t.work.operations).sum();
        if self.calm.is_none() && (done * 4 >= all * 3 || now > FAULTS_END) {
            self.fabric.calm_down();
            self.calm = Some(now);
        }
        if liveness::broken(now, self.calm) {
            return Err(self.stuck());
        }
        if !self.threads.iter().all(Thread::idle) || self.moving() {
            return Ok(false);
        }
        match self.phase {
            Phase::Working => {
                self.flush();
                Ok(false)
            }
            Phase::Flushing if self.fabric.in_flight() > 0 => Ok(false),
            Phase::Flushing => self.finish().map(|()| true),
        }
    }

    fn moving(&self) -> bool {
        self.nodes
            .iter()
            .any(|node| node.home.resend().next().is_some())
    }

    fn flush(&mut self) {
        self.phase = Phase::Flushing;
        for index in (0..self.threads.len()).step_by(usize::from(self.config.threads)) {
            self.threads[index].flush();
            self.fabric.schedule(0, Occurrence::Wake(index));
        }
    }

    fn report(&self) -> Report {
        let mut seen = Seen::default();
        for node in &self.nodes {
            let counters = node.home.counters();
            seen.migrated += counters.migrated;
            seen.collided += counters.collided;
            seen.returned += counters.returned;
            seen.displaced += node.shadow().map_or(0, |s| s.counters().displaced);
            seen.locked += counters.locked;
            seen.invalid += counters.invalid;
            seen.recalled += node.recalled;
        }
        if let Some(switch) = &self.switch {
            seen.locked += switch.counters().locked;
            seen.invalid += switch.counters().invalid;
        }
        let mut work = Work::default();
        for thread in &self.threads {
            seen.retransmissions += thread.retransmissions();
            work.add(&thread.work);
        }
        Report {
            work,
            traffic: self.fabric.traffic,
            seen,
            time: self.fabric.now,
            trace: self.fabric.trace.hash(),
        }
    }
}
