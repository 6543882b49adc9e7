//! A run: everything is placed, threads warm up, are measured, and end what they have begun.

use super::EPOCH;
use super::draw::Chances;
use super::locks::Follows;
use super::memory::{self, Words};
use super::node::Node;
use super::outcome::Outcome;
use super::params::{Platform, Scheme, Workload};
use super::thread::Thread;
use crate::model::agenda::Occurrence;
use crate::model::fabric::Fabric;
use crate::world::Random;
use rackmem_baselines::locks::{Access, Shape};
use rackmem_proto::Dest;
use rackmem_proto::switch::{LockConfig, LockProgram, SwitchConfig, SwitchProgram};
use rackmem_proto::wire::{Kind, RequesterId};

/// The switch's table of locks, as large as the library's.
const LOCKS: LockConfig = LockConfig {
    epoch: EPOCH,
    ways: 4,
    sets: 4096,
};

/// One point of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Experiment {
    /// Which locks.
    pub scheme: Scheme,
    /// On what.
    pub platform: Platform,
    /// Used how.
    pub workload: Workload,
    /// Acquisitions of the whole rack before the measurement.
    pub warm_up: u64,
    /// Acquisitions that are measured.
    pub measured: u64,
    /// Decides the run.
    pub seed: u64,
}

impl Experiment {
    /// Long enough for figures to settle.
    pub fn new(scheme: Scheme, platform: Platform, workload: Workload, seed: u64) -> Self {
        let each = if workload.locks > 1 { 50_000 } else { 10_000 };
        Experiment {
            scheme,
            platform,
            workload,
            warm_up: each / 2,
            measured: each,
            seed,
        }
    }

    /// Blocks that the words of each lock need.
    pub(super) fn blocks_each(&self) -> u32 {
        let Workload { nodes, threads, .. } = self.workload;
        let shape = Shape::new(nodes, threads);
        let blocks = |shape| Some(self.scheme.compared()?.blocks(shape));
        shape.and_then(blocks).map_or(0, u32::from)
    }

    /// Blocks of coherent memory: the data of each lock, and its words.
    fn blocks(&self) -> u32 {
        self.workload.locks * (1 + self.blocks_each())
    }
}

/// Runs one experiment. The same experiment gives the same outcome.
pub fn simulate(experiment: &Experiment) -> Outcome {
    Rack::new(experiment).run()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Measuring,
    Ending,
}

struct Rack {
    experiment: Experiment,
    fabric: Fabric,
    switch: SwitchProgram,
    lock_switch: LockProgram,
    nodes: Vec<Node>,
    threads: Vec<Thread>,
    words: Words,
    phase: Phase,
    began: u64,
    done: u64,
    each: Vec<u64>,
    /// Readers and writers inside each lock.
    inside: Vec<(i32, i32)>,
    outcome: Outcome,
}

impl Rack {
    fn new(experiment: &Experiment) -> Self {
        let workload = experiment.workload;
        let mut random = Random::new(experiment.seed);
        let chances = Chances::new(&workload);
        let blocks = experiment.blocks();
        let ids = (0..workload.nodes)
            .flat_map(|node| (0..workload.threads).map(move |slot| RequesterId { node, slot }));
        let threads = ids.map(|id| Thread::new(id, experiment, chances.clone(), random.fork()));
        let mut rack = Rack {
            experiment: *experiment,
            fabric: Fabric::new(workload.nodes + 1, experiment.platform.network),
            switch: SwitchProgram::new(SwitchConfig {
                epoch: EPOCH,
                ..SwitchConfig::default()
            }),
            lock_switch: LockProgram::new(LOCKS),
            threads: threads.collect(),
            nodes: (0..=workload.memory())
                .map(|id| Node::new(id, experiment, blocks))
                .collect(),
            words: Words::new(blocks),
            phase: Phase::WarmUp,
            began: 0,
            done: 0,
            each: vec![0; workload.nodes.into()],
            inside: vec![(0, 0); workload.locks as usize],
            outcome: Outcome::default(),
        };
        if experiment.platform.switch {
            rack.place(blocks);
        }
        rack
    }

    /// Before the run: the switch takes over what it has room for.
    fn place(&mut self, blocks: u32) {
        let memory = self.experiment.workload.memory();
        let node = &mut self.nodes[usize::from(memory)];
        node.locks.place(|ask| self.lock_switch.handle(ask));
        let Some(home) = &mut node.home else {
            return;
        };
        let moves = self.experiment.platform.blocks_in_switch();
        for block in (0..blocks).filter(|_| moves) {
            if let Some(ask) = home.agent.want(memory::tag(memory, block)) {
                for answer in self.switch.handle(&ask.header).iter() {
                    let _ = home.agent.handle(&answer.header, 0);
                }
            }
        }
    }

    fn run(mut self) -> Outcome {
        for thread in &mut self.threads {
            thread.schedule(0, &mut self.fabric);
        }
        while let Some(what) = self.fabric.agenda.next() {
            match what {
                Occurrence::AtSwitch(packet) => self.at_switch(packet),
                Occurrence::Arrival(packet) => self.arrival(packet),
                Occurrence::Served { node, server } => self.served(node, server),
                Occurrence::Step(thread) => self.step(thread),
                Occurrence::Period => {}
            }
        }
        self.conclude()
    }

