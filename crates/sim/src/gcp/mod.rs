//! Locks that are coherence, judged: a small world of GCP's roles, visited whole or at random.
//!
//! A [`Scenario`] is a rack of a few nodes, one lock, what their threads do with it, and a
//! [`Budget`] of what may go wrong.
//! [`driver::explore`](crate::driver::explore) visits every state that any order of packets, lost,
//! doubled and late ones, timeouts, deaths and turns of the threads lead to; [`walk`] goes one
//! seeded way through a larger rack, and shows a broken promise by as short a way as it finds.
//! Both check the promises of `oracle` after
//! every move, on the shipped roles.
//!
//! | promise | where |
//! |---|---|
//! | one writer, or readers, inside in the whole rack | `oracle` |
//! | data seen is the data of the last release, or the one who enters is told | `judge` |
//! | the queue exists exactly once | `oracle` |
//! | the directory knows of every copy | `oracle` |
//! | a fencing token is never lower than one before, and higher than every other node's writer's | `judge` |
//! | nobody is overtaken, and one transaction an acquisition, while nothing goes wrong | `oracle` |
//! | a death that one thread was told of is told to all until a writer has left | `judge` |
//! | a freed lock admits nobody, one that is not admits its users, and lives do not go back | `lives` |
//! | every waiter is served: from every state a way leads to the end of everything | [`driver`](crate::driver) |
//!
//! Epochs follow each other as closely as they can (`epoch`): members enter them one by one, or go
//! on to a newer one first; a home serves as soon as it has settled, while members whose control
//! plane is starved have yet to go on.
//!
//! Packets between two ends keep their order unless the budget lets one overtake.
//! Asking again is free when nothing is in flight and no thread can move: that is the promise of
//! liveness once faults stop.

mod arriving;
mod canon;
mod catalogue;
mod crowd;
mod epoch;
mod garbage;
mod host;
mod inside;
mod judge;
mod lives;
mod moves;
mod mutation;
mod oracle;
mod packet;
mod rebuild;
mod scenario;
mod system;
mod walk;
mod world;

pub use catalogue::SCENARIOS;
pub use crowd::{Crowd, CrowdOutcome, crowd};
pub use garbage::{STORM, Settling, forge};
pub use judge::{Found, Judge};
pub use mutation::Mutation;
pub use oracle::Complaint;
pub use scenario::{Budget, Failure, Op, Place, Scenario};
pub use system::SUITE;
pub use walk::{Broken, Walk, WalkConfig, walk};
pub use world::{Cost, Witness};
