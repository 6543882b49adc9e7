//! A run: everything is placed, threads warm up, are measured, and end what they have begun.

use super::agenda::Occurrence;
use super::fabric::{Fabric, body};
use super::layout::{Layout, RECORDS};
use super::node::ModelNode;
use super::outcome::{Outcome, Use};
use super::params::{Agents, Experiment};
use super::program::{Program, Steps};
use super::thread::Thread;
use super::{EPOCH, System};
use crate::site::{Bare, Deed, Load};
use crate::world::Random;
use rackmem_proto::engine::LockHost;
use rackmem_proto::switch::{LockConfig, LockProgram, SWITCH, SwitchProgram};
use rackmem_proto::wire::{Header, Kind, NodeId, RequesterId, Tag};
use rackmem_proto::{Data, Dest, Output};

/// The switch's table of locks, as large as the library's.
const LOCKS: LockConfig = LockConfig {
    epoch: EPOCH,
    ways: 4,
    sets: 4096,
};

/// Runs one experiment. The same experiment gives the same outcome.
pub fn simulate<P: Program>(experiment: &Experiment<P>) -> Outcome<P::Figures> {
    ModelRack::new(experiment).run()
}

/// A rack in which no operation has ended for so long ends no more: its threads are in each other's
/// way for ever, or try for something that never comes. In virtual nanoseconds; no system takes a
/// thousandth of it for an operation.
const STALLED: u64 = 10_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    FirstPass,
    WarmUp,
    Measuring,
    Ending,
}

struct ModelRack<P: Program> {
    experiment: Experiment<P>,
    layout: Layout,
    fabric: Fabric,
    switch: SwitchProgram,
    lock_switch: LockProgram,
    nodes: Vec<ModelNode>,
    threads: Vec<Thread<P::Thread>>,
    shared: <P::Thread as Steps>::Shared,
    phase: Phase,
    began: u64,
    /// When an operation has ended last.
    ended: u64,
    outcome: Outcome<P::Figures>,
}

impl<P: Program> ModelRack<P> {
    fn new(experiment: &Experiment<P>) -> Self {
        let Experiment {
            platform, workload, ..
        } = experiment;
        let layout = P::layout(platform, workload);
        let mut random = Random::new(experiment.seed);
        let ids = (0..workload.nodes)
            .flat_map(|node| (0..workload.threads).map(move |slot| RequesterId { node, slot }));
        let thread = |(index, id)| {
            let program = P::thread(platform, workload, id, random.fork());
            let beside = RequesterId {
                slot: id.slot + workload.threads,
                ..id
            };
            Thread::new((id, beside, index), (*platform, layout), program)
        };
        let threads: Vec<_> = (0..).zip(ids).map(thread).collect();
        let warm = threads.iter().all(|thread| thread.program.is_warm());
        let mut rack = ModelRack {
            experiment: *experiment,
            layout,
            fabric: Fabric::new(layout.nodes, platform.network),
            switch: SwitchProgram::new(layout.switch()),
            lock_switch: LockProgram::new(LOCKS),
            nodes: (0..layout.nodes)
                .map(|id| ModelNode::new(id, platform, &layout))
                .collect(),
            threads,
            shared: P::shared(workload, &layout),
            phase: if warm {
                Phase::WarmUp
            } else {
                Phase::FirstPass
            },
            began: 0,
            ended: 0,
            outcome: Outcome::default(),
        };
        rack.place();
        rack
    }

    /// Before the run: the switch takes over what it has room for, if nothing moves there later.
    fn place(&mut self) {
        let home = &mut self.nodes[usize::from(self.layout.homes.0)];
        let locks = match self.experiment.platform.locks_in_switch {
            true => self.layout.locks.0,
            false => 0,
        };
        for lock in 0..locks {
            let tag = self.layout.lock(lock);
            home.site.lock(tag, |lock, fx| lock.place_at_switch(fx));
            for ask in std::mem::take(&mut home.site.deeds) {
                let Deed::Sent(ask, _) = ask else { continue };
                for answer in self.lock_switch.handle(&ask.header).iter() {
                    home.site.take(&answer.header, Bare::default());
                }
            }
            home.site.deeds.clear();
        }
        let placed = self.experiment.platform.system == System::Switch;
        let blocks = match self.layout.moves {
            None if placed => self.layout.shared,
            _ => 0,
        };
        for block in 0..blocks {
            let tag = self.layout.tag(0, block);
            let agent = home.site.home_of(tag);
            if let Some(ask) = agent.want(tag) {
                for answer in self.switch.handle(&ask.header).iter() {
                    let _ = agent.handle(&answer.header, 0);
                }
            }
        }
    }

