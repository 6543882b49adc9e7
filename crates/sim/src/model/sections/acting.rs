//! A thread of critical sections: it thinks, acquires a lock, accesses its data, releases it.

use super::super::guest::ask;
use super::super::node::ModelNode;
use super::super::program::{Goal, Inside, Next, Steps};
use super::super::{Costs, Workload};
use super::Sections;
use super::figures::{Cycle, SectionFigures};
use super::memory::Memory;
use crate::world::Random;
use rackmem_baselines::locks::{Machine, Op, Request, Shape, Step, ThreadPlace};
use rackmem_proto::Output;
use rackmem_proto::engine::Then;
use rackmem_proto::gcp::Access;
use rackmem_proto::wire::{Dest, RequesterId};
use std::collections::BTreeMap;

/// The first pause of a lock that was taken by somebody else, at most, in nanoseconds;
/// it doubles with every attempt.
const PAUSE: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
enum State {
    /// Outside, and done thinking.
    Outside,
    /// Looks at a lock of GCP.
    Entering,
    /// In the kernel, to ask for it.
    Asking,
    /// Waits to be let in by GCP.
    Waiting,
    /// Accesses a block: for an operation of a lock above coherent memory, or else for the data.
    Accessing(Option<Op>),
    /// Has accessed it.
    Accessed(Option<Op>),
    /// Has asked a lock's manager.
    Asked,
    /// Goes on with a machine that needs no word.
    Resuming,
    /// Has the lock.
    Entered,
    /// Has the data, too.
    Inside,
    /// In the kernel, to hand the lock to another blade.
    HandingOver,
    /// Has left it, and what that costs.
    Left(u64),
}

/// See the module. Its lock is above coherent memory if it has a machine for it.
pub struct Acting {
    id: RequesterId,
    workload: Workload<Sections>,
    costs: Costs,
    random: Random,
    /// The next lock of a first pass over all of them, which the threads of each blade share.
    first: u32,
    machines: BTreeMap<u32, Machine>,
    lock: u32,
    wants: Access,
    state: State,
    began: u64,
    cycle: Cycle,
    /// The first block of the data of its section, and how many of these it has accessed.
    data: (u32, u32),
    /// The block that it accesses.
    block: u32,
    /// The block was fetched for the access.
    fetched: bool,
    /// What the access has read.
    word: Option<u64>,
    pub(super) figures: SectionFigures,
    ended: u64,
    overlaps: u64,
    stops: bool,
}

impl Acting {
    /// A thread that is outside.
    pub fn new(
        costs: Costs,
        workload: Workload<Sections>,
        id: RequesterId,
        random: Random,
    ) -> Self {
        Acting {
            id,
            workload,
            costs,
            random,
            first: id.slot.into(),
            machines: BTreeMap::new(),
            lock: 0,
            wants: Access::Read,
            state: State::Outside,
            began: 0,
            cycle: Cycle::default(),
            data: (0, 0),
            block: 0,
            fetched: false,
            word: None,
            figures: SectionFigures::default(),
            ended: 0,
            overlaps: 0,
            stops: false,
        }
    }

    fn go_on(&mut self, state: State, after: u64) -> Next {
        self.state = state;
        Next::Work(after)
    }

    fn begin(&mut self, now: u64, memory: &Memory) -> Next {
        if self.stops {
            return Next::Stop;
        }
        let Workload {
            nodes,
            threads,
            reads,
            program,
        } = self.workload;
        self.lock = match self.first {
            first if first < program.locks => {
                self.first = first + u32::from(threads);
                first
            }
            _ => memory.chances.draw(&mut self.random),
        };
        let reads = self.random.per_mille(u32::from(reads) * 10);
        self.wants = if reads { Access::Read } else { Access::Write };
        self.began = now;
        self.cycle = Cycle::default();
        let Some(algorithm) = program.scheme.compared() else {
            return self.go_on(State::Entering, self.costs.hit);
        };
        let RequesterId { node, slot } = self.id;
        let seat = ThreadPlace { node, place: slot };
        let machine = || Machine::new(algorithm, Shape::new(nodes, threads)?, seat);
        if !self.machines.contains_key(&self.lock)
            && let Some(machine) = machine()
        {
            self.machines.insert(self.lock, machine);
        }
        let wants = self.wants;
        self.machine(memory, |machine| machine.enter(wants))
    }

