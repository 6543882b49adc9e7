//! A thread of transactions: it takes one lock after the other,
//! and leaves all when it has committed, or when one was not to be had.

use super::super::accessing::Tally;
use super::super::node::ModelNode;
use super::super::program::{Goal, Next, Steps};
use super::super::{Costs, Workload};
use super::Transactions;
use super::locks::Locks;
use super::mix::{Need, Part, Terminal};
use crate::world::Random;
use rackmem_proto::engine::Then;
use std::collections::VecDeque;

/// The first pause of who did not get a lock, at most, in nanoseconds;
/// it doubles with every attempt. So long does a transaction pause that begins again, too.
const PAUSE: u64 = 1_000;
/// How often a transaction that begins again is twice as patient.
const DOUBLINGS: u32 = 6;
/// What a transaction does with a row beside looking at it, in nanoseconds.
pub const WORK: u64 = 500;

#[cfg(test)]
std::thread_local! {
    /// Locks to write are not left by threads of models that this thread runs.
    pub(super) static KEEPS_LOCKS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[cfg(test)]
fn keeps_locks() -> bool {
    KEEPS_LOCKS.get()
}

#[cfg(not(test))]
fn keeps_locks() -> bool {
    false
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// On its first pass over its warehouse: the next block.
    Warming(u32),
    /// Between transactions, or between parts of one.
    Between,
    /// Accesses the block of what it needs next.
    Locking,
    /// Has not got the lock, and tries again.
    Waiting,
    /// Leaves its locks, because it has committed or because it has not.
    Leaving(bool),
    /// Leaves one that it has read under.
    Left(bool),
}

/// What was counted of a thread.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counted {
    /// Transactions.
    pub tally: Tally,
    /// Parts that have committed, and tries of one that have not.
    pub parts: u64,
    /// See above.
    pub aborts: u64,
    /// Locks that were taken.
    pub locks: u64,
    /// Accesses to blocks, and of these, those that were not here.
    pub accesses: u64,
    /// See above.
    pub misses: u64,
}

/// See the module.
pub struct Acting {
    costs: Costs,
    random: Random,
    terminal: Terminal,
    /// Blocks of its warehouse, and of the items.
    warms: [std::ops::Range<u32>; 2],
    /// How long it waits for a lock at first.
    patience: u64,
    /// What is left of a transaction.
    parts: VecDeque<Part>,
    began: u64,
    /// Of the part: how much it has, and how often it was begun.
    at: usize,
    tries: u32,
    /// Locks that it has.
    held: Vec<Need>,
    /// Of the lock that it needs: since when, how often it was tried, and whether it has it.
    since: u64,
    attempt: u32,
    taken: bool,
    state: State,
    pub(super) counted: Counted,
    any_missed: bool,
    ended: u64,
    overlaps: u64,
    stops: bool,
}

impl Acting {
    /// A thread that has done nothing.
    pub fn new(
        costs: Costs,
        workload: &Workload<Transactions>,
        (w, random): (u32, Random),
    ) -> Self {
        let base = workload.database();
        let Transactions {
            remote, patience, ..
        } = workload.program;
        let first = w * base.blocks_each();
        let items = base.blocks() - base.items_blocks()..base.blocks();
        Acting {
            costs,
            random,
            terminal: Terminal::new(base, w, (workload.nodes.into(), remote.into())),
            warms: [first..first + base.blocks_each(), items],
            patience,
            parts: VecDeque::new(),
            began: 0,
            at: 0,
            tries: 0,
            held: Vec::new(),
            since: 0,
            attempt: 0,
            taken: false,
            state: State::Warming(0),
            counted: Counted::default(),
            any_missed: false,
            ended: 0,
            overlaps: 0,
            stops: false,
        }
    }

    fn access(&mut self, state: State, (block, writes): (u32, bool), look: u64) -> Next {
        self.state = state;
        self.counted.accesses += 1;
        Next::Access(Goal { block, writes }, look)
    }

    /// The next block of the first pass.
    fn warm(&mut self, now: u64, nth: u32) -> Next {
        let [own, items] = &self.warms;
        let next = own.clone().map(|block| (block, true));
        let mut next = next.chain(items.clone().map(|block| (block, false)));
        match next.nth(nth as usize) {
            Some(goal) => self.access(State::Warming(nth + 1), goal, self.costs.cold),
            None => self.begin(now),
        }
    }

    /// The next part, or the next transaction.
    fn begin(&mut self, now: u64) -> Next {
        self.state = State::Between;
        if self.parts.is_empty() {
            if self.stops {
                return Next::Stop;
            }
            self.parts = self.terminal.draw(&mut self.random).into();
            (self.began, self.any_missed, self.tries) = (now, false, 0);
        }
        self.at = 0;
        self.need(now)
    }

