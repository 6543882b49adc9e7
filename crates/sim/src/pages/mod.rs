//! Mapped memory, judged: threads that load and store on several nodes, whose processors ask nobody
//! and whose stores wait in buffers, while pages come and are taken away.
//!
//! Which right a page has, what is done for a fault or before a copy is given away, and for how
//! long a page stays is [`rackmem_proto::pages`], as in the library. Modelled are the processor and
//! the system: a store buffer for each thread (x86-TSO), rights that a thread goes on using until
//! the shootdown has reached it, pages that leave a mapping by themselves. An event of a block is
//! what FlowCC makes of it, whose packets have an explorer of their own ([`crate::explore`]): one
//! at a time, and those who have a copy each in their own time.
//!
//! | promise | where |
//! |---|---|
//! | a load is of the last store that has left its buffer, a call of one moment | `world` |
//! | one node has a right to store, or several to load | `judge` |
//! | no right is more than the copy allows, or than the entry says | `judge` |
//! | no store is lost | `judge` |
//! | threads see what x86-TSO allows (the scenario's litmus) | `judge` |
//! | a system call finds what is pinned, until its time is over | `world` |
//! | a node that cannot show that it is alive loads nothing | `world` |
//! | every instruction ends | [`driver`](crate::driver) |

mod catalogue;
mod judge;
mod scenario;
mod system;
mod world;

pub use catalogue::SCENARIOS;
pub use scenario::{Events, Op, Scenario, Seen, Sight, Var};
pub use system::SUITE;