    fn at_switch(&mut self, id: u32) {
        if self.fabric.packet(id).to != Dest::Switch {
            return self.fabric.forward(id);
        }
        let header = self.fabric.take(id).header;
        let outputs = match header.kind {
            Kind::Acquire | Kind::Release => self.lock_switch.handle(&header),
            _ => self.switch.handle(&header),
        };
        for output in outputs.iter() {
            self.fabric.send_from_switch(output);
        }
    }

    fn arrival(&mut self, id: u32) {
        match self.fabric.packet(id).to {
            Dest::Requester(requester) => {
                let packet = self.fabric.take(id);
                let thread = requester.node * self.experiment.workload.threads + requester.slot;
                self.threads[usize::from(thread)].receive(&packet, &mut self.fabric);
            }
            Dest::Agent(node) => self.nodes[usize::from(node)].arrive(id, &mut self.fabric),
            Dest::Switch | Dest::Agents { .. } | Dest::Home(_) => {}
        }
    }

    fn served(&mut self, node: u16, server: u16) {
        let threads = usize::from(self.experiment.workload.threads);
        let first = usize::from(node) * threads;
        let own = first.min(self.threads.len())..(first + threads).min(self.threads.len());
        let at = &mut self.nodes[usize::from(node)];
        let follows = at.served(server, &mut self.threads[own], &mut self.fabric);
        self.follow(node, self.fabric.now(), follows);
    }

    /// Does what a blade's locks have decided.
    fn follow(&mut self, node: u16, from: u64, follows: Vec<Follows>) {
        let mut sent = 0;
        for follow in follows {
            match follow {
                Follows::Send(send) => {
                    sent += 1;
                    self.nodes[usize::from(node)].send(send, from, sent, &mut self.fabric);
                }
                Follows::Inside(inside) => {
                    let thread = &mut self.threads[usize::from(inside.thread)];
                    thread.let_in(&inside, &mut self.fabric);
                    let lock = thread.lock;
                    if self.experiment.scheme == Scheme::Evicted {
                        self.take_back(lock);
                    }
                }
            }
        }
    }

    fn take_back(&mut self, lock: u32) {
        let memory = self.experiment.workload.memory();
        let mut follows = Vec::new();
        let node = &mut self.nodes[usize::from(memory)];
        node.locks.take_back(lock, &mut follows);
        self.follow(memory, self.fabric.now(), follows);
    }

    fn step(&mut self, index: u16) {
        let thread = &mut self.threads[usize::from(index)];
        let node = thread.node();
        let at = &mut self.nodes[usize::from(node)];
        let before = thread.inside_as();
        let (from, follows) = thread.step(at, &mut self.words, &mut self.fabric);
        let after = thread.inside_as();
        let ended = thread.ended.take();
        let lock = thread.lock as usize;
        if before != after {
            self.moves(lock, before, after);
        }
        self.follow(node, from, follows);
        if let Some(cycle) = ended {
            if self.phase == Phase::Measuring {
                self.outcome.add(&cycle);
                self.each[usize::from(node)] += 1;
            }
            self.count();
        }
    }

    /// A thread has come in or gone out: a writer is alone.
    fn moves(&mut self, lock: usize, before: Option<Access>, after: Option<Access>) {
        let (readers, writers) = &mut self.inside[lock];
        let mut change = |access: Option<Access>, by: i32| match access {
            Some(Access::Read) => *readers += by,
            Some(Access::Write) => *writers += by,
            None => {}
        };
        change(before, -1);
        change(after, 1);
        if *writers > 1 || (*writers == 1 && *readers > 0) {
            self.outcome.overlaps += 1;
        }
    }

    fn count(&mut self) {
        self.done += 1;
        let Experiment {
            warm_up, measured, ..
        } = self.experiment;
        match self.phase {
            Phase::WarmUp if self.done >= warm_up => {
                self.phase = Phase::Measuring;
                self.began = self.fabric.now();
            }
            Phase::Measuring if self.outcome.acquisitions >= measured => {
                self.phase = Phase::Ending;
                self.outcome.nanoseconds = self.fabric.now() - self.began;
                (self.threads.iter_mut()).for_each(|thread| thread.stops = true);
            }
            _ => {}
        }
    }

    fn conclude(self) -> Outcome {
        let mut outcome = self.outcome;
        let unfinished = self.threads.iter().filter(|thread| thread.unfinished());
        outcome.unfinished = unfinished.count() as u64;
        outcome.failures = self.threads.iter().map(|thread| thread.failures).sum();
        for node in &self.nodes[..usize::from(self.experiment.workload.nodes)] {
            let counters = node.locks.counters();
            outcome.requests += counters.requests;
            outcome.granted += counters.granted;
            outcome.denied += counters.denied;
        }
        outcome.latencies.sort_unstable();
        let least = self.each.iter().min().copied().unwrap_or(0);
        let most = self.each.iter().max().copied().unwrap_or(0);
        outcome.fairness = least as f64 / most.max(1) as f64;
        outcome.in_flight = self.fabric.in_flight();
        outcome.packets = self.fabric.traffic.received;
        outcome.occurrences = self.fabric.agenda.entered();
        outcome.digest = Random::new(outcome.occurrences ^ self.fabric.now().rotate_left(32))
            .draw()
            ^ outcome.nanoseconds
            ^ outcome.packets.rotate_left(20);
        outcome
    }
}