    /// What it needs next; with all of it the part commits.
    fn need(&mut self, now: u64) -> Next {
        let next = self.parts.front().and_then(|part| part.get(self.at));
        match next.copied() {
            Some(need) => {
                (self.since, self.attempt) = (now, 0);
                self.reach(need)
            }
            None => self.leave(now, true),
        }
    }

    /// To lock is a call, and to read is another one.
    fn reach(&mut self, need: Need) -> Next {
        let more = if need.lock().is_some() {
            self.costs.hit
        } else {
            0
        };
        let writes = matches!(need, Need::Write(_));
        let look = self.costs.cold + more + WORK;
        self.access(State::Locking, (need.block(), writes), look)
    }

    /// Has looked at a lock.
    fn looked(&mut self, now: u64) -> Next {
        let need = self
            .parts
            .front()
            .and_then(|part| part.get(self.at))
            .copied();
        let Some(need) = need else {
            return self.leave(now, true);
        };
        if self.taken {
            if need.lock().is_some() {
                self.held.push(need);
                self.counted.locks += 1;
            }
            self.at += 1;
            return self.need(now);
        }
        let patience = self.patience << self.tries.min(DOUBLINGS);
        if now - self.since >= patience {
            self.counted.aborts += 1;
            return self.leave(now, false);
        }
        self.state = State::Waiting;
        self.attempt += 1;
        Next::Work(self.random.pause(PAUSE, self.attempt))
    }

    /// Leaves the lock that it has taken last: one to write with what it has changed,
    /// which is two calls.
    fn leave(&mut self, now: u64, commits: bool) -> Next {
        let Costs { cold, hit, .. } = self.costs;
        match self.held.last() {
            Some(Need::Write(cell)) => {
                let look = cold + if commits { hit } else { 0 };
                self.access(State::Leaving(commits), (cell.block, true), look)
            }
            Some(_) => {
                self.state = State::Left(commits);
                Next::Work(cold)
            }
            None if commits => self.committed(now),
            None => {
                self.tries += 1;
                self.state = State::Between;
                Next::Work(self.random.pause(PAUSE, self.tries))
            }
        }
    }

    fn committed(&mut self, now: u64) -> Next {
        self.counted.parts += 1;
        self.parts.pop_front();
        self.tries = 0;
        if self.parts.is_empty() {
            let took = now - self.began;
            self.counted.tally.ends(took, self.any_missed);
            self.ended += 1;
        }
        self.begin(now)
    }

    /// The word of a lock is here.
    fn unlock(&mut self, locks: &mut Locks) {
        if let Some((lock, writes)) = self.held.pop().and_then(Need::lock) {
            locks.occupied.moves(lock, writes, -1);
            if !(writes && keeps_locks()) {
                locks.leave(lock, writes);
            }
        }
    }
}

impl Steps for Acting {
    type Shared = Locks;
    const FORGETS_REFUSALS: bool = true;

    fn next(&mut self, now: u64, missed: bool, _: &ModelNode, locks: &mut Locks) -> Next {
        if matches!(self.state, State::Locking | State::Leaving(_)) {
            self.counted.misses += u64::from(missed);
            self.any_missed |= missed;
        }
        match self.state {
            State::Warming(nth) => self.warm(now, nth),
            State::Between => self.begin(now),
            State::Locking => self.looked(now),
            State::Waiting => match self.parts.front().and_then(|part| part.get(self.at)) {
                Some(need) => self.reach(*need),
                None => self.leave(now, true),
            },
            State::Leaving(commits) => self.leave(now, commits),
            State::Left(commits) => {
                self.unlock(locks);
                self.leave(now, commits)
            }
        }
    }

    fn execute(&mut self, locks: &mut Locks, _: bool) -> bool {
        match self.state {
            State::Locking => {
                let need = self.parts.front().and_then(|part| part.get(self.at));
                let lock = need.and_then(|need| need.lock());
                self.taken = lock.is_none_or(|(lock, writes)| locks.take(lock, writes));
                if let (true, Some((lock, writes))) = (self.taken, lock) {
                    let alone = locks.occupied.moves(lock, writes, 1);
                    self.overlaps += u64::from(!alone);
                }
            }
            State::Leaving(_) => self.unlock(locks),
            _ => {}
        }
        true
    }

    fn refused(&mut self, _: Then) {
        self.counted.tally.refused += 1;
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn is_warm(&self) -> bool {
        !matches!(self.state, State::Warming(_))
    }

    fn ended(&mut self) -> u64 {
        std::mem::take(&mut self.ended)
    }

    fn reset(&mut self) {
        self.counted = Counted::default();
    }

    fn stop(&mut self) {
        self.stops = true;
    }

    /// Locks that it has count, too: of a thread that has ended these are locks that nobody leaves.
    fn overlaps(&self) -> u64 {
        self.overlaps + self.held.len() as u64
    }
}
