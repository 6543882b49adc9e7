//! What can happen next.

use super::mutation::Mutation;
use super::oracle::Complaint;
use super::packet::DIRECTORY;
use super::scenario::Failure;
use super::world::{At, Rack, Serves, Stage, TAG, Witness, World, placed};
use rackmem_proto::gcp::{Access, Steps};
use rackmem_proto::wire::Copyset;
use std::fmt;

/// A way beside the others, for packets that are late.
const DETOUR: u8 = 64;

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A thread enters, or ends its critical section.
    Step(usize),
    /// A thread ends its critical section, and another of its node wants to be next.
    HandTo(usize, usize),
    /// A packet arrives.
    Deliver((u8, u8), usize),
    /// It is lost.
    Lose((u8, u8)),
    /// It will come once more.
    Double((u8, u8)),
    /// Others may overtake it.
    Delay((u8, u8)),
    /// A node has waited for long, and asks again.
    Retry(u8),
    /// Something dies.
    Fail,
    /// The rack goes on without it.
    Settle,
}

/// A move, as a line of a story.
pub struct Line<'a>(pub &'a World, pub Move);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line(world, step) = self;
        let place = |end: u8| match end & !DETOUR {
            _ if end == DIRECTORY => "directory".to_string(),
            node => format!("node {node}"),
        };
        let mut packet = |what: &str, way: (u8, u8), nth| {
            let header = &world.ways.get(way, nth).header;
            let (from, to) = (place(way.0), place(way.1));
            let (who, number) = (header.requester.node, rackmem_proto::gcp::version(header));
            let number = number & 0xffff_ffff;
            write!(
                f,
                "{what} {} of node {who} #{number} {:?} {:b} from {from} to {to}",
                header.kind.name(),
                header.status,
                header.copyset.0,
            )
        };
        match *step {
            Move::Deliver(way, nth) => packet("arrives:", way, nth),
            Move::Lose(way) => packet("is lost:", way, 0),
            Move::Double(way) => packet("is doubled:", way, 0),
            Move::Delay(way) => packet("is late:", way, 0),
            other => write!(f, "{other:?}"),
        }
    }
}

impl World {
    /// Everything that can happen now.
    pub fn moves(&self, rack: &Rack) -> Vec<Move> {
        let mut moves = Vec::new();
        self.thread_moves(rack, &mut moves);
        let free = moves.is_empty() && self.ways.is_empty();
        for (way, count) in self.ways.iter() {
            let detour = way.0 != DIRECTORY && way.0 >= DETOUR || way.0 == DIRECTORY - 1;
            let last = if detour { count } else { 1 };
            moves.extend((0..last).map(|nth| Move::Deliver(way, nth)));
            if !detour {
                let left = self.left;
                moves.extend((left.lose > 0).then_some(Move::Lose(way)));
                moves.extend((left.double > 0).then_some(Move::Double(way)));
                moves.extend((left.late > 0).then_some(Move::Delay(way)));
            }
        }
        match (self.stage, rack.scenario.failure) {
            (_, Failure::None) | (Stage::Settled, _) => {}
            (Stage::Before, _) => moves.push(Move::Fail),
            (Stage::Failed, _) => moves.push(Move::Settle),
        }
        if (free || self.left.early > 0) && !rack.has(Mutation::NeverRetry) {
            let nodes = 0..self.nodes.len() as u8;
            moves.extend(nodes.filter(|n| self.asks_again(*n)).map(Move::Retry));
        }
        moves
    }

    fn asks_again(&self, node: u8) -> bool {
        let state = &self.nodes[usize::from(node)];
        let mut steps = Steps::new();
        state.up && !state.fenced && state.blade.clone().retry(TAG, &mut steps)
    }

