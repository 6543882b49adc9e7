//! Transactions over objects of several homes, judged: small racks with deaths, visited whole.
//!
//! The shipped values run: [`rackmem_proto::sabre::Sabre`] at every node, coordinator and
//! participant in one. Threads read objects where they lie, as those of one host do, and write
//! them by transactions, or alone. Nodes die, and those that live go through the epoch one by one.
//!
//! | promise | where |
//! |---|---|
//! | there is one order of all that took effect, and real time is in it | `judge`, [`crate::serial`] |
//! | a transaction takes effect with all of its writes, or with none | `judge` |
//! | it has when that is said, and never does when that is said | `judge` |
//! | versions rise with every write, and stay where nothing has changed | `judge` |
//! | no object stays locked when everything has ended | `world` |
//! | every operation ends: from every state a way leads to the end of everything | [`driver`](crate::driver) |
//!
//! Weaker than it could be: of a rack one node dies. A transaction whose coordinator dies together
//! with a home that has committed may be lost at the others.

mod catalogue;
mod judge;
mod scenario;
mod system;
mod world;

pub use catalogue::SCENARIOS;
pub use scenario::{Budget, Op, Scenario};
