//! Golden packets: what every form of the switch program must do.
//!
//! A [`Case`] says how the switch is set up, what its registers hold, which packets come, what
//! leaves by which port, and what the registers hold then. The cases in `golden/` are made from the
//! Rust program by [`scenarios`] and are text that people can read ([`text`]). Another form of the
//! program implements [`Implementation`] and is given to [`replay`]. [`random`] makes cases of
//! thousands of packets, and [`shrink`] finds the few of them that show a difference.

pub mod carrier;
mod case;
mod difference;
pub mod generate;
pub mod layout;
pub mod quorum;
pub mod random;
pub mod reads;
mod reference;
mod replay;
pub mod scenarios;
pub mod text;

pub use case::{Case, Port, Reply, Sent, Setup, Step};
pub use difference::Difference;
pub use random::sequence;
pub use reference::Reference;
pub use replay::{Implementation, again, replay, replay_loaded, shrink};
pub use scenarios::golden;
