//! What a protocol brings to the driver.

use super::waiting::Waiting;
use std::fmt::Debug;

/// A broken promise: its name, where it is made, and what was seen.
pub type Complaint = (&'static str, &'static str, String);

/// What is wrong with a state from which no way leads to the end, by who waits in it.
pub fn endless(section: &'static str, waits: impl Iterator<Item = bool>) -> Complaint {
    let waits = waits.enumerate().filter(|(_, waits)| *waits);
    let threads: Vec<usize> = waits.map(|(thread, _)| thread).collect();
    let detail = format!("no way leads to the end; threads {threads:?} wait");
    ("every operation ends", section, detail)
}

/// Something with states, in which one thing happens after the other.
pub trait System {
    /// Everything there is at one time.
    type State: Waiting;
    /// One thing that happens.
    type Move: Copy + PartialEq + Debug;

    /// The state in which nothing has happened.
    fn first(&self) -> Self::State;

    /// Everything that can happen, in an order that is always the same.
    fn moves(&mut self, state: &Self::State) -> Vec<Self::Move>;

    /// Does one of [`moves`](Self::moves), and checks what must hold whenever something happens.
    fn apply(&mut self, state: &mut Self::State, step: Self::Move) -> Result<(), Complaint>;

    /// Every move with the state that follows, up to the first that breaks a promise.
    fn successors(
        &mut self,
        state: &Self::State,
        into: &mut Vec<(Self::Move, Self::State)>,
    ) -> Result<(), (Self::Move, Complaint)> {
        into.clear();
        for step in self.moves(state) {
            let mut next = state.clone();
            match self.apply(&mut next, step) {
                Ok(()) => into.push((step, next)),
                Err(complaint) => return Err((step, complaint)),
            }
        }
        Ok(())
    }

    /// The first promise that a state breaks by itself.
    fn broken(&mut self, state: &Self::State) -> Option<Complaint>;

    /// Whether everything has ended that was to be done, and nothing is in flight.
    fn done(&self, state: &Self::State) -> bool;

    /// The complaint about a state from which no way leads to one that is done.
    fn stuck(&self, state: &Self::State) -> Complaint;

    /// The lines of a story for one move from a state.
    fn tell(&self, before: &Self::State, step: &Self::Move) -> Vec<String>;

    /// The names of what was come across so far, and of what must be and was not.
    fn seen(&self) -> [Vec<String>; 2];

    /// Figures for a report besides the driver's own.
    fn figures(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