    fn run(mut self) -> Outcome<P::Figures> {
        for thread in &mut self.threads {
            thread.cpu.schedule(0, &mut self.fabric);
        }
        if self.layout.moves.is_some() {
            self.fabric.agenda.enter(0, Occurrence::Period);
        }
        while !self.is_stalled()
            && let Some(what) = self.fabric.agenda.next()
        {
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

    /// Whether nothing will come of going on. A first pass has no operations.
    fn is_stalled(&mut self) -> bool {
        let is_late = self.fabric.now().saturating_sub(self.ended) > STALLED;
        if is_late && self.phase == Phase::FirstPass {
            let is_warm = |thread: &Thread<P::Thread>| thread.program.is_warm();
            if !self.threads.iter().all(is_warm) {
                self.ended = self.fabric.now();
                return false;
            }
        }
        is_late
    }

    fn at_switch(&mut self, id: u32) {
        if self.fabric.packet(id).to != Dest::Switch {
            return self.fabric.forward(id);
        }
        let header = self.fabric.take(id).header;
        let outputs = match header.kind {
            Kind::ReadTags => return self.tell_tags(&header),
            Kind::Acquire | Kind::Release => self.lock_switch.handle(&header),
            _ => self.switch.handle(&header),
        };
        for output in outputs.iter() {
            self.fabric
                .send_from_switch(output, &body(output, Load::Nothing, 0));
        }
    }

    /// What the switch's control plane answers to the shadow that reads TAG.
    fn tell_tags(&mut self, header: &Header) {
        let (records, next) = self.switch.tags(header.offset as usize, RECORDS);
        let mut answer = header.answer(Kind::Tags, SWITCH);
        answer.tag = Tag(next as u64);
        let to = Dest::Agent(header.requester.node);
        let output = Output::with(to, answer, Data::Records);
        self.fabric.send_from_switch(&output, &Bare::of(records));
    }

    fn end_period(&mut self) {
        for node in &mut self.nodes {
            node.end_period(&mut self.fabric);
        }
        let period = self.layout.moves.map(|moves| moves.period);
        if let Some(period) = period.filter(|_| self.phase != Phase::Ending) {
            let next = self.fabric.now() + period;
            self.fabric.agenda.enter(next, Occurrence::Period);
        }
    }

    fn arrival(&mut self, id: u32) {
        let (node, thread) = match self.fabric.packet(id).to {
            Dest::Requester(requester) => (requester.node, Some(requester)),
            Dest::Agent(node) => (node, None),
            Dest::Switch | Dest::Agents { .. } | Dest::Home(_) => return,
        };
        let node = &mut self.nodes[usize::from(node)];
        let thread = thread.filter(|_| !self.experiment.platform.through_agents);
        let Some(RequesterId { node: at, slot }) = thread else {
            return node.arrive(id, &mut self.fabric);
        };
        let packet = self.fabric.take(id);
        let threads = self.experiment.workload.threads;
        let thread = at * threads + slot % threads;
        self.threads[usize::from(thread)].receive(&packet, node, &mut self.fabric);
    }

    fn served(&mut self, node: u16, server: u16) {
        let threads = usize::from(self.experiment.workload.threads);
        let all = self.threads.len();
        let first = (usize::from(node) * threads).min(all);
        let own = &mut self.threads[first..(first + threads).min(all)];
        self.nodes[usize::from(node)].served(server, own, &mut self.fabric);
        self.follow(node);
    }

    /// Threads go on that a node's locks have let in.
    fn follow(&mut self, node: NodeId) {
        for inside in std::mem::take(&mut self.nodes[usize::from(node)].inside) {
            let thread = &mut self.threads[usize::from(inside.thread)];
            thread.let_in(&inside, &mut self.fabric);
            if !self.layout.locks_stay {
                let home = self.layout.homes.0;
                self.nodes[usize::from(home)].take_back(inside.lock, &mut self.fabric);
                self.follow(home);
            }
        }
    }

    fn step(&mut self, thread: u16) {
        let thread = &mut self.threads[usize::from(thread)];
        let node = thread.client.engine.id().node;
        let at = &mut self.nodes[usize::from(node)];
        thread.step(&mut (at, &mut self.shared, &mut self.fabric));
        let ended = thread.program.ended();
        self.follow(node);
        if ended > 0 {
            self.ended = self.fabric.now();
            self.count(ended);
        }
    }

    fn count(&mut self, ended: u64) {
        if self.phase != Phase::Ending || P::COUNTS_ENDING {
            self.outcome.operations += ended;
        }
        let warm = || self.threads.iter().all(|thread| thread.program.is_warm());
        match self.phase {
            Phase::FirstPass if warm() => {
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
        for node in &mut self.nodes {
            node.home_packets = 0;
            node.servers.reset();
        }
        for thread in &mut self.threads {
            thread.cpu.used = 0;
            thread.program.reset();
        }
    }

    /// Takes down the figures, and lets no thread begin anything more.
    fn end(&mut self) {
        let each = usize::from(self.experiment.workload.threads).max(1);
        let (of, fairness) = P::figures(self.threads.chunks(each));
        let used = self.used();
        let nodes = self.nodes.iter();
        let outcome = &mut self.outcome;
        outcome.nanoseconds = self.fabric.now() - self.began;
        outcome.packets = self.fabric.traffic.on_links - outcome.packets;
        outcome.home_packets = nodes.clone().map(|node| node.home_packets).sum();
        outcome.longest_queue = nodes.map(|node| node.servers.longest).max().unwrap_or(0);
        outcome.in_switch = self.switch.entries();
        (outcome.of, outcome.fairness, outcome.used) = (of, fairness, used);
        (self.threads.iter_mut()).for_each(|thread| thread.program.stop());
    }

    fn used(&self) -> Use {
        let time = (self.fabric.now() - self.began).max(1) as f64;
        let busiest = |pick: &dyn Fn(&ModelNode) -> u64| {
            self.nodes.iter().map(pick).max().unwrap_or(0) as f64 / time
        };
        let of = |node: &ModelNode, nth| node.servers.used().nth(nth).unwrap_or(0);
        let (home_agent, cache_agent) = match self.experiment.platform.agents {
            Agents::HomeAndCache => (busiest(&|node| of(node, 0)), busiest(&|node| of(node, 1))),
            Agents::Owners(owners) => {
                let owner = |nth: u16| busiest(&|node| of(node, nth.into()));
                ((0..owners).map(owner).fold(0.0, f64::max), 0.0)
            }
            Agents::Pool(_) => {
                let mean = |node: &ModelNode| {
                    let used = node.servers.used();
                    let servers = used.len().max(1) as u64;
                    used.sum::<u64>() / servers
                };
                (busiest(&mean), 0.0)
            }
        };
        let threads: u64 = self.threads.iter().map(|thread| thread.cpu.used).sum();
        Use {
            home_agent,
            cache_agent,
            link: self.fabric.busiest_link() as f64 / time,
            threads: threads as f64 / (time * self.threads.len() as f64),
        }
    }

    fn conclude(self) -> Outcome<P::Figures> {
        let unfinished = self
            .threads
            .iter()
            .filter(|thread| !thread.finished || thread.has_left_something());
        let mut outcome = self.outcome;
        outcome.unfinished = unfinished.count() as u64;
        for thread in &self.threads {
            outcome.failures += thread.failures;
            outcome.overlaps += thread.program.overlaps();
        }
        for node in &self.nodes[..usize::from(self.experiment.workload.nodes)] {
            for cell in node.site.locks.cells.values() {
                let counters = cell.lock.counters();
                outcome.requests += counters.requests;
                outcome.granted += counters.granted;
                outcome.denied += counters.denied;
            }
        }
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
