//! A thread: it thinks, acquires a lock, accesses its data, releases it.

use super::draw::Chances;
use super::locks::{Follows, Inside};
use super::memory::Words;
use super::node::Node;
use super::outcome::Cycle;
use super::params::{Costs, Workload};
use super::run::Experiment;
use super::{BLOCK, EPOCH, NEVER};
use crate::model::agenda::Occurrence;
use crate::model::fabric::{Fabric, Packet};
use crate::world::Random;
use rackmem_baselines::locks::{Machine, Op, Seat, Shape};
use rackmem_proto::engine::Access;
use rackmem_proto::flowcc::{Requester, RequesterConfig};
use rackmem_proto::gcp::Access as For;
use rackmem_proto::wire::{GlobalStatus, Kind, NodeId, RequesterId};
use rackmem_proto::{Output, Outputs};
use std::collections::BTreeMap;

/// How often a wait doubles at most.
const DOUBLINGS: u32 = 6;

/// An access to a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) block: u32,
    /// An operation of a lock above coherent memory; otherwise the data is meant.
    pub(super) op: Option<Op>,
    pub(super) writes: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// Outside, and done thinking.
    Outside,
    /// Looks at a block that is here, or is not.
    Looking(Goal),
    /// An event on it is under way.
    Fetching(Goal),
    /// An event is over: goes on with what the block had.
    Fetched(Goal, Option<u64>),
    /// Looks at a lock of GCP.
    Entering,
    /// In the kernel, to ask for it.
    Asking,
    /// Told to wait, by GCP or by a lock's manager.
    Waiting,
    /// Has the lock.
    Entered,
    /// Has the data, too.
    Inside,
    /// In the kernel, to hand the lock to another blade.
    HandingOver,
    /// A machine waits a little.
    Pausing,
    /// Nothing more to do.
    Finished,
}

/// A thread. Its lock is above coherent memory if it has a machine for it.
pub struct Thread {
    pub(super) id: RequesterId,
    pub(super) index: u16,
    pub(super) workload: Workload,
    pub(super) experiment: Experiment,
    pub(super) costs: Costs,
    pub(super) chances: Chances,
    pub(super) random: Random,
    /// The next lock of a first pass over all of them, which the threads of each blade share.
    pub(super) first: u32,
    pub(super) requester: Requester,
    /// Its event, and on which block.
    pub(super) event: Option<(u32, Access)>,
    /// Answers that no correct rack gives.
    pub failures: u64,
    pub(super) machines: BTreeMap<u32, Machine>,
    /// The lock, and what for.
    pub lock: u32,
    pub(super) wants: For,
    pub(super) state: State,
    pub(super) attempt: u32,
    pub(super) began: u64,
    pub(super) cycle: Cycle,
    /// When its processor is free again.
    pub(super) busy: u64,
    /// A cycle that has just ended.
    pub ended: Option<Cycle>,
    /// Whether to begin nothing more.
    pub stops: bool,
}

/// What a thread sends for its blade's locks, from when on.
pub type Sends = (u64, Vec<Follows>);

impl Thread {
    /// A thread that is outside.
    pub fn new(id: RequesterId, experiment: &Experiment, chances: Chances, random: Random) -> Self {
        let workload = experiment.workload;
        Thread {
            id,
            index: id.node * workload.threads + id.slot,
            workload,
            experiment: *experiment,
            costs: experiment.platform.costs,
            chances,
            random,
            first: id.slot.into(),
            requester: Requester::new(RequesterConfig {
                id,
                epoch: EPOCH,
                incarnation: 1,
                block: BLOCK,
                switch: experiment.platform.blocks_in_switch(),
                min_timeout: NEVER,
                give_up: NEVER,
            }),
            event: None,
            failures: 0,
            machines: BTreeMap::new(),
            lock: 0,
            wants: For::Read,
            state: State::Outside,
            attempt: 0,
            began: 0,
            cycle: Cycle::default(),
            busy: 0,
            ended: None,
            stops: false,
        }
    }

