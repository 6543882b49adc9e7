//! What a thread does on coherent memory: the operations of a lock above it, one after the other, and its way to the data.

use super::memory::{Look, Words};
use super::node::{Node, ask};
use super::run::Experiment;
use super::thread::{Goal, State, Thread};
use crate::model::agenda::Occurrence;
use crate::model::fabric::Fabric;
use rackmem_baselines::locks::{At, Op, Request, Step};
use rackmem_proto::Output;
use rackmem_proto::engine::{Access, Do, Then};
use rackmem_proto::wire::Dest;

/// The first wait after "locked", at most, in nanoseconds; it doubles with every attempt.
const BACKOFF: u64 = 200;
/// The first pause of a lock that was taken by somebody else, at most; it doubles likewise.
const PAUSE: u64 = 1_000;

impl Thread {
    /// An operation of the machine has this result.
    pub(super) fn result(&mut self, word: u64, fabric: &mut Fabric) {
        let machine = self.machines.get_mut(&self.lock);
        if let Some(step) = machine.map(|machine| machine.result(word)) {
            self.follow(step, fabric);
        }
    }

    pub(super) fn follow(&mut self, step: Step, fabric: &mut Fabric) {
        match step {
            Step::Do(op) => self.operate(op, fabric),
            Step::Inside => self.go_on(State::Entered, 0, fabric),
            Step::Outside => self.finish(fabric),
        }
    }

    fn operate(&mut self, op: Op, fabric: &mut Fabric) {
        let (at, writes) = match op {
            Op::Load(at) | Op::Wait(at, _) => (at, false),
            Op::Store(at, _) | Op::Swap(at, _) | Op::Add(at, _) => (at, true),
            Op::CompareSwap { at, .. } => (at, true),
            Op::Pause(nth) => {
                let wait = self.random_wait(PAUSE, nth);
                return self.go_on(State::Pausing, wait, fabric);
            }
            Op::Ask(request) => {
                self.tell(&request, fabric);
                self.cycle.remote = true;
                self.state = State::Waiting;
                return;
            }
            Op::Tell(request) => {
                self.tell(&request, fabric);
                return self.result(0, fabric);
            }
        };
        let goal = Goal {
            block: self.experiment.block(self.lock, at),
            op: Some(op),
            writes,
        };
        self.go_on(State::Looking(goal), self.costs.hit, fabric);
    }

    fn tell(&mut self, request: &Request, fabric: &mut Fabric) {
        self.work(self.costs.trap, fabric);
        let memory = self.workload.memory();
        let header = ask(super::locks::tag(memory, self.lock), request);
        let manager = (self.lock % u32::from(self.workload.nodes)) as u16;
        self.send(&Output::new(Dest::Agent(manager), header), fabric);
    }

    /// Looks at a block: has what it wanted, waits for another thread of its blade, or asks.
    pub(super) fn look(
        &mut self,
        goal: Goal,
        node: &mut Node,
        words: &mut Words,
        fabric: &mut Fabric,
    ) {
        match node.memory.look(goal.block, goal.writes) {
            Look::Hit => match self.execute(goal, node, words, fabric) {
                Some(word) => self.fetched(goal, Some(word), fabric),
                None => node.memory.spin(goal.block, self.index),
            },
            Look::Busy => node.memory.park(goal.block, self.index),
            Look::Miss(purpose) => {
                if self.attempt == 0 {
                    self.work(self.costs.trap, fabric);
                }
                let now = self.busy.max(fabric.now());
                let what = (node.memory.tag(goal.block), 0, 0);
                let (access, output) = Access::begin(purpose, &mut self.requester, now, what);
                self.event = Some((goal.block, access));
                self.state = State::Fetching(goal);
                self.send(&output, fabric);
            }
        }
    }

    /// Does what the access is for. Nothing: what it waits for is not there.
    fn execute(
        &mut self,
        goal: Goal,
        node: &mut Node,
        words: &mut Words,
        fabric: &mut Fabric,
    ) -> Option<u64> {
        let Some(op) = goal.op else {
            return Some(0);
        };
        let done = words.execute(goal.block, op);
        if goal.writes {
            node.memory.written(goal.block, fabric);
        }
        done
    }

    /// An event has got on.
    pub(super) fn fetch(
        &mut self,
        goal: Goal,
        node: &mut Node,
        words: &mut Words,
        fabric: &mut Fabric,
    ) {
        let Some((block, mut access)) = self.event.take() else {
            return;
        };
        let then = loop {
            match access.next(&mut self.requester, || fabric.now(), None) {
                Do::Wait | Do::Held => {
                    self.event = Some((block, access));
                    return;
                }
                Do::Use => {
                    self.cycle.remote = true;
                    self.cycle.transactions += 1;
                    self.cycle.word = self.execute(goal, node, words, fabric);
                }
                Do::Set(status) => node.memory.install(block, status),
                Do::Left => {}
                Do::Send(output) => self.send(&output, fabric),
                Do::Over(then) => break then,
            }
        };
        node.memory.release(block, fabric);
        match then {
            Then::Done => {
                self.attempt = 0;
                let word = self.cycle.word.take();
                self.go_on(State::Fetched(goal, word), self.costs.wake, fabric);
            }
            Then::Again | Then::Relook => self.go_on(State::Looking(goal), 0, fabric),
            Then::BackOff | Then::Fail(_) | Then::Lost => {
                self.failures += u64::from(then != Then::BackOff);
                self.cycle.refused += 1;
                self.attempt += 1;
                let wait = self.random_wait(BACKOFF, self.attempt);
                let at = self.busy.max(fabric.now()) + wait;
                self.state = State::Looking(goal);
                fabric.agenda.enter(at, Occurrence::Step(self.index));
            }
        }
    }

    /// The block was here when it was looked at.
    pub(super) fn fetched(&mut self, goal: Goal, word: Option<u64>, fabric: &mut Fabric) {
        match (goal.op, word) {
            (None, _) => self.inside(fabric),
            (Some(_), Some(word)) => self.result(word, fabric),
            // What it waits for was not there: it looks again, and then at its copy until that goes away.
            (Some(_), None) => self.go_on(State::Looking(goal), self.costs.hit, fabric),
        }
    }
}

impl Experiment {
    /// Which block a word of a lock is in: the data of all locks comes first.
    fn block(&self, lock: u32, at: At) -> u32 {
        self.workload.locks + lock * self.blocks_each() + u32::from(at.block)
    }
}
