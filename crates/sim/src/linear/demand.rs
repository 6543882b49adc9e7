//! Which states are still needed, and can still be made.
//!
//! A value that a waiting operation was shown must not be overwritten while no waiting operation
//! can bring it back; and where several replace it, each needs it brought back once more. Without
//! this the search finds out long after, when the time of one of them is up.

use super::model::{Makes, Model};
use super::problem::Problem;

/// Counts over the operations not yet placed.
#[derive(Debug)]
pub(super) struct Demand {
    /// By state: operations that happened, need it and leave it.
    leaving: Vec<u32>,
    /// By state: operations that happened, need it and stay.
    staying: Vec<u32>,
    /// By state: operations that can lead to it, each once.
    makers: Vec<u32>,
    /// Operations that may lead to any state.
    makers_of_any: u32,
    /// By operation: the state it needs, where it happened and needs one.
    needs: Vec<Option<usize>>,
    /// By operation.
    makes: Vec<Made>,
}

#[derive(Clone, Copy, Debug)]
enum Made {
    Nothing,
    One(usize),
    Any,
}

/// States with numbers from here on are not counted, and so never protected.
const MAX_STATES: usize = 1 << 26;

impl Demand {
    pub fn new<M: Model>(model: &mut M, problem: &Problem<M::Op>) -> Self {
        let number = |state: M::State| usize::try_from(state.into()).unwrap_or(usize::MAX);
        let needs = problem.ops.iter().enumerate().map(|(op, &value)| {
            let is_certain = op < problem.certain;
            let state = is_certain.then(|| model.needs(value)).flatten();
            state.map(number).filter(|&state| state < MAX_STATES)
        });
        let needs: Vec<Option<usize>> = needs.collect();
        let makes = problem.ops.iter().map(|&value| match model.makes(value) {
            Makes::Nothing => Made::Nothing,
            Makes::Any => Made::Any,
            Makes::One(state) if number(state) < MAX_STATES => Made::One(number(state)),
            Makes::One(_) => Made::Nothing,
        });
        let makes: Vec<Made> = makes.collect();
        let states = needs.iter().flatten().copied();
        let states = states.chain(makes.iter().filter_map(|made| match made {
            Made::One(state) => Some(*state),
            Made::Nothing | Made::Any => None,
        }));
        let len = states.max().map_or(0, |last| last + 1);
        let mut demand = Demand {
            leaving: vec![0; len],
            staying: vec![0; len],
            makers: vec![0; len],
            makers_of_any: 0,
            needs,
            makes,
        };
        for op in 0..problem.ops.len() {
            demand.put_back(op);
        }
        demand
    }

    /// Whether leaving a state by placing `op` would strand other operations.
    pub fn forbids_leaving(&self, state: u64, op: usize) -> bool {
        let Ok(state) = usize::try_from(state) else {
            return false;
        };
        let Some(&leaving) = self.leaving.get(state) else {
            return false;
        };
        let own = u32::from(self.needs[op] == Some(state) && self.leaves(op));
        let returns_to_it = self.makers[state] + self.makers_of_any;
        leaving - own > returns_to_it || (self.staying[state] > 0 && returns_to_it == 0)
    }

    /// Whether an operation that needs a state is known to lead to another.
    fn leaves(&self, op: usize) -> bool {
        match (self.makes[op], self.needs[op]) {
            (Made::One(made), Some(needed)) => made != needed,
            _ => false,
        }
    }

    /// The count that an operation's need goes into.
    fn count(&mut self, op: usize) -> Option<&mut u32> {
        let state = self.needs[op]?;
        let counts = match self.leaves(op) {
            true => &mut self.leaving,
            false => &mut self.staying,
        };
        counts.get_mut(state)
    }

    /// Counts an operation as placed.
    pub fn place(&mut self, op: usize) {
        if let Some(count) = self.count(op) {
            *count -= 1;
        }
        match self.makes[op] {
            Made::Nothing => {}
            Made::One(state) => self.makers[state] -= 1,
            Made::Any => self.makers_of_any -= 1,
        }
    }

    /// Counts an operation as waiting again.
    pub fn put_back(&mut self, op: usize) {
        if let Some(count) = self.count(op) {
            *count += 1;
        }
        match self.makes[op] {
            Made::Nothing => {}
            Made::One(state) => self.makers[state] += 1,
            Made::Any => self.makers_of_any += 1,
        }
    }
}