    fn thread_moves(&self, rack: &Rack, moves: &mut Vec<Move>) {
        for (nth, thread) in self.threads.iter().enumerate() {
            match thread.at {
                At::Outside if self.may_try(rack, nth, None) => moves.push(Move::Step(nth)),
                At::Inside => {
                    moves.push(Move::Step(nth));
                    for other in 0..self.threads.len() {
                        let neighbour = self.threads[other].node == thread.node;
                        if neighbour && other != nth && self.may_try(rack, other, Some(nth)) {
                            moves.push(Move::HandTo(nth, other));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether the node's own lock lets a thread ask for this one, when `leaving` has left: one at a time waits, and
    /// writers come alone.
    fn may_try(&self, rack: &Rack, thread: usize, leaving: Option<usize>) -> bool {
        let Some(access) = rack.next(self, thread) else {
            return false;
        };
        let node = self.threads[thread].node;
        let in_the_way = |(other, with): (usize, &super::world::Thread)| {
            let here = with.node == node && other != thread && Some(other) != leaving;
            let inside = with.at == At::Inside
                && (access == Access::Write || rack.next(self, other) == Some(Access::Write));
            here && (with.at == At::Waiting || inside)
        };
        self.threads[thread].at == At::Outside
            && self.nodes[usize::from(node)].up
            && !self.threads.iter().enumerate().any(in_the_way)
    }

    /// Does it.
    pub fn act(&mut self, rack: &Rack, step: Move) -> Result<(), Complaint> {
        self.seen = 0;
        match step {
            Move::Step(thread) => self.step(rack, thread, None)?,
            Move::HandTo(thread, next) => self.step(rack, thread, Some(next))?,
            Move::Deliver(way, nth) => {
                let packet = self.ways.take(way, nth);
                self.deliver(rack, way.1, packet)?;
            }
            Move::Lose(way) => {
                self.left.lose -= 1;
                self.ways.take(way, 0);
            }
            Move::Double(way) => {
                self.left.double -= 1;
                let copy = self.ways.get(way, 0).clone();
                self.ways.push(detour(way.0), way.1, copy);
            }
            Move::Delay(way) => {
                self.left.late -= 1;
                let packet = self.ways.take(way, 0);
                self.ways.push(detour(way.0), way.1, packet);
            }
            Move::Retry(node) => {
                let mut idle = Vec::new();
                self.thread_moves(rack, &mut idle);
                if !idle.is_empty() || !self.ways.is_empty() {
                    self.left.early -= 1;
                }
                let mut steps = Steps::new();
                self.nodes[usize::from(node)].blade.retry(TAG, &mut steps);
                self.run(rack, node, steps, None)?;
            }
            Move::Fail => self.fail(rack),
            Move::Settle => self.settle(rack)?,
        }
        super::oracle::check(self, rack)
    }

    fn step(&mut self, rack: &Rack, thread: usize, next: Option<usize>) -> Result<(), Complaint> {
        let node = self.threads[thread].node;
        let here = usize::from(node);
        let mut steps = Steps::new();
        if self.threads[thread].at == At::Outside {
            let access = rack.next(self, thread).expect("it has something to do");
            let (entered, _) = self.nodes[here].blade.enter(TAG, access, &mut steps);
            match entered {
                Some(entered) => self.let_in(rack, thread, entered, false)?,
                None => self.threads[thread].at = At::Waiting,
            }
        } else {
            let access = self.end(rack, thread);
            let wants = next.and_then(|next| rack.next(self, next));
            let blade = &mut self.nodes[here].blade;
            let entered = blade.leave(TAG, access, wants, &mut steps);
            match (entered, next) {
                (Some(entered), Some(next)) => self.let_in(rack, next, entered, false)?,
                (None, Some(next)) => self.threads[next].at = At::Waiting,
                _ => {}
            }
        }
        self.run(rack, node, steps, None)
    }

    /// Something dies. Nobody knows yet.
    fn fail(&mut self, rack: &Rack) {
        self.stage = Stage::Failed;
        let (switch, node) = match rack.scenario.failure {
            Failure::Node(node) => (false, Some(node)),
            Failure::Switch(node) => (true, node),
            Failure::None | Failure::Fenced(_) => (false, None),
        };
        if switch {
            self.serves = Serves::Nobody;
            self.ways.retain(|way, _| way.1 != DIRECTORY);
        }
        if let Some(node) = node {
            self.nodes[usize::from(node)].up = false;
            let gone = self.threads.iter_mut().filter(|t| t.node == node);
            gone.for_each(|thread| thread.at = At::Gone);
            self.oracle.numbered[usize::from(node)] = None;
            self.ways.retain(|way, _| way.1 != node);
        }
    }

    /// The next epoch. What nodes tell each other for it is explored elsewhere; here it is one step.
    fn settle(&mut self, rack: &Rack) -> Result<(), Complaint> {
        self.stage = Stage::Settled;
        if let Failure::Fenced(node) = rack.scenario.failure {
            self.nodes[usize::from(node)].fenced = true;
            let inside = |t: &super::world::Thread| t.node == node && t.at == At::Inside;
            if self.threads.iter().any(inside) {
                self.witness(Witness::FencedInside);
            }
        }
        let lives = |node: &super::world::Node| node.up && !node.fenced;
        let (last, got) = self.oracle.tenure;
        let dead = !lives(&self.nodes[usize::from(last)]);
        self.oracle.doubt = dead.then_some(got);
        let numbers = (0u16..).zip(&self.nodes);
        let live = numbers.filter(|(_, node)| lives(node));
        let live = live.fold(Copyset::EMPTY, |set, (number, _)| set.with(number));
        self.epoch += 1;
        let (epoch, before) = (self.epoch, self.entry());
        let reports: Vec<_> = (0u16..)
            .zip(&self.nodes)
            .filter(|(number, _)| live.contains(*number))
            .flat_map(|(number, node)| {
                node.blade
                    .reports()
                    .map(move |(_, report)| (number, report))
            })
            .collect();
        let died = live.len() < self.nodes.len() as u32;
        let tell = |_, each: &mut dyn FnMut(_, _)| {
            reports.iter().for_each(|(number, report)| {
                let mut report = *report;
                if rack.has(Mutation::SettleOldest) {
                    report.age = u64::MAX - report.age;
                }
                each(*number, report);
            });
        };
        self.home.enter_epoch(epoch, live, died, tell, |_| before);
        self.serves = match self.serves {
            Serves::Switch(_) => placed(&mut self.home, epoch),
            _ => Serves::Home,
        };
        let switch = matches!(self.serves, Serves::Switch(_));
        let late =
            rack.has(Mutation::ForgetEpoch) || matches!(rack.scenario.failure, Failure::Fenced(_));
        if !late {
            // Everybody would drop them.
            self.ways.retain(|_, _| false);
        }
        for number in live.iter() {
            let mut steps = Steps::new();
            let blade = &mut self.nodes[usize::from(number)].blade;
            blade.enter_epoch(epoch, live, switch);
            blade.resume(TAG, &mut steps);
            self.oracle.numbered[usize::from(number)] = None;
            self.run(rack, number as u8, steps, None)?;
        }
        Ok(())
    }
}

fn detour(from: u8) -> u8 {
    match from {
        DIRECTORY => DIRECTORY - 1,
        node => node | DETOUR,
    }
}
