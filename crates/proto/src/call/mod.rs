//! Exactly once over a network that loses, duplicates and reorders packets:
//! what every protocol needs, kept once.
//!
//! | who | needs | is |
//! |---|---|---|
//! | the caller | numbers for its calls, which the receivers compare; answers to this life and this epoch only | [`Caller`] |
//! | | to ask again by the measured round trip, and to give up | [`Caller`], [`Sent`], [`RoundTrip`] |
//! | | to ask again where no round trip is measured: by pauses that grow | [`Pace`] |
//! | who answers | to execute a call once, and to know a late copy | [`LastExecuted`] |
//! | | to answer a copy as the first | [`Answers`] |
//! | both | a block put together from segments | [`Assembly`] |
//! | | what threads write and read by packets, and what came of it | [`Operands`] |
//! | | lists between members, whole and in order | [`Streams`] |
//!
//! A call is named by its requester and its number. Numbers have 64 bits and only rise, so "newer"
//! is a comparison. Two calls of a requester may be open at once, of different parity: every table
//! has a row a parity (§5.3.2).
//!
//! GCP remembers no calls: its packets carry versions of a lock, which say by themselves what is
//! late. It asks again by [`Pace`].

mod answers;
mod assembly;
mod caller;
mod executed;
mod operands;
mod pace;
mod parcel;
mod per_requester;
mod rtt;
mod streams;

pub use answers::{Answers, Call};
pub use assembly::Assembly;
pub use caller::{Caller, CallerConfig, Retry, Sent};
pub use executed::{Executed, LastExecuted};
pub use operands::{Operands, put_segment};
pub use pace::{Pace, Ticks};
pub use parcel::{Behind, Parcel};
pub use per_requester::PerRequester;
pub use rtt::RoundTrip;
pub use streams::{Received, Stream, Streams};
