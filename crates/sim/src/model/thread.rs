//! An application thread: the library's slow path, cut at the places where it waits,
//! and what each part costs.

use super::agenda::Occurrence;
use super::fabric::{Fabric, ModelPacket, Records};
use super::guest::lets_in;
use super::node::{ModelNode, Until};
use super::program::{Goal, Inside, Next, Steps};
use super::{BLOCK, DOUBLINGS, EPOCH, Platform, System};
use rackmem_proto::Output;
use rackmem_proto::engine::{Access, Do, LockCommand, Plan, Purpose, Then};
use rackmem_proto::flowcc::{Requester, RequesterConfig};
use rackmem_proto::wire::{Kind, NodeId, RequesterId};

/// Nothing is lost in the model, so nothing is sent again.
const NEVER: u64 = u64::MAX / 4;
/// The first wait after "locked", at most, in nanoseconds; it doubles with every attempt.
const BACKOFF: u64 = 200;

#[derive(Clone, Copy, Debug)]
enum State {
    /// What is next is for its program to say, now or when it is let go on.
    Free,
    /// It looks into the cache.
    Looking(Goal),
    /// It has an event, on a block in an entry.
    Busy(Goal, Access, (u32, u32)),
    /// Nothing more to do.
    Finished,
}

/// One application thread and its requester.
pub struct Thread<P> {
    id: RequesterId,
    index: u16,
    platform: Platform,
    requester: Requester,
    state: State,
    missed: bool,
    attempt: u32,
    /// When its processor is free again.
    busy: u64,
    /// Time on the processor.
    pub used: u64,
    /// Answers that no correct rack gives.
    pub failures: u64,
    /// What it is for.
    pub program: P,
}

/// Where a thread is: its node, what all threads share, and the network.
pub type Site<'a, S> = (&'a mut ModelNode, &'a mut S, &'a mut Fabric);

impl<P: Steps> Thread<P> {
    /// A thread with nothing done, the `index`th of all.
    pub fn new(id: RequesterId, index: u16, platform: &Platform, program: P) -> Self {
        Thread {
            id,
            index,
            platform: *platform,
            requester: Requester::new(RequesterConfig {
                id,
                epoch: EPOCH,
                incarnation: 1,
                block: BLOCK,
                switch: platform.system == System::Switch,
                min_timeout: NEVER,
                give_up: NEVER,
            }),
            state: State::Free,
            missed: false,
            attempt: 0,
            busy: 0,
            used: 0,
            failures: 0,
            program,
        }
    }

    /// Its node.
    pub fn node(&self) -> NodeId {
        self.id.node
    }

    /// Whether something is under way.
    pub fn unfinished(&self) -> bool {
        !matches!(self.state, State::Finished) || !self.requester.can_unlock()
    }

    /// Goes on when its processor is done with what it does, and with so much more.
    pub fn schedule(&mut self, more: u64, fabric: &mut Fabric) {
        self.work(more, fabric);
        fabric.agenda.enter(self.busy, Occurrence::Step(self.index));
    }

    fn work(&mut self, time: u64, fabric: &Fabric) {
        self.busy = self.busy.max(fabric.now()) + time;
        self.used += time;
    }

    /// Takes a packet, which costs the thread itself so much. The packet that is returned is to be
    /// sent.
    pub fn take(&mut self, packet: &ModelPacket, cost: u64, fabric: &mut Fabric) -> Option<Output> {
        self.work(cost, fabric);
        let waited = self.waits();
        let (_, output) = self
            .requester
            .handle(fabric.now(), &packet.header, packet.body);
        if waited && !self.waits() {
            fabric.agenda.enter(self.busy, Occurrence::Step(self.index));
        }
        output
    }

    /// Whether only a packet can make its event go on.
    fn waits(&self) -> bool {
        matches!(&self.state, State::Busy(_, access, _) if access.waits(&self.requester))
    }

    /// A packet has come from the network to the thread itself.
    pub fn receive(&mut self, packet: &ModelPacket, node: &mut ModelNode, fabric: &mut Fabric) {
        let costs = self.platform.costs;
        let delegates = self.platform.system == System::Delegate;
        if packet.header.kind == Kind::GuestTell && !delegates {
            if lets_in(&packet.header) {
                self.schedule(costs.wake, fabric);
            }
            return;
        }
        let output = self.take(packet, costs.message(packet.header.kind), fabric);
        if let Some(output) = output {
            self.send(&output, node, fabric);
        }
    }

    /// GCP has let it in.
    pub fn let_in(&mut self, inside: &Inside, fabric: &mut Fabric) {
        let after = self.program.let_in(inside);
        self.schedule(after, fabric);
    }

    fn send(&mut self, output: &Output, node: &mut ModelNode, fabric: &mut Fabric) {
        if self.platform.through_agents {
            return node.post(*output, Records::default(), fabric);
        }
        self.work(self.platform.costs.send, fabric);
        let ready = self.busy + self.platform.costs.aggregate;
        let _ = fabric.send(self.node(), (ready, 0), output, &Records::default());
    }

    /// Its processor is free: goes on.
    pub fn step(&mut self, site: &mut Site<'_, P::Shared>) {
        match self.state {
            State::Finished => {}
            State::Free => self.go_on(site),
            State::Looking(goal) => self.look(goal, site),
            State::Busy(goal, access, on) => self.drive(goal, access, on, site),
        }
        self.pay(site.0, site.2);
    }

