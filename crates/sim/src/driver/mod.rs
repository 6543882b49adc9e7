//! The driver of every explorer here: one search, one seeded walk, one way to make a story short.
//!
//! A protocol brings a [`System`]: its states, what can happen in each, and its promises.
//! [`explore`] visits every state of a small one, breadth first, so that the first story that
//! breaks a promise is a shortest one; [`walk()`] goes one seeded way through a larger one, and
//! [`shorten`] leaves out of a way what a broken promise does not take. [`Case`] is a scenario of
//! any protocol as a command line sees it.

mod case;
mod graph;
mod report;
mod search;
mod shrink;
mod system;
mod visited;
mod waiting;
mod walk;

pub use case::{About, Allowance, Case, Explored, Suite};
pub use report::{Ended, Report, Violation};
pub use search::{Limits, MAX_STATES, Progress, explore};
pub use shrink::{Way, shorten, smallest, story};
pub use system::{Complaint, System, endless};
pub use waiting::{Unpacked, Waiting};
pub use walk::{Guide, walk};
