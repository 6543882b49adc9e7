//! What the search must know of the object it judges.

use std::hash::Hash;

/// How an operation relates to the state it meets. The search leans on it, so a wrong answer makes
/// it wrong; *may* and *always* below are over all states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Never changes the state.
    Reads,
    /// Possible in every state and leaves the same one in all, whatever it meets.
    Overwrites,
    /// Anything else.
    Depends,
}

/// The states an operation may lead to from a different one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Makes<State> {
    /// It never changes the state.
    Nothing,
    /// This one and no other.
    One(State),
    /// No telling.
    Any,
}

/// A sequential object.
pub trait Model {
    /// One operation with its answer, if one is known.
    type Op: Copy + Eq + Hash;
    /// A state, small: models with large ones number them, from 0 without large gaps.
    type State: Copy + Eq + Into<u64>;

    /// The state after an operation, `None` where its answer is impossible in this state. A known
    /// answer is checked; an unknown one is whatever it would have been.
    fn step(&mut self, state: Self::State, op: Self::Op) -> Option<Self::State>;

    /// The kind of an operation.
    fn effect(&self, op: Self::Op) -> Effect;

    /// The one definite state that an operation with its answer is possible in,
    /// if there is only one.
    fn needs(&mut self, op: Self::Op) -> Option<Self::State>;

    /// The states that an operation with its answer may lead to.
    fn makes(&mut self, op: Self::Op) -> Makes<Self::State>;
}