    /// Its node.
    pub fn node(&self) -> NodeId {
        self.id.node
    }

    /// Whether it is in the middle of something.
    pub fn unfinished(&self) -> bool {
        !matches!(self.state, State::Finished)
            || self.event.is_some()
            || !self.requester.can_unlock()
    }

    /// Whether it is in its critical section, and as what.
    pub fn inside_as(&self) -> Option<For> {
        matches!(self.state, State::Inside | State::HandingOver).then_some(self.wants)
    }

    pub(super) fn work(&mut self, time: u64, fabric: &Fabric) {
        self.busy = self.busy.max(fabric.now()) + time;
    }

    /// Goes on when its processor is done with what it does, and with so much more.
    pub fn schedule(&mut self, more: u64, fabric: &mut Fabric) {
        self.work(more, fabric);
        fabric.agenda.enter(self.busy, Occurrence::Step(self.index));
    }

    pub(super) fn go_on(&mut self, state: State, after: u64, fabric: &mut Fabric) {
        self.state = state;
        self.schedule(after, fabric);
    }

    pub(super) fn send(&mut self, output: &Output, fabric: &mut Fabric) {
        self.work(self.costs.send, fabric);
        let _ = fabric.send(self.node(), self.busy, 0, output);
    }

    /// Takes a packet of coherent memory, which costs the thread itself so much. What is returned is to be sent.
    pub fn take(&mut self, packet: &Packet, cost: u64, fabric: &mut Fabric) -> Outputs {
        self.work(cost, fabric);
        let waited = self.waits();
        let (_, output) = self
            .requester
            .handle(fabric.now(), &packet.header, packet.body);
        if waited && !self.waits() {
            fabric.agenda.enter(self.busy, Occurrence::Step(self.index));
        }
        output.into_iter().collect()
    }

    /// Whether only a packet makes its event go on.
    fn waits(&self) -> bool {
        matches!(&self.event, Some((_, access)) if access.waits(&self.requester))
    }

    /// A packet has come to the thread itself.
    pub fn receive(&mut self, packet: &Packet, fabric: &mut Fabric) {
        if packet.header.kind == Kind::GuestTell {
            if packet.header.status != GlobalStatus::Unshared {
                self.go_on(State::Waiting, self.costs.wake, fabric);
            }
            return;
        }
        let outputs = self.take(packet, self.costs.message(packet.header.kind), fabric);
        for output in outputs.iter() {
            self.send(output, fabric);
        }
    }

    /// GCP has let it in.
    pub fn let_in(&mut self, inside: &Inside, fabric: &mut Fabric) {
        // Without a request of its blade, it has only waited for an answer about the hand-over before.
        self.cycle.remote = inside.transactions > 0;
        self.cycle.transactions += inside.transactions;
        let after = match self.state {
            State::Entering => 0,
            _ if inside.remote => self.costs.wake,
            _ => self.costs.hit,
        };
        self.go_on(State::Entered, after, fabric);
    }

    /// Its processor is free: goes on. What is returned is sent for its blade's locks.
    pub fn step(&mut self, node: &mut Node, words: &mut Words, fabric: &mut Fabric) -> Sends {
        let mut follows = Vec::new();
        match self.state {
            State::Finished => {}
            State::Outside => self.begin(fabric),
            State::Looking(goal) => self.look(goal, node, words, fabric),
            State::Fetching(goal) => self.fetch(goal, node, words, fabric),
            State::Fetched(goal, word) => self.fetched(goal, word, fabric),
            State::Pausing | State::Waiting => self.result(0, fabric),
            State::Entering if node.locks.at_hand(self.lock, self.wants) => {
                node.locks
                    .enter(self.lock, self.index, self.wants, &mut follows);
            }
            // On its way back to the memory blade: looks again until it is there.
            State::Entering if node.locks.is_worn(self.lock) => {
                self.schedule(self.costs.hit, fabric)
            }
            State::Entering => self.go_on(State::Asking, self.costs.trap, fabric),
            State::Asking => {
                self.state = State::Waiting;
                node.locks
                    .enter(self.lock, self.index, self.wants, &mut follows);
            }
            State::Entered if self.experiment.scheme.combines() => self.inside(fabric),
            State::Entered => {
                let goal = Goal {
                    block: self.lock,
                    op: None,
                    writes: self.wants == For::Write,
                };
                self.go_on(State::Looking(goal), 0, fabric);
            }
            State::Inside => self.leave(node, &mut follows, fabric),
            State::HandingOver => {
                node.locks.leave(self.lock, self.wants, &mut follows);
                return self.left(follows, fabric);
            }
        }
        let from = self.sends(&follows, fabric);
        (from, follows)
    }

