//! The protocols of rackmem as pure values.
//!
//! Every role is a value: packets and the time go in, decisions come out. There is no clock,
//! no randomness, no I/O, no thread and no unsafe code in this crate;
//! a random draw or the time is an argument. The core never touches the bytes of a block either: an
//! [`Output`] names *which* bytes travel with a packet ([`Data`]), an input answers *where* the
//! bytes of a packet go, and the host moves them (those of lines with copies are moved by a value
//! of their own, [`abd::Lines`]). So the same value runs in the real node, in the
//! simulator, in the explorer and under the fuzzer.
//!
//! | role | where | paper |
//! |---|---|---|
//! | a node: all of the following, put together | [`engine`] | – |
//! | exactly once, for all of them | [`call`] | §5.3.1 |
//! | switch program | [`switch::SwitchProgram`] | §5.1.1 LCF pipeline, §5.2.1, §5.3.2 |
//! | home agent | [`flowcc::HomeAgent`] | §5.1.1, §5.2 |
//! | cache agent | [`flowcc::cache_agent`] | §5.1.1 "Invalidation and Data Transfer" |
//! | requester | [`flowcc::Requester`] | §5.1.1 "Requester-driven Coherence Control" |
//! | a lock's directory, a node's locks | [`gcp::LockDirectory`], [`gcp::Blade`] | Soul, §4.2 |
//! | replicated memory: a node's part, what a switch counts | [`abd::Abd`], [`switch::QuorumProgram`] | CNVMM, §II-B, §III-B |
//! | whole objects: a home's part, a reader's | [`sabre::Sabre`] | SABRes, §3–§5 |
//! | memory that is cached without coherence, for a bounded time | [`bi`] | BI, §3 |
//! | pages of a program's mapping: rights, and their order | [`pages`] | – |
//! | what of a home's memory is given out | [`heap::Heap`] | §6 |
//! | member of the rack | [`membership::Member`] | – |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[macro_use]
mod defects;

pub mod abd;
pub mod bi;
pub mod call;
pub mod engine;
pub mod flowcc;
pub mod gcp;
pub mod heap;
pub mod membership;
mod output;
pub mod pages;
pub mod sabre;
pub mod switch;
pub mod words;

pub use output::{Data, Output, Outputs};
pub use rackmem_wire as wire;
pub use wire::Dest;

/// Directory entries, and the memory behind them, come into being in chunks of this many bytes
/// (paper §6).
pub const CHUNK: u64 = 32 * 1024 * 1024;
