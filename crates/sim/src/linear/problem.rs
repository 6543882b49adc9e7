//! From operations with times to what the search works on: an order of events.

use super::Limits;
use super::model::{Effect, Model};
use super::register::{Register, RegisterOp, RegisterState};
use super::search::{self, Searched};
use crate::history::{Operation, Outcome};

/// An operation of the model with its times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed<Op> {
    /// The operation.
    pub op: Op,
    /// When it was invoked.
    pub invoke: u64,
    /// The time by which it has happened; `None` where it may happen at any later time, or never.
    pub by: Option<u64>,
}

/// The model's form of a key's operations, one for one.
pub(super) fn timed(model: &mut Register, operations: &[&Operation]) -> Vec<Timed<RegisterOp>> {
    let form = |operation: &&Operation| Timed {
        op: model.op(operation),
        invoke: operation.invoke,
        by: match operation.outcome {
            Outcome::Ok { at, .. } => Some(at),
            Outcome::Fail { .. } | Outcome::Unknown => None,
        },
    };
    operations.iter().map(form).collect()
}

/// Searches for an order of operations from a state on.
pub(super) fn solve(
    model: &mut Register,
    timed: &[Timed<RegisterOp>],
    start: RegisterState,
    limits: Limits,
) -> Searched {
    let problem = Problem::new(model, timed);
    search::search(model, &problem, start, limits.configurations)
}

/// Operations split into those that happened and those that may have, with the invocations and
/// returns of the former in order of time. Numbers below `certain` are operations that happened, in
/// order of invocation; the others follow, also in order of invocation.
#[derive(Debug)]
pub(super) struct Problem<Op> {
    /// The operations by number.
    pub ops: Vec<Op>,
    /// How many of them happened.
    pub certain: usize,
    /// Events in order: whose, and whether it is the return.
    pub events: Vec<Event>,
    /// For each operation that may have happened: the first event after its invocation.
    pub after: Vec<u32>,
    /// For each operation that may have happened: the one before it that is just the same,
    /// which may as well be taken first.
    pub twin: Vec<Option<u32>>,
}

/// The invocation or the return of an operation that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub op: u32,
    pub is_return: bool,
}

impl<Op: Copy + Eq + std::hash::Hash> Problem<Op> {
    fn new<M: Model<Op = Op>>(model: &M, timed: &[Timed<Op>]) -> Self {
        let in_order = |certain: bool| {
            let mut places: Vec<usize> = (0..timed.len())
                .filter(|&place| timed[place].by.is_some() == certain)
                // What changes nothing and need not have happened says nothing.
                .filter(|&place| certain || model.effect(timed[place].op) != Effect::Reads)
                .collect();
            places.sort_by_key(|&place| timed[place].invoke);
            places
        };
        let (certain, maybe) = (in_order(true), in_order(false));
        // At the same instant invocations come first: the operations overlap.
        let mut events: Vec<(u64, bool, u32)> = Vec::with_capacity(2 * certain.len());
        for (number, &place) in certain.iter().enumerate() {
            let number = index(number);
            events.push((timed[place].invoke, false, number));
            events.push((timed[place].by.unwrap_or(u64::MAX), true, number));
        }
        events.sort_unstable();
        let after = |&place: &usize| {
            let invoke = (timed[place].invoke, false, 0);
            index(events.partition_point(|&event| event < invoke))
        };
        Problem {
            ops: certain.iter().chain(&maybe).map(|&p| timed[p].op).collect(),
            certain: certain.len(),
            after: maybe.iter().map(after).collect(),
            twin: twins(maybe.iter().map(|&place| timed[place].op)),
            events: events
                .iter()
                .map(|&(_, is_return, op)| Event { op, is_return })
                .collect(),
        }
    }
}

/// For each operation the last one before it that is equal.
fn twins<Op: Eq + std::hash::Hash>(ops: impl Iterator<Item = Op>) -> Vec<Option<u32>> {
    let mut last = std::collections::HashMap::new();
    ops.enumerate()
        .map(|(number, op)| last.insert(op, index(number)))
        .collect()
}

/// Operations are numbered in 32 bits; a history is bounded far below.
pub(super) fn index(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^31 operations on a key")
}