    /// Pays for what a lock of its node sends because of it, which leaves from now on.
    fn pay(&mut self, node: &mut ModelNode, fabric: &Fabric) {
        if node.from.is_none() {
            node.from = Some(self.busy.max(fabric.now()));
            self.work(node.sends() * self.platform.costs.send, fabric);
        }
    }

    /// Does what its program says.
    fn go_on(&mut self, site: &mut Site<'_, P::Shared>) {
        self.state = State::Free;
        loop {
            let (node, shared, fabric) = site;
            let now = self.busy.max(fabric.now());
            match self.program.next(now, self.missed, node, shared) {
                Next::Work(time) => return self.schedule(time, fabric),
                Next::Access(goal, look) => {
                    self.state = State::Looking(goal);
                    self.missed = false;
                    if P::FORGETS_REFUSALS {
                        self.attempt = 0;
                    }
                    return self.schedule(look, fabric);
                }
                Next::Enter(lock, access) => {
                    return node.command(lock, LockCommand::Enter(self.index, access));
                }
                Next::Leave(lock, access, at_once) => {
                    node.command(lock, LockCommand::Leave(access));
                    if at_once {
                        self.pay(node, fabric);
                    }
                }
                Next::Tell(output) => {
                    self.work(self.platform.costs.trap, fabric);
                    self.send(&output, node, fabric);
                }
                Next::Wait => return,
                Next::Stop => {
                    self.state = State::Finished;
                    return;
                }
            }
        }
    }

    /// The block is here: does what the access is for.
    fn execute(&mut self, goal: Goal, fetched: bool, site: &mut Site<'_, P::Shared>) -> bool {
        let (node, shared, fabric) = site;
        let done = self.program.execute(shared, fetched);
        if goal.writes {
            node.wake(Until::Changed(goal.block), fabric);
        }
        done
    }

    fn look(&mut self, goal: Goal, site: &mut Site<'_, P::Shared>) {
        let Goal { block, writes } = goal;
        if self.platform.system == System::Delegate {
            return self.begin(goal, Purpose::Call(Kind::GuestAsk), (0, block), site);
        }
        if site.0.cache.hit(block, writes) {
            return match self.execute(goal, false, site) {
                true => self.go_on(site),
                false => site.0.park(self.index, Until::Changed(block)),
            };
        }
        match site.0.cache.plan(block, writes) {
            Plan::Wait | Plan::Hit(_) => site.0.park(self.index, Until::Over(block)),
            Plan::WaitForRoom => site.0.park(self.index, Until::AnyOver),
            Plan::Begin(at, purpose) => self.begin(goal, purpose, (at, block), site),
            Plan::Evict(at, old) => self.evict(goal, (at, old), site),
        }
    }

    fn begin(
        &mut self,
        goal: Goal,
        purpose: Purpose,
        on: (u32, u32),
        (node, _, fabric): &mut Site<'_, P::Shared>,
    ) {
        self.missed = true;
        if self.attempt == 0 {
            self.work(self.platform.costs.trap, fabric);
        }
        let what = (node.layout.tag(self.node(), on.1), 0, 0);
        let (access, output) = Access::begin(purpose, &mut self.requester, fabric.now(), what);
        self.state = State::Busy(goal, access, on);
        self.send(&output, node, fabric);
    }

    fn evict(&mut self, goal: Goal, on: (u32, u32), site: &mut Site<'_, P::Shared>) {
        match Purpose::to_evict(site.0.cache.status_at(on.0)) {
            Some(purpose) => self.begin(goal, purpose, on, site),
            None => {
                site.0.release(on.0, on.1, site.2);
                self.state = State::Looking(goal);
                self.schedule(0, site.2);
            }
        }
    }

    /// Goes on with an event as far as it goes.
    fn drive(
        &mut self,
        goal: Goal,
        mut access: Access,
        on: (u32, u32),
        site: &mut Site<'_, P::Shared>,
    ) {
        loop {
            let todo = access.next(&mut self.requester, || site.2.now(), None);
            self.state = State::Busy(goal, access, on);
            match todo {
                Do::Wait | Do::Held => return,
                Do::Use => {
                    self.execute(goal, true, site);
                }
                Do::Left => {}
                Do::Set(status) => site.0.cache.install(on.0, on.1, status),
                Do::Send(output) => self.send(&output, site.0, site.2),
                Do::Over(then) => return self.over(goal, access.purpose(), on, then, site),
            }
        }
    }

    fn over(
        &mut self,
        goal: Goal,
        purpose: Purpose,
        on: (u32, u32),
        then: Then,
        site: &mut Site<'_, P::Shared>,
    ) {
        if then != Then::Done {
            self.program.refused(then);
        }
        self.failures += u64::from(matches!(then, Then::Fail(_) | Then::Lost));
        if then == Then::Relook {
            return self.evict(goal, on, site);
        }
        if purpose.leaves().is_some() {
            site.0.release(on.0, on.1, site.2);
        }
        self.state = State::Looking(goal);
        match then {
            Then::Done if !purpose.evicts() => {
                self.attempt = 0;
                self.go_on(site);
            }
            Then::Done | Then::Again | Then::Relook => self.schedule(0, site.2),
            Then::BackOff | Then::Fail(_) | Then::Lost => {
                self.attempt += 1;
                let most = BACKOFF << self.attempt.min(DOUBLINGS);
                let wait = most / 2 + self.program.random().below(most / 2);
                let at = self.busy.max(site.2.now()) + wait;
                site.2.agenda.enter(at, Occurrence::Step(self.index));
            }
        }
    }
}
