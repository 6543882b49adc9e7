//! The search for an order: depth first, without recursion, remembering where it has been.
//!
//! At any point the operations that may come next are those invoked before the first return of one
//! not yet placed (the *deadline*). The search places one of them, goes on, and comes back when
//! nothing fits. Five observations keep it small; each only skips orders for which another,
//! equally good one is tried:
//!
//! 1. An operation that never changes the state and fits now is placed now: doing it later allows
//!    nothing more. So there is no second choice to come back to.
//! 2. A configuration reached twice by different ways leads to the same places,
//!    and one that has used up more of what only may have happened leads to no others (`seen.rs`).
//! 3. An operation that only *may* have happened is left out where it would change nothing, where
//!    an equal earlier one is still to be placed, and where an overwrite would follow it at once.
//! 4. Operations that happened are tried first, the one that returns soonest before all others:
//!    those that may have are often not needed, and those that return late can often wait.
//! 5. A state that somebody still needs and nobody can make again is not left (`demand.rs`).
//!
//! A configuration is remembered as 128 bits: the exclusive or of a random number for each
//! operation placed, mixed with the state. Two different ones collide with a probability of 2^-128,
//! far below that of a fault of the machine.

use super::demand::Demand;
use super::model::{Effect, Model};
use super::problem::{Problem, index};
use super::seen::{COMPARED, Seen};

/// The end of a linked list.
const NONE: u32 = u32::MAX;

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// There is an order.
    Found,
    /// There is none.
    Impossible,
    /// The limit was reached.
    GaveUp,
}

/// An answer and its price.
#[derive(Clone, Copy, Debug)]
pub(super) struct Searched {
    pub answer: Answer,
    pub configurations: usize,
}

/// Where to look for the next operation to place.
#[derive(Clone, Copy, Debug)]
enum Cursor {
    /// First among those that fit and change nothing.
    Fitting,
    /// Then among those that happened, by the order of their returns beyond this event.
    Happened { beyond: u32 },
    /// Then among those that may have, from this one on, where the deadline is this event.
    Maybe { number: u32, deadline: u32 },
}

/// A placed operation and what to do when the search comes back to it.
struct Placed<State> {
    op: u32,
    before: State,
    before_maybe: bool,
    resume: Option<Cursor>,
}

struct Search<'a, M: Model> {
    model: &'a mut M,
    problem: &'a Problem<M::Op>,
    /// Events of operations not yet placed.
    events: Links,
    /// Operations that may have happened, not yet placed.
    maybe: Links,
    /// By operation.
    effects: Vec<Effect>,
    is_placed: Vec<bool>,
    demand: Demand,
    /// For each operation that happened, the places of its two events.
    places: Vec<[u32; 2]>,
    placed: Vec<Placed<M::State>>,
    /// The operations placed that happened.
    happened: usize,
    state: M::State,
    /// Whether the operation placed last only may have happened.
    after_maybe: bool,
    /// The operations placed, as the exclusive or of their random numbers, but for those in `used`.
    set: u128,
    /// The first of those that may have happened, a bit for each one placed.
    used: u128,
    seen: Seen,
}

/// Searches for an order of a problem's operations from a state on.
pub(super) fn search<M: Model>(
    model: &mut M,
    problem: &Problem<M::Op>,
    start: M::State,
    limit: usize,
) -> Searched {
    let mut search = Search::new(model, problem, start);
    let answer = search.run(limit);
    Searched {
        answer,
        configurations: search.seen.len(),
    }
}

