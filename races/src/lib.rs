//! Every order of steps of the code that threads share without locks.
//!
//! The files are those that ship, word for word: they take their atomics from `crate::sync`,
//! which is the checker's ([loom](https://docs.rs/loom)) here. A scenario is a few threads that use
//! them, and what must hold; it is gone through in every order of steps, up to a bound on
//! preemptions, and with every value that the memory model lets a load return. A second set of the
//! same files has one defect each, from a table of planted ones ([`plants`]), which its scenario
//! must find. `docs/races.md` says what this shows and what it cannot.
#![allow(dead_code)] // The shipped files have more than scenarios use.
#![allow(clippy::duplicate_mod)] // Each defect has the files of its group to itself.

mod bytes;
pub mod plants;
pub mod rings;
mod run;
mod steps;
pub mod sync;
mod words;

#[path = "../../crates/fabric/src/body.rs"]
mod body;

use body::Body;
pub use run::{Explored, PREEMPTIONS, explore};

/// Something that threads do together, and what must hold: its name and its body.
pub type Scenario = (&'static str, fn());

include!(concat!(env!("OUT_DIR"), "/groups.rs"));
