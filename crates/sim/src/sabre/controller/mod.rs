//! The paper's controller, judged: it reads an object while cores write it, visited whole.
//!
//! The shipped value runs ([`rackmem_proto::sabre::controller`]), with its sources. The chip around
//! it: a directory that knows which blocks the controller has loaded, writers whose stores become
//! visible in order (TSO), each of them after the controller has been told of it, and loads that
//! return in any order. A block that waits for its store is not loaded. What has been loaded may be
//! evicted, of which the controller is told as of a store. Every block of the object says which
//! write it is of.
//!
//! | promise | where |
//! |---|---|
//! | a SABRe that succeeds has blocks of one write, which was current during it | `world` |
//! | each request has one reply | `world` |
//! | one is aborted only beside a writer, or by an eviction in its window | `world` |
//! | readers give back the locks that they took | `world` |
//! | every SABRe and every write ends | [`driver`](crate::driver) |
//!
//! The third is weaker than one would like: while the window is open, an eviction cannot be told
//! from a store, and the paper's controller aborts.

mod catalogue;
mod scenario;
mod system;
mod world;

pub use catalogue::SCENARIOS;
pub use scenario::{Fault, Scenario};
pub use system::Chip;