    /// Does what the machine says. Without one there is nothing to do.
    fn machine(&mut self, memory: &Memory, act: impl FnOnce(&mut Machine) -> Step) -> Next {
        let step = self.machines.get_mut(&self.lock).map(act);
        match step {
            Some(Step::Do(op)) => self.operate(op, memory),
            Some(Step::Inside) => self.go_on(State::Entered, 0),
            Some(Step::Outside) => self.finish(0),
            None => Next::Stop,
        }
    }

    fn operate(&mut self, op: Op, memory: &Memory) -> Next {
        let (at, writes) = match op {
            Op::Load(at) | Op::Wait(at, _) => (at, false),
            Op::Store(at, _) | Op::Swap(at, _) | Op::Add(at, _) => (at, true),
            Op::CompareSwap { at, .. } => (at, true),
            Op::Pause(nth) => {
                let wait = self.random.pause(PAUSE, nth);
                return self.go_on(State::Resuming, wait);
            }
            Op::Ask(request) => {
                self.cycle.remote = true;
                self.state = State::Asked;
                return self.tell(&request, memory);
            }
            Op::Tell(request) => {
                self.state = State::Resuming;
                return self.tell(&request, memory);
            }
        };
        // The data of all locks comes first.
        let words = self.lock * self.workload.blocks_each();
        let block = self.workload.data_blocks() + words + u32::from(at.block);
        self.access(Some(op), block, writes)
    }

    fn access(&mut self, op: Option<Op>, block: u32, writes: bool) -> Next {
        self.state = State::Accessing(op);
        self.block = block;
        let look = if op.is_some() { self.costs.hit } else { 0 };
        Next::Access(Goal { block, writes }, look)
    }

    fn tell(&self, request: &Request, memory: &Memory) -> Next {
        let header = ask(memory.layout.lock(self.lock), request);
        let manager = (self.lock % u32::from(self.workload.nodes)) as u16;
        Next::Tell(Output::new(Dest::Agent(manager), header))
    }

    /// The block was here when it was looked at.
    fn accessed(&mut self, op: Option<Op>, now: u64, memory: &mut Memory) -> Next {
        match (op, self.word) {
            (None, _) => self.next_page(now, memory),
            (Some(_), Some(word)) => self.machine(memory, |machine| machine.result(word)),
            // What it waits for was not there: it looks again, and then at its copy until that goes
            // away.
            (Some(op), None) => self.operate(op, memory),
        }
    }

    /// It has the lock: which data it is to access.
    fn entered(&mut self) -> Next {
        let Sections { groups, pages, .. } = self.workload.program;
        let group = match groups {
            1 => 0,
            _ => self.random.below(groups.into()) as u32,
        };
        let first = self.lock * self.workload.program.blocks_of_data() + group * pages;
        self.data = (first, 0);
        self.access(None, first, self.wants == Access::Write)
    }

    /// A block of its data is here.
    fn next_page(&mut self, now: u64, memory: &mut Memory) -> Next {
        let (first, done) = self.data;
        let done = done + 1;
        self.data.1 = done;
        match done < self.workload.program.pages {
            true => self.access(None, first + done, self.wants == Access::Write),
            false => self.inside(now, memory),
        }
    }

