//! An application thread: the library's slow path, cut at the places where it waits, and what each part costs.

use super::agenda::Occurrence;
use super::fabric::{Fabric, Packet};
use super::node::Node;
use super::params::{Costs, System};
use super::workload::{Operation, Stream, Workload};
use super::{BLOCK, EPOCH};
use rackmem_proto::engine::{Access, Do, Plan, Purpose, Then};
use rackmem_proto::flowcc::{Requester, RequesterConfig};
use rackmem_proto::wire::{Kind, NodeId, RequesterId};
use rackmem_proto::{Output, Outputs};

/// Nothing is lost in the model, so nothing is sent again.
const NEVER: u64 = u64::MAX / 4;
/// The first wait after "locked", at most, in nanoseconds; it doubles with every attempt, so often.
const BACKOFF: u64 = 200;
const DOUBLINGS: u32 = 6;

/// What a thread has done.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tally {
    /// Operations that ended.
    pub operations: u64,
    /// Of these, without an event.
    pub hits: u64,
    /// Events that were refused.
    pub refused: u64,
    /// Time from the beginning of operations to their end, together and at most.
    pub waited: u64,
    /// See `waited`.
    pub longest: u64,
    /// Time on the processor.
    pub used: u64,
}

/// An event, and on what.
#[derive(Clone, Copy, Debug)]
struct Running {
    access: Access,
    at: u32,
    block: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The operation looks into the cache.
    Looking,
    /// It has an event.
    Busy(Running),
    /// Nothing more to do.
    Finished,
}

/// One application thread and its requester.
pub struct Thread {
    id: RequesterId,
    index: u16,
    delegates: bool,
    costs: Costs,
    workload: Workload,
    engine: Requester,
    stream: Stream,
    state: State,
    operation: Option<Operation>,
    began: u64,
    missed: bool,
    attempt: u32,
    /// When its processor is free again.
    busy: u64,
    /// What it has done.
    pub tally: Tally,
    /// Whether its first pass over its blocks is behind it.
    pub warm: bool,
    /// Whether to begin no further operation.
    pub stops: bool,
    /// Answers that no correct rack gives.
    pub failures: u64,
}

impl Thread {
    /// A thread with nothing done.
    pub fn new(
        id: RequesterId,
        system: System,
        costs: Costs,
        stream: Stream,
        workload: Workload,
    ) -> Self {
        let engine = Requester::new(RequesterConfig {
            id,
            epoch: EPOCH,
            incarnation: 1,
            block: BLOCK,
            switch: system == System::Switch,
            min_timeout: NEVER,
            give_up: NEVER,
        });
        Thread {
            id,
            index: id.node * workload.threads + id.slot,
            delegates: system == System::Delegate,
            costs,
            workload,
            engine,
            stream,
            state: State::Looking,
            operation: None,
            began: 0,
            missed: false,
            attempt: 0,
            busy: 0,
            tally: Tally::default(),
            warm: false,
            stops: false,
            failures: 0,
        }
    }

    /// Whether an operation is under way.
    pub fn unfinished(&self) -> bool {
        self.operation.is_some() || !self.engine.can_unlock()
    }

    /// Its node.
    pub fn node(&self) -> NodeId {
        self.id.node
    }

    /// Goes on when its processor is done with what it does, and with so much more.
    pub fn schedule(&mut self, more: u64, fabric: &mut Fabric) {
        self.work(more, fabric);
        fabric.agenda.enter(self.busy, Occurrence::Step(self.index));
    }

    fn work(&mut self, time: u64, fabric: &Fabric) {
        self.busy = self.busy.max(fabric.now()) + time;
        self.tally.used += time;
    }

    /// Takes a packet, which costs the thread itself so much. What is returned is to be sent.
    pub fn take(&mut self, packet: &Packet, cost: u64, fabric: &mut Fabric) -> Outputs {
        self.work(cost, fabric);
        let waited = self.waits();
        let (_, output) = self
            .engine
            .handle(fabric.now(), &packet.header, packet.body);
        if waited && !self.waits() {
            fabric.agenda.enter(self.busy, Occurrence::Step(self.index));
        }
        output.into_iter().collect()
    }

    /// Whether only a packet can make it go on.
    fn waits(&self) -> bool {
        matches!(self.state, State::Busy(running) if running.access.waits(&self.engine))
    }

    /// A packet has come from the network to the thread itself.
    pub fn receive(&mut self, packet: &Packet, fabric: &mut Fabric) {
        let outputs = self.take(packet, self.costs.message(packet.header.kind), fabric);
        for output in outputs.iter() {
            self.work(self.costs.send, fabric);
            let _ = fabric.send(self.node(), self.busy, 0, output);
        }
    }

