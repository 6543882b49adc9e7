//! One seeded way through a system that is too large to be visited whole.

use super::shrink::Way;
use super::system::{Complaint, System};

/// Decides where a walk goes.
pub trait Guide<S: System> {
    /// One of the moves. Sees every state on the way.
    fn choose(&mut self, state: &S::State, moves: &[S::Move]) -> Option<S::Move>;
}

/// Goes one way to the end of everything, in so many moves at most. The way, the state where it
/// ends, and the promise that is broken there, if any.
pub fn walk<S: System>(
    system: &mut S,
    guide: &mut impl Guide<S>,
    limit: u64,
) -> (Way<S>, S::State, Option<Complaint>) {
    let mut state = system.first();
    let mut way = Vec::new();
    let broken = loop {
        if let Some(complaint) = system.broken(&state) {
            break Some(complaint);
        }
        if system.done(&state) {
            break None;
        }
        let moves = system.moves(&state);
        let Some(step) = guide.choose(&state, &moves).filter(|_| !moves.is_empty()) else {
            break Some(system.stuck(&state));
        };
        way.push(step);
        if way.len() as u64 > limit {
            let (promise, section, _) = system.stuck(&state);
            break Some((promise, section, format!("not after {limit} moves")));
        }
        if let Err(complaint) = system.apply(&mut state, step) {
            break Some(complaint);
        }
    };
    (way, state, broken)
}
