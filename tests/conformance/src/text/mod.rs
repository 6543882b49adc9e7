//! Golden packets as text: what is in `golden/`.
//!
//! ```text
//! rackmem golden packets, version 1
//!
//! case a-name
//!   about what it shows, in a sentence
//!   switch epoch=7 ways=2 sets=4 nodes=4 requesters=2 seed=0 shadow=3 locks=2x2
//!   prefix
//!     # the packet in words
//!     in 524d011d 00000007 …
//!     out agent 1 524d011e …
//!   before
//!     TAG way 0 at 3 = 0000000000001001
//!   frozen
//!   packets
//!     in …
//!     to the control plane
//!   after
//!     …
//! ```
//!
//! `prefix none` says that no packets bring the registers about. What follows `#` is for people.
//! Spaces in hex do not count.

mod lines;
mod read;
mod write;

pub use lines::{hex, hex_packet, packet_line, port_name, register_line};
pub use read::{TextError, read};
pub use write::write;

/// First line of a file. Another version is another format.
pub const HEAD: &str = "rackmem golden packets, version 1";