impl<'a, M: Model> Search<'a, M> {
    fn new(model: &'a mut M, problem: &'a Problem<M::Op>, start: M::State) -> Self {
        let mut places = vec![[NONE; 2]; problem.certain];
        for (place, event) in problem.events.iter().enumerate() {
            places[event.op as usize][usize::from(event.is_return)] = index(place);
        }
        Search {
            demand: Demand::new(model, problem),
            effects: problem.ops.iter().map(|&op| model.effect(op)).collect(),
            model,
            problem,
            events: Links::new(problem.events.len()),
            maybe: Links::new(problem.after.len()),
            is_placed: vec![false; problem.ops.len()],
            places,
            placed: Vec::new(),
            happened: 0,
            state: start,
            after_maybe: false,
            set: 0,
            used: 0,
            seen: Seen::default(),
        }
    }

    fn run(&mut self, limit: usize) -> Answer {
        let mut cursor = Some(Cursor::Fitting);
        while self.happened < self.problem.certain {
            let candidate = cursor.and_then(|cursor| self.candidate(cursor));
            let Some((op, resume)) = candidate else {
                match self.take_back() {
                    Some(resume) => cursor = resume,
                    None => return Answer::Impossible,
                }
                continue;
            };
            match self.try_place(op, resume) {
                Step::Placed if self.seen.len() > limit => return Answer::GaveUp,
                Step::Placed => cursor = Some(Cursor::Fitting),
                Step::Refused => cursor = resume,
            }
        }
        Answer::Found
    }

    /// The next operation that time allows from here, and where to look after it, if anywhere.
    fn candidate(&mut self, cursor: Cursor) -> Option<(u32, Option<Cursor>)> {
        match cursor {
            Cursor::Fitting => match self.fitting() {
                Some(op) => Some((op, None)),
                None => self.happened_candidate(0),
            },
            Cursor::Happened { beyond } => self.happened_candidate(beyond),
            Cursor::Maybe { number, deadline } => self.maybe_candidate(number, deadline),
        }
    }

    /// An operation that fits now and never changes the state.
    fn fitting(&mut self) -> Option<u32> {
        let mut place = self.events.first();
        loop {
            let event = self.problem.events[place as usize];
            if event.is_return {
                return None;
            }
            let op = self.problem.ops[event.op as usize];
            let reads = self.effects[event.op as usize] == Effect::Reads;
            if reads && self.model.step(self.state, op) == Some(self.state) {
                return Some(event.op);
            }
            place = self.events.after(place);
        }
    }

    fn happened_candidate(&self, beyond: u32) -> Option<(u32, Option<Cursor>)> {
        let mut place = self.events.first();
        let mut soonest = None;
        loop {
            let event = self.problem.events[place as usize];
            if event.is_return {
                break;
            }
            let returns = self.places[event.op as usize][1];
            if returns > beyond && soonest.is_none_or(|(soonest, _)| returns < soonest) {
                soonest = Some((returns, event.op));
            }
            place = self.events.after(place);
        }
        match soonest {
            Some((beyond, op)) => Some((op, Some(Cursor::Happened { beyond }))),
            None => self.maybe_candidate(self.maybe.first(), place),
        }
    }

    fn maybe_candidate(&self, number: u32, deadline: u32) -> Option<(u32, Option<Cursor>)> {
        // They are in order of invocation: the first that is too late ends the list.
        if number == NONE || self.problem.after[number as usize] > deadline {
            return None;
        }
        let next = Cursor::Maybe {
            number: self.maybe.after(number),
            deadline,
        };
        Some((index(self.problem.certain) + number, Some(next)))
    }

    fn try_place(&mut self, op: u32, resume: Option<Cursor>) -> Step {
        let number = op as usize;
        let value = self.problem.ops[number];
        let effect = self.effects[number];
        let is_maybe = number >= self.problem.certain;
        if self.after_maybe && effect == Effect::Overwrites {
            return Step::Refused;
        }
        let Some(next) = self.model.step(self.state, value) else {
            return Step::Refused;
        };
        if is_maybe && (next == self.state || self.twin_is_waiting(number)) {
            return Step::Refused;
        }
        if next != self.state && self.demand.forbids_leaving(self.state.into(), number) {
            return Step::Refused;
        }
        self.toggle(op);
        let configuration = self.set ^ mixed(next.into(), is_maybe);
        if !self.seen.visit(configuration, self.used) {
            self.toggle(op);
            return Step::Refused;
        }
        self.placed.push(Placed {
            op,
            before: self.state,
            before_maybe: self.after_maybe,
            resume,
        });
        self.state = next;
        self.after_maybe = is_maybe;
        self.unlink(op);
        Step::Placed
    }

