//! Replicated memory, judged: a small world of ABD, visited whole or at random.
//!
//! A [`Scenario`] is a group of a few members, the threads that read and write its lines, and a
//! [`Budget`] of what may go wrong.
//! [`driver::explore`](crate::driver::explore) visits every state that any order of packets, lost
//! and doubled ones, timeouts, restarts, deaths and steps of the group lead to; [`walk()`] goes one
//! seeded way through a larger rack. Both run the shipped value with its bytes
//! ([`rackmem_proto::abd::ReplicatedMemory`]) and the shipped program of the switch,
//! and check after every move:
//!
//! | promise | where |
//! |---|---|
//! | one value a stamp, one stamp a write | `judge` |
//! | a line is of one write, never half of one and half of another | `judge` |
//! | an operation sees what had completed when it began | `judge` |
//! | what has completed is known to one of every quorum that can still answer, of every config | `judge` |
//! | at the end of a walk: its history is linearizable | [`linear`](crate::linear) |
//! | every operation ends: from every state a way leads to the end of everything | [`driver`](crate::driver) |
//!
//! Packets come in any order. Asking again is free when nothing is in flight: that is the promise
//! of liveness once faults stop. What an operation does not wait for any more is taken out of the
//! network at once, since it changes nothing; with a planted defect of how answers are counted,
//! answers stay.

mod catalogue;
pub mod figure;
mod judge;
mod restart;
mod scenario;
mod system;
#[cfg(test)]
mod tests;
mod walk;
mod witness;
mod world;

pub use catalogue::{SCENARIOS, WALKS};
pub use scenario::{Budget, Op, Scenario, Store};
pub use system::SUITE;
pub use walk::{Broken, walk};
pub use witness::Witness;
