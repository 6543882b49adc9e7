//! A node: the shipped agents behind queues, served by threads that take time.

use super::agenda::Occurrence;
use super::cache::Cache;
use super::fabric::{Fabric, Packet};
use super::here::Here;
use super::migration;
use super::params::{Agents, Costs, System};
use super::run::Experiment;
use super::thread::Thread;
use super::workload::Workload;
use super::{BLOCK, EPOCH};
use rackmem_proto::engine::{Copies, Home, Migrating, Report, Role, role};
use rackmem_proto::flowcc::{HomeAgent, HomeConfig};
use rackmem_proto::wire::{NodeId, Record};
use rackmem_proto::{CHUNK, Dest, Output};
use std::collections::VecDeque;

/// Which sharer provides data is drawn from this.
const SEED: u32 = 1;

/// What an agent serves.
#[derive(Clone, Debug)]
enum Job {
    /// A packet that has come.
    Packet(u32),
    /// A packet that one of the node's threads wants sent.
    Post(Output),
    /// Records that are to be sent.
    Report(Output, Box<[Record]>),
}

/// A thread that serves messages.
#[derive(Clone, Default)]
struct Server {
    job: Option<Job>,
    free: u64,
    used: u64,
}

/// A node but for its application threads.
pub struct Node {
    id: NodeId,
    workload: Workload,
    costs: Costs,
    /// Its cache.
    pub cache: Cache,
    home: Home,
    copies: Copies<()>,
    migrating: Option<Migrating>,
    servers: Box<[Server]>,
    /// As long at most as there are packets in flight, which the rack's threads bound.
    queues: Box<[VecDeque<Job>]>,
    parked: Vec<(Option<u32>, u16)>,
    /// Packets that its home agent has received and sent.
    pub home_packets: u64,
    /// The longest queue so far.
    pub longest_queue: usize,
}

/// The home agent's thread, where it has one of its own.
const HOME: usize = 0;
/// The cache agent's.
const CACHE: usize = 1;

impl Node {
    /// A node that has handed out all memory that the workload uses, and cached none of it.
    pub fn new(id: NodeId, experiment: &Experiment) -> Self {
        let Experiment {
            system,
            workload,
            costs,
            ..
        } = *experiment;
        let chunks = (u64::from(workload.at_home()) * u64::from(BLOCK)).div_ceil(CHUNK) as u32;
        let mut home = HomeAgent::new(home_config(id, system, &workload, chunks));
        home.grow(chunks);
        let (servers, queues) = match costs.agents {
            Agents::HomeAndCache => (2, 2),
            Agents::Pool(servers) => (servers.max(1), 1),
        };
        Node {
            id,
            workload,
            costs,
            cache: Cache::new(
                workload.cache(),
                workload.private() + workload.shared(),
                costs.fully_associative,
            ),
            home: Home::new(home),
            // The model's network loses nothing.
            copies: Copies::new(false),
            migrating: (system == System::Switch).then(|| migration::migrating(id, &workload)),
            servers: vec![Server::default(); servers.into()].into(),
            queues: vec![VecDeque::new(); queues].into(),
            parked: Vec::new(),
            home_packets: 0,
            longest_queue: 0,
        }
    }

    /// Time that each of its agents has spent.
    pub fn used(&self) -> impl Iterator<Item = u64> {
        self.servers.iter().map(|server| server.used)
    }

    /// Forgets what was counted.
    pub fn reset(&mut self) {
        self.home_packets = 0;
        self.longest_queue = 0;
        self.servers.iter_mut().for_each(|server| server.used = 0);
    }

    /// A thread waits until the event on a block has ended, or any.
    pub fn park(&mut self, thread: u16, block: Option<u32>) {
        self.parked.push((block, thread));
    }

    /// The event on a block in an entry is over; whoever waited for that looks again.
    pub fn release(&mut self, at: u32, block: u32, fabric: &mut Fabric) {
        self.cache.release(at, block);
        let now = fabric.now();
        self.parked.retain(|&(waits_for, thread)| {
            let wakes = waits_for.is_none_or(|one| one == block);
            if wakes {
                fabric.agenda.enter(now, Occurrence::Step(thread));
            }
            !wakes
        });
    }

    /// A packet has come that an agent serves.
    pub fn arrive(&mut self, packet: u32, fabric: &mut Fabric) {
        self.enqueue(Job::Packet(packet), fabric);
    }

    /// A thread hands over a packet for an agent to send.
    pub fn post(&mut self, output: Output, fabric: &mut Fabric) {
        self.enqueue(Job::Post(output), fabric);
    }

    /// A period of the migration ends.
    pub fn end_period(&mut self, fabric: &mut Fabric) {
        let moves = self.home.agent.end_period();
        self.home_packets += moves.len() as u64;
        moves
            .into_iter()
            .for_each(|output| self.post(output, fabric));
        let Some(migrating) = &mut self.migrating else {
            return;
        };
        let (outputs, report) = migrating.end_period(EPOCH);
        for output in outputs {
            self.post(output, fabric);
        }
        if let Some(Report { output, records }) = report {
            self.enqueue(Job::Report(output, records.into()), fabric);
        }
    }

