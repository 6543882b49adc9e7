//! Cachers with copies of what a home serves, judged: every state of small racks.
//!
//! The shipped values run at every node ([`rackmem_proto::bi::cached`]), over a network that loses,
//! doubles and reorders. Node 0 is the home, node 1 a member whose threads read and write; threads
//! of node 2 write only. The member's steps are those of a host: it hears, drops, and says that it
//! has quiesced, and its threads may do something in between.
//!
//! | promise | where |
//! |---|---|
//! | what a section reads was current within the bound (P2) | `world` |
//! | a write takes effect once | `world` |
//! | what a member reads of an item never goes back, and its own writes are seen | `world` |
//! | every operation ends | [`driver`](crate::driver) |

mod catalogue;
mod system;
mod world;

pub use catalogue::{Op, SCENARIOS, Scenario, Sight};
