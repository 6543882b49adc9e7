//! The explorer: every state that a small rack can get into.
//!
//! A [`Scenario`] is a rack of a few nodes and blocks whose threads have a few operations each,
//! and a [`Budget`] of what may go wrong. [`explore`] visits, breadth first, every state that any
//! order of packets, any choice of lost, doubled and late ones, any timeouts and any turns of the
//! threads lead to, and checks [`invariants`](crate::invariants) in each. Roles are the shipped
//! values, put together as in seeded worlds ([`site`](crate::site)); what waits (`drive`) follows
//! the library's threads, cut where they block. What can happen is in `moves`,
//! with the reductions and why they are sound.
//!
//! *Every operation ends*: the graph of states is kept, and from every state some way must lead to
//! one where all operations have ended, all unlocks are acknowledged and nothing is in flight.
//! Retransmissions are free once nothing is in flight, so this is the promise of liveness once
//! faults stop, and a lock that nobody gives back breaks it.
//!
//! *Every “always” has a “sometimes”*: a scenario names what must have been seen somewhere
//! ([`Witness`]).
//!
//! A state is a few numbers: each node and the switch is kept once for each state it gets into,
//! compared byte for byte, and what a step does to it is worked out once (`parts`). Of a visited
//! state 128 bits are kept (`state` says what the odds of a mistake are). Nodes are not taken for
//! interchangeable: an owner's choice of the provider depends on the requester's number, so mirror
//! images behave differently. Moves of different parts are not pruned either: whatever is left out
//! because "it commutes" would have to commute with a retransmission as well.

mod catalogue;
mod checks;
mod choices;
mod drive;
mod effects;
mod epoch;
mod inside;
mod keeping;
mod layout;
mod moves;
mod node;
mod packet;
mod parts;
mod plan;
mod rebuild;
mod scenario;
mod state;
mod story;
mod system;
mod thread;
mod view;
mod watch;
mod witness;

pub use crate::driver::{Ended, Limits, MAX_STATES, Progress, Report, Violation};
pub use catalogue::SCENARIOS;
pub use scenario::{Budget, Failure, Op, Program, Scenario, Size};
pub use system::{SUITE, explore};
pub use witness::Witness;
