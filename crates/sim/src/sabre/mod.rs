//! Objects, judged: a home, threads of its own process and threads elsewhere, visited whole.
//!
//! The shipped values run: [`rackmem_proto::sabre::Sabre`] at every node, and the rule of versions
//! ([`rackmem_proto::sabre::rule`]) in threads of the home's process, a load or a store at a time.
//! An object is two granules, each of which says which write it is of.
//!
//! | promise | where |
//! |---|---|
//! | a read is of one write, never parts of two | `judge` |
//! | and of one that was current during it, of the object that was meant | `judge` |
//! | a write takes effect once, and has when it is acknowledged | `judge` |
//! | a conditional write follows the version that it names | `judge` |
//! | versions rise, and stay where nothing has changed | `judge` |
//! | every operation ends: from every state a way leads to the end of everything | [`driver`](crate::driver) |
//!
//! Packets come in any order, may be lost and come twice; what an answer brings that nobody waits
//! for is dropped. Epochs, and homes and coordinators that die, are in [`transaction`];
//! objects that outlive their homes in [`kept`].

mod catalogue;
pub mod controller;
mod judge;
pub mod kept;
mod memory;
mod scenario;
pub mod soc;
mod system;
pub mod transaction;
mod world;

pub use catalogue::SCENARIOS;
pub use scenario::{Budget, Op, Scenario, Which};
pub use system::SUITE;