    /// Puts an operation into the set of those placed, or takes it out.
    fn toggle(&mut self, op: u32) {
        match (op as usize).checked_sub(self.problem.certain) {
            Some(number) if number < COMPARED => self.used ^= 1 << number,
            _ => self.set ^= random_of(u64::from(op)),
        }
    }

    fn twin_is_waiting(&self, number: usize) -> bool {
        let certain = self.problem.certain;
        self.problem.twin[number - certain]
            .is_some_and(|twin| !self.is_placed[certain + twin as usize])
    }

    fn unlink(&mut self, op: u32) {
        let number = op as usize;
        self.is_placed[number] = true;
        self.demand.place(number);
        match self.places.get(number) {
            Some(&[invocation, return_]) => {
                self.events.unlink(invocation);
                self.events.unlink(return_);
                self.happened += 1;
            }
            None => self.maybe.unlink(op - index(self.problem.certain)),
        }
    }

    /// Takes back the operation placed last. `None` where none is left;
    /// else where to go on looking, if anywhere.
    fn take_back(&mut self) -> Option<Option<Cursor>> {
        let last = self.placed.pop()?;
        let number = last.op as usize;
        self.is_placed[number] = false;
        self.demand.put_back(number);
        // Links are restored in the opposite order of their removal.
        match self.places.get(number) {
            Some(&[invocation, return_]) => {
                self.events.relink(return_);
                self.events.relink(invocation);
                self.happened -= 1;
            }
            None => self.maybe.relink(last.op - index(self.problem.certain)),
        }
        self.toggle(last.op);
        self.state = last.before;
        self.after_maybe = last.before_maybe;
        Some(last.resume)
    }
}

enum Step {
    Placed,
    Refused,
}

/// A doubly linked list over `0..len` whose elements can be taken out and put back, last out first
/// in, in constant time.
struct Links {
    /// Successors, with the list's head behind the last element.
    next: Vec<u32>,
    previous: Vec<u32>,
}

impl Links {
    fn new(len: usize) -> Self {
        let len = index(len);
        let next = (1..len).chain([NONE, if len == 0 { NONE } else { 0 }]);
        let next: Vec<u32> = next.skip(usize::from(len == 0)).collect();
        let previous = [len].into_iter().chain(0..len).take(len as usize).collect();
        Links { next, previous }
    }

    fn first(&self) -> u32 {
        self.next[self.previous.len()]
    }

    fn after(&self, element: u32) -> u32 {
        self.next[element as usize]
    }

    fn unlink(&mut self, element: u32) {
        let (previous, next) = self.around(element);
        self.next[previous as usize] = next;
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }

    fn relink(&mut self, element: u32) {
        let (previous, next) = self.around(element);
        self.next[previous as usize] = element;
        if next != NONE {
            self.previous[next as usize] = element;
        }
    }

    fn around(&self, element: u32) -> (u32, u32) {
        (self.previous[element as usize], self.next[element as usize])
    }
}

/// A random number for each operation, the same in every run.
fn random_of(number: u64) -> u128 {
    let high = splitmix(number.wrapping_mul(2));
    let low = splitmix(number.wrapping_mul(2) + 1);
    u128::from(high) << 64 | u128::from(low)
}

/// A random number for each state and flag, apart from those of operations.
fn mixed(state: u64, flag: bool) -> u128 {
    const APART: u64 = 1 << 48;
    random_of(APART + state * 2 + u64::from(flag))
}

/// The output function of the SplitMix64 generator: a bijection that scatters.
fn splitmix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