    fn send(&mut self, output: &Output, node: &mut Node, fabric: &mut Fabric) {
        if self.costs.through_agents {
            return node.post(*output, fabric);
        }
        self.work(self.costs.send, fabric);
        let ready = self.busy + self.costs.aggregate;
        let _ = fabric.send(self.node(), ready, 0, output);
    }

    /// Its processor is free: goes on.
    pub fn step(&mut self, node: &mut Node, fabric: &mut Fabric) {
        match self.state {
            State::Finished => {}
            State::Looking => self.look(node, fabric),
            State::Busy(running) => self.drive(running, node, fabric),
        }
    }

    /// Begins the next operation; the look into the cache is paid before its result is known.
    fn draw(&mut self, fabric: &mut Fabric) {
        self.state = State::Looking;
        if self.stops {
            self.state = State::Finished;
            return;
        }
        let operation = self.stream.draw();
        self.warm |= !operation.warms;
        self.operation = Some(operation);
        self.began = self.busy.max(fabric.now());
        (self.missed, self.attempt) = (false, 0);
        let cost = if operation.cold {
            self.costs.cold
        } else {
            self.costs.hit
        };
        self.schedule(cost, fabric);
    }

    fn finish(&mut self, fabric: &mut Fabric) {
        let waited = self.busy.max(fabric.now()) - self.began;
        let tally = &mut self.tally;
        tally.operations += 1;
        tally.hits += u64::from(!self.missed);
        tally.waited += waited;
        tally.longest = tally.longest.max(waited);
        self.operation = None;
        self.draw(fabric);
    }

    fn look(&mut self, node: &mut Node, fabric: &mut Fabric) {
        let Some(Operation { block, writes, .. }) = self.operation else {
            return self.draw(fabric);
        };
        if self.delegates {
            return self.begin(Purpose::Call(Kind::GuestAsk), 0, block, node, fabric);
        }
        if node.cache.hit(block, writes) {
            return self.finish(fabric);
        }
        match node.cache.plan(block, writes) {
            Plan::Wait | Plan::Hit(_) => node.park(self.index, Some(block)),
            Plan::WaitForRoom => node.park(self.index, None),
            Plan::Begin(at, purpose) => self.begin(purpose, at, block, node, fabric),
            Plan::Evict(at, old) => self.evict(at, old, node, fabric),
        }
    }

    fn begin(
        &mut self,
        purpose: Purpose,
        at: u32,
        block: u32,
        node: &mut Node,
        fabric: &mut Fabric,
    ) {
        self.missed = true;
        let tag = self.workload.tag(self.node(), block);
        let (access, output) = Access::begin(purpose, &mut self.engine, fabric.now(), (tag, 0, 0));
        self.state = State::Busy(Running { access, at, block });
        self.send(&output, node, fabric);
    }

    fn evict(&mut self, at: u32, block: u32, node: &mut Node, fabric: &mut Fabric) {
        match Purpose::to_evict(node.cache.status_at(at)) {
            Some(purpose) => self.begin(purpose, at, block, node, fabric),
            None => {
                node.release(at, block, fabric);
                self.state = State::Looking;
                self.schedule(0, fabric);
            }
        }
    }

    /// Goes on with an event as far as it goes.
    fn drive(&mut self, mut running: Running, node: &mut Node, fabric: &mut Fabric) {
        let Running { at, block, .. } = running;
        loop {
            let todo = running.access.next(&mut self.engine, || fabric.now(), None);
            self.state = State::Busy(running);
            match todo {
                Do::Wait | Do::Held => return,
                Do::Use | Do::Left => {}
                Do::Set(status) => node.cache.install(at, block, status),
                Do::Send(output) => self.send(&output, node, fabric),
                Do::Over(then) => return self.over(running, then, node, fabric),
            }
        }
    }

    fn over(&mut self, running: Running, then: Then, node: &mut Node, fabric: &mut Fabric) {
        let Running { access, at, block } = running;
        self.tally.refused += u64::from(then != Then::Done);
        self.failures += u64::from(matches!(then, Then::Fail(_) | Then::Lost));
        if then == Then::Relook {
            return self.evict(at, block, node, fabric);
        }
        if access.purpose().leaves().is_some() {
            node.release(at, block, fabric);
        }
        self.state = State::Looking;
        match then {
            Then::Done if access.purpose().evicts() => self.schedule(0, fabric),
            Then::Done => self.finish(fabric),
            Then::Again | Then::Relook => self.schedule(0, fabric),
            Then::BackOff | Then::Fail(_) | Then::Lost => {
                self.attempt += 1;
                let most = BACKOFF << self.attempt.min(DOUBLINGS);
                let wait = most / 2 + self.stream.random().below(most / 2);
                let at = self.busy.max(fabric.now()) + wait;
                fabric.agenda.enter(at, Occurrence::Step(self.index));
            }
        }
    }
}
