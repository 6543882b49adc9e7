//! A run: warm-up, measurement, and the end of all that was begun.

use super::agenda::Occurrence;
use super::fabric::Fabric;
use super::migration;
use super::node::Node;
use super::outcome::{Outcome, Use};
use super::params::{Agents, Costs, Network, System};
use super::thread::{Tally, Thread};
use super::workload::{Stream, Workload};
use crate::world::Random;
use rackmem_proto::switch::{SWITCH, SwitchProgram};
use rackmem_proto::wire::{Header, Kind, RequesterId, Tag};
use rackmem_proto::{Data, Dest, Output};

/// One point of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Experiment {
    /// Which system.
    pub system: System,
    /// Doing what.
    pub workload: Workload,
    /// On which network.
    pub network: Network,
    /// At what cost.
    pub costs: Costs,
    /// Operations of the whole rack after the first pass and before the measurement.
    pub warm_up: u64,
    /// Operations that are measured.
    pub measured: u64,
    /// Decides the run.
    pub seed: u64,
}

impl Experiment {
    /// A system under a workload, with its own costs, long enough for figures to settle: blocks that were read
    /// first and are written much later are upgraded once, and that must be over.
    pub fn new(system: System, workload: Workload, seed: u64) -> Self {
        let blocks = u64::from(workload.cache()) * u64::from(workload.nodes);
        let cached = system != System::Delegate;
        Experiment {
            system,
            workload,
            network: Network::default(),
            costs: system.costs(),
            warm_up: if cached { 8 * blocks } else { 0 },
            measured: if cached { 2 * blocks } else { blocks },
            seed,
        }
    }
}

/// Runs one experiment. The same experiment gives the same outcome.
pub fn simulate(experiment: &Experiment) -> Outcome {
    Rack::new(experiment).run()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    FirstPass,
    WarmUp,
    Measuring,
    Ending,
}

struct Rack {
    experiment: Experiment,
    fabric: Fabric,
    switch: SwitchProgram,
    nodes: Vec<Node>,
    threads: Vec<Thread>,
    phase: Phase,
    began: u64,
    outcome: Outcome,
}

impl Rack {
    fn new(experiment: &Experiment) -> Self {
        let Experiment {
            system,
            workload,
            costs,
            ..
        } = *experiment;
        let mut random = Random::new(experiment.seed);
        let ids = (0..workload.nodes)
            .flat_map(|node| (0..workload.threads).map(move |slot| RequesterId { node, slot }));
        let threads = ids.map(|id| {
            let stream = Stream::new(workload, id.node, id.slot, random.fork());
            Thread::new(id, system, costs, stream, workload)
        });
        Rack {
            experiment: *experiment,
            fabric: Fabric::new(workload.nodes, experiment.network),
            switch: SwitchProgram::new(migration::switch(&workload)),
            threads: threads.collect(),
            nodes: (0..workload.nodes)
                .map(|id| Node::new(id, experiment))
                .collect(),
            phase: Phase::FirstPass,
            began: 0,
            outcome: Outcome::default(),
        }
    }

    fn run(mut self) -> Outcome {
        for thread in &mut self.threads {
            thread.schedule(0, &mut self.fabric);
        }
        if self.experiment.system == System::Switch {
            self.fabric.agenda.enter(0, Occurrence::Period);
        }
        while let Some(what) = self.fabric.agenda.next() {
            match what {
                Occurrence::AtSwitch(packet) => self.at_switch(packet),
                Occurrence::Arrival(packet) => self.arrival(packet),
                Occurrence::Served { node, server } => self.served(node, server),
                Occurrence::Step(thread) => self.step(thread),
                Occurrence::Period => self.end_period(),
            }
        }
        self.conclude()
    }

    fn at_switch(&mut self, id: u32) {
        if self.fabric.packet(id).to != Dest::Switch {
            return self.fabric.forward(id);
        }
        let packet = self.fabric.take(id);
        if packet.header.kind == Kind::ReadTags {
            return self.tell_tags(&packet.header);
        }
        for output in self.switch.handle(&packet.header).iter() {
            self.fabric.send_from_switch(output);
        }
    }

    /// What the switch's control plane answers to the shadow that reads TAG.
    fn tell_tags(&mut self, header: &Header) {
        let (records, next) = (self.switch).tags(header.offset as usize, migration::RECORDS);
        let mut answer = header.answer(Kind::Tags, SWITCH);
        answer.tag = Tag(next as u64);
        let to = Dest::Agent(header.requester.node);
        let output = Output::with(to, answer, Data::Records);
        self.fabric
            .send_records_from_switch(&output, records.into());
    }

    fn end_period(&mut self) {
        for node in &mut self.nodes {
            node.end_period(&mut self.fabric);
        }
        if self.phase != Phase::Ending {
            let next = self.fabric.now() + self.experiment.workload.period();
            self.fabric.agenda.enter(next, Occurrence::Period);
        }
    }

