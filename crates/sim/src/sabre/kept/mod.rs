//! Objects of a home that a group keeps, judged: small racks whose keeper dies, visited whole.
//!
//! The shipped values run: [`rackmem_proto::sabre::Sabre`] at the keepers and at every requester.
//! The group is what a majority has of each line, which ABD's own explorer shows
//! ([`crate::abd`], `abd-home-fails-over`): what is on its way to a majority when a keeper dies is
//! there afterwards, or is not. A keeper that dies may still answer reads of the old epoch, as long
//! as somebody is in that.
//!
//! | promise | where |
//! |---|---|
//! | a read is of one write, never parts of two | `judge` |
//! | and of one that a majority had during it, of the object that was meant | `judge` |
//! | a call takes effect once, and has when it is acknowledged | `judge` |
//! | a conditional write follows the version that it names | `judge` |
//! | what a transaction has read is of one moment | `judge` |
//! | versions rise with every change | `judge` |
//! | no place is given to two, and none is lost | `judge` |
//! | every operation ends: from every state a way leads to the end of everything | [`driver`](crate::driver) |

mod catalogue;
mod judge;
mod scenario;
mod system;
mod world;

pub use catalogue::SCENARIOS;
pub use scenario::{Budget, Op, Scenario};