    /// It has the lock and the data.
    fn inside(&mut self, now: u64, memory: &mut Memory) -> Next {
        self.cycle.latency = now - self.began;
        let writes = self.wants == Access::Write;
        let alone = memory.occupied.moves(self.lock, writes, 1);
        self.overlaps += u64::from(!alone);
        let Sections { pages, work, .. } = self.workload.program;
        let touch = u64::from(pages) * self.costs.touch;
        self.go_on(State::Inside, touch + work)
    }

    fn leave(&mut self, node: &ModelNode, memory: &mut Memory) -> Next {
        let lock = memory.layout.lock(self.lock);
        let compared = self.workload.program.scheme.compared().is_some();
        let hands_over = matches!(self.state, State::HandingOver);
        if !compared && !hands_over && node.is_waited_for(lock) {
            return self.go_on(State::HandingOver, self.costs.trap);
        }
        let writes = self.wants == Access::Write;
        memory.occupied.moves(self.lock, writes, -1);
        if compared {
            return self.machine(memory, Machine::leave);
        }
        let cost = if hands_over { 0 } else { self.costs.hit };
        self.state = State::Left(cost);
        Next::Leave(lock, self.wants, hands_over)
    }

    fn finish(&mut self, cost: u64) -> Next {
        self.figures.count(&self.cycle);
        self.ended += 1;
        self.go_on(State::Outside, cost + self.workload.program.think)
    }
}

impl Steps for Acting {
    type Shared = Memory;
    const FORGETS_REFUSALS: bool = false;

    fn next(&mut self, now: u64, _: bool, node: &ModelNode, memory: &mut Memory) -> Next {
        let lock = memory.layout.lock(self.lock);
        match self.state {
            State::Outside => self.begin(now, memory),
            State::Entering if node.at_hand(lock, self.wants) => Next::Enter(lock, self.wants),
            // On its way back to the memory blade: looks again until it is there.
            State::Entering if node.is_worn(lock) => Next::Work(self.costs.hit),
            State::Entering => self.go_on(State::Asking, self.costs.trap),
            State::Asking => {
                self.state = State::Waiting;
                Next::Enter(lock, self.wants)
            }
            State::Accessing(op) if std::mem::take(&mut self.fetched) => {
                self.go_on(State::Accessed(op), self.costs.wake)
            }
            State::Accessing(op) | State::Accessed(op) => self.accessed(op, now, memory),
            State::Asked => {
                self.state = State::Resuming;
                Next::Wait
            }
            State::Waiting => Next::Wait,
            State::Resuming => self.machine(memory, |machine| machine.result(0)),
            State::Entered if self.workload.program.scheme.combines() => self.inside(now, memory),
            State::Entered => self.entered(),
            State::Inside | State::HandingOver => self.leave(node, memory),
            State::Left(cost) => self.finish(cost),
        }
    }

    fn execute(&mut self, memory: &mut Memory, fetched: bool) -> bool {
        if fetched {
            self.fetched = true;
            self.cycle.remote = true;
            self.cycle.transactions += 1;
        }
        let State::Accessing(Some(op)) = self.state else {
            return true;
        };
        self.word = memory.execute(self.block, op);
        self.word.is_some()
    }

    fn refused(&mut self, then: Then) {
        self.cycle.refused += u32::from(!matches!(then, Then::Again | Then::Relook));
    }

    fn let_in(&mut self, inside: &Inside) -> u64 {
        // Without a request of its blade, it has only waited for an answer about the hand-over
        // before.
        self.cycle.remote = inside.transactions > 0;
        self.cycle.transactions += inside.transactions;
        let after = match self.state {
            State::Entering => 0,
            _ if inside.remote => self.costs.wake,
            _ => self.costs.hit,
        };
        self.state = State::Entered;
        after
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn ended(&mut self) -> u64 {
        std::mem::take(&mut self.ended)
    }

    fn reset(&mut self) {
        self.figures = SectionFigures::default();
    }

    fn stop(&mut self) {
        self.stops = true;
    }

    fn overlaps(&self) -> u64 {
        self.overlaps
    }
}