    fn arrival(&mut self, id: u32) {
        match self.fabric.packet(id).to {
            Dest::Requester(requester) if !self.experiment.costs.through_agents => {
                let packet = self.fabric.take(id);
                let thread = requester.node * self.experiment.workload.threads + requester.slot;
                self.threads[usize::from(thread)].receive(&packet, &mut self.fabric);
            }
            Dest::Requester(RequesterId { node, .. }) | Dest::Agent(node) => {
                self.nodes[usize::from(node)].arrive(id, &mut self.fabric);
            }
            Dest::Switch | Dest::Agents { .. } | Dest::Home(_) => {}
        }
    }

    fn served(&mut self, node: u16, server: u16) {
        let threads = usize::from(self.experiment.workload.threads);
        let first = usize::from(node) * threads;
        let own = &mut self.threads[first..first + threads];
        self.nodes[usize::from(node)].served(server, own, &mut self.fabric);
    }

    fn step(&mut self, thread: u16) {
        let thread = &mut self.threads[usize::from(thread)];
        let node = usize::from(thread.node());
        let before = thread.tally.operations;
        thread.step(&mut self.nodes[node], &mut self.fabric);
        let done = thread.tally.operations - before;
        if done > 0 {
            self.count(done);
        }
    }

    fn count(&mut self, done: u64) {
        self.outcome.operations += done;
        match self.phase {
            Phase::FirstPass if self.threads.iter().all(|thread| thread.warm) => {
                self.phase = Phase::WarmUp;
                self.outcome.operations = 0;
            }
            Phase::WarmUp if self.outcome.operations >= self.experiment.warm_up => {
                self.phase = Phase::Measuring;
                self.begin();
            }
            Phase::Measuring if self.outcome.operations >= self.experiment.measured => {
                self.phase = Phase::Ending;
                self.end();
            }
            _ => {}
        }
    }

    fn begin(&mut self) {
        self.outcome = Outcome::default();
        self.began = self.fabric.now();
        self.outcome.packets = self.fabric.traffic.on_links;
        self.fabric.reset();
        self.nodes.iter_mut().for_each(Node::reset);
        (self.threads.iter_mut()).for_each(|thread| thread.tally = Tally::default());
    }

    /// Takes down the figures, and lets no thread begin anything more.
    fn end(&mut self) {
        let tallies = || self.threads.iter().map(|thread| thread.tally);
        let sum = |of: fn(&Tally) -> u64| tallies().map(|tally| of(&tally)).sum::<u64>();
        let most = |of: fn(&Tally) -> u64| tallies().map(|tally| of(&tally)).max().unwrap_or(0);
        let fewest = tallies().map(|tally| tally.operations).min().unwrap_or(0);
        let used = self.used(sum(|tally| tally.used));
        let outcome = &mut self.outcome;
        outcome.nanoseconds = self.fabric.now() - self.began;
        outcome.hits = sum(|tally| tally.hits);
        outcome.refused = sum(|tally| tally.refused);
        outcome.packets = self.fabric.traffic.on_links - outcome.packets;
        outcome.home_packets = self.nodes.iter().map(|node| node.home_packets).sum();
        outcome.mean_wait = sum(|tally| tally.waited) as f64 / outcome.operations.max(1) as f64;
        outcome.longest_wait = most(|tally| tally.longest);
        outcome.fairness = fewest as f64 / most(|tally| tally.operations).max(1) as f64;
        outcome.longest_queue = self
            .nodes
            .iter()
            .map(|node| node.longest_queue)
            .max()
            .unwrap_or(0);
        outcome.used = used;
        outcome.in_switch = self.switch.entries();
        self.threads
            .iter_mut()
            .for_each(|thread| thread.stops = true);
    }

    fn used(&self, threads: u64) -> Use {
        let time = (self.fabric.now() - self.began).max(1) as f64;
        let busiest = |pick: &dyn Fn(&Node) -> u64| {
            self.nodes.iter().map(pick).max().unwrap_or(0) as f64 / time
        };
        let separate = self.experiment.costs.agents == Agents::HomeAndCache;
        let (home_agent, cache_agent) = if separate {
            (
                busiest(&|node| node.used().next().unwrap_or(0)),
                busiest(&|node| node.used().nth(1).unwrap_or(0)),
            )
        } else {
            let mean = |node: &Node| node.used().sum::<u64>() / node.used().count().max(1) as u64;
            (busiest(&mean), 0.0)
        };
        Use {
            home_agent,
            cache_agent,
            link: self.fabric.busiest_link() as f64 / time,
            threads: threads as f64 / (time * self.threads.len() as f64),
        }
    }

    fn conclude(self) -> Outcome {
        let unfinished = self.threads.iter().filter(|thread| thread.unfinished());
        let mut outcome = self.outcome;
        outcome.unfinished = unfinished.count() as u64;
        outcome.failures = self.threads.iter().map(|thread| thread.failures).sum();
        outcome.traffic = self.fabric.traffic;
        outcome.in_flight = self.fabric.in_flight();
        outcome.occurrences = self.fabric.agenda.entered();
        outcome.digest = Random::new(outcome.occurrences ^ self.fabric.now().rotate_left(32))
            .draw()
            ^ outcome.nanoseconds
            ^ outcome.traffic.sent.rotate_left(20);
        outcome
    }
}