    /// Pays for packets; when the first of them may leave.
    fn sends(&mut self, follows: &[Follows], fabric: &Fabric) -> u64 {
        let sends = follows.iter().filter(|f| matches!(f, Follows::Send(_)));
        let from = self.busy.max(fabric.now());
        let count = sends.count() as u64;
        if count > 0 {
            self.work(count * self.costs.send, fabric);
        }
        from
    }

    fn begin(&mut self, fabric: &mut Fabric) {
        if self.stops {
            self.state = State::Finished;
            return;
        }
        self.lock = match self.first {
            first if first < self.workload.locks => {
                self.first = first + u32::from(self.workload.threads);
                first
            }
            _ => self.chances.draw(&mut self.random),
        };
        let reads = self.random.per_mille(u32::from(self.workload.reads) * 10);
        self.wants = if reads { For::Read } else { For::Write };
        self.began = self.busy.max(fabric.now());
        self.cycle = Cycle::default();
        let Some(algorithm) = self.experiment.scheme.compared() else {
            return self.go_on(State::Entering, self.costs.hit, fabric);
        };
        let Workload { nodes, threads, .. } = self.workload;
        let seat = Seat {
            node: self.id.node,
            place: self.id.slot,
        };
        let machine = || Machine::new(algorithm, Shape::new(nodes, threads)?, seat);
        if !self.machines.contains_key(&self.lock)
            && let Some(machine) = machine()
        {
            self.machines.insert(self.lock, machine);
        }
        let machine = self.machines.get_mut(&self.lock);
        if let Some(step) = machine.map(|machine| machine.enter(self.wants)) {
            self.follow(step, fabric);
        }
    }

    pub(super) fn random_wait(&mut self, first: u64, nth: u32) -> u64 {
        let most = first << nth.min(DOUBLINGS);
        most / 2 + self.random.below(most / 2)
    }

    /// It has the lock and the data.
    pub(super) fn inside(&mut self, fabric: &mut Fabric) {
        self.cycle.latency = self.busy.max(fabric.now()) - self.began;
        self.go_on(State::Inside, self.costs.touch, fabric);
    }

    fn leave(&mut self, node: &mut Node, follows: &mut Vec<Follows>, fabric: &mut Fabric) {
        if self.experiment.scheme.compared().is_some() {
            let machine = self.machines.get_mut(&self.lock);
            if let Some(step) = machine.map(Machine::leave) {
                self.follow(step, fabric);
            }
        } else if node.locks.is_waited_for(self.lock) {
            self.go_on(State::HandingOver, self.costs.trap, fabric);
        } else {
            node.locks.leave(self.lock, self.wants, follows);
            self.work(self.costs.hit, fabric);
            self.finish(fabric);
        }
    }

    fn left(&mut self, follows: Vec<Follows>, fabric: &mut Fabric) -> Sends {
        let from = self.sends(&follows, fabric);
        self.finish(fabric);
        (from, follows)
    }

    pub(super) fn finish(&mut self, fabric: &mut Fabric) {
        self.ended = Some(self.cycle);
        self.go_on(State::Outside, self.workload.think, fabric);
    }
}