    fn enqueue(&mut self, job: Job, fabric: &mut Fabric) {
        let queue = match (self.costs.agents, &job) {
            (Agents::HomeAndCache, Job::Packet(id)) if self.for_cache(fabric.packet(*id)) => CACHE,
            (Agents::HomeAndCache, Job::Report(..)) => CACHE,
            _ => HOME,
        };
        let idle = self
            .serving(queue)
            .find(|&at| self.servers[at].job.is_none());
        match idle {
            Some(server) => self.start(server, job, fabric),
            None => {
                self.queues[queue].push_back(job);
                self.longest_queue = self.longest_queue.max(self.queues[queue].len());
            }
        }
    }

    /// The servers of a queue.
    fn serving(&self, queue: usize) -> std::ops::Range<usize> {
        match self.costs.agents {
            Agents::HomeAndCache => queue..queue + 1,
            Agents::Pool(_) => 0..self.servers.len(),
        }
    }

    fn start(&mut self, at: usize, job: Job, fabric: &mut Fabric) {
        let kind = match &job {
            Job::Packet(id) => fabric.packet(*id).header.kind,
            Job::Post(output) | Job::Report(output, _) => output.header.kind,
        };
        let cost = self.costs.message(kind);
        let server = &mut self.servers[at];
        server.job = Some(job);
        server.used += cost;
        let done = server.free.max(fabric.now()) + cost;
        let (node, server) = (self.id, at as u16);
        fabric
            .agenda
            .enter(done, Occurrence::Served { node, server });
    }

    /// An agent has done the work on a message: what it decided leaves, and the next message begins.
    pub fn served(&mut self, server: u16, threads: &mut [Thread], fabric: &mut Fabric) {
        let at = usize::from(server);
        let Some(job) = self.servers[at].job.take() else {
            return;
        };
        let sent = match job {
            Job::Post(output) => self.send(0, &output, fabric),
            Job::Report(output, records) => {
                let ready = fabric.now() + self.costs.send;
                fabric.send_records(self.id, ready, &output, records);
                1
            }
            Job::Packet(id) => self.handle(id, threads, fabric),
        };
        let sending = sent * self.costs.send;
        let server = &mut self.servers[at];
        server.used += sending;
        server.free = fabric.now() + sending;
        let queue = at.min(self.queues.len() - 1);
        if let Some(job) = self.queues[queue].pop_front() {
            self.start(at, job, fabric);
        }
    }

    /// Sends a packet after `before` others; how many that were.
    fn send(&mut self, before: u64, output: &Output, fabric: &mut Fabric) -> u64 {
        let each = self.costs.send;
        let ready = fabric.now() + (before + 1) * each + self.costs.aggregate;
        fabric.send(self.id, ready, each, output)
    }

    fn send_all(&mut self, outputs: &[Output], fabric: &mut Fabric) -> u64 {
        let mut sent = 0;
        for output in outputs {
            sent += self.send(sent, output, fabric);
        }
        sent
    }

    fn handle(&mut self, id: u32, threads: &mut [Thread], fabric: &mut Fabric) -> u64 {
        let records = fabric.records(id);
        let packet = &fabric.take(id);
        let sections = (&mut self.cache, &mut self.home, &mut self.copies);
        let mut here = Here::new(self.id, &self.workload, sections, self.migrating.as_mut());
        let mut passed = matches!(packet.to, Dest::Requester(_));
        if !passed {
            here.take(packet, &records);
            passed = here.passed;
        }
        let (mut outputs, before_home) = (here.sent, here.before_home);
        if passed {
            let local = usize::from(packet.header.requester.slot);
            let thread = threads.get_mut(local);
            let taken = thread.map(|thread| thread.take(packet, 0, fabric));
            outputs.extend(taken.iter().flat_map(|taken| taken.iter()));
        }
        let Some(before) = before_home else {
            return self.send_all(&outputs, fabric);
        };
        let (first, home) = outputs.split_at(before);
        let first = self.send_all(first, fabric);
        let home = self.send_all(home, fabric);
        self.home_packets += 1 + home;
        first + home
    }

    /// Whether the cache agent serves it: what an owner has granted and a cache holds, and what ends a read miss whose
    /// provider wrote the block back.
    fn for_cache(&self, packet: &Packet) -> bool {
        matches!(role(self.id, &packet.header), Role::Cache | Role::Requester)
    }
}

fn home_config(node: NodeId, system: System, workload: &Workload, chunks: u32) -> HomeConfig {
    HomeConfig {
        node,
        epoch: EPOCH,
        block: BLOCK,
        chunks,
        incarnation: 1,
        migration: (system == System::Switch).then(|| migration::policy(workload)),
        answering: match system {
            System::Directory => Some(rackmem_baselines::gather::answering),
            _ => None,
        },
        seed: SEED,
    }
}
