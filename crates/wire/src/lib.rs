//! The packets of rackmem.
//!
//! Every packet is one fixed [`Header`] and for some kinds a body, which from 0x50 on begins with
//! 16 bytes of its kind's own: a segment of a block or the operand of a delegated operation.
//! Integers are big-endian on the wire. [`HeaderView`] looks at received bytes in place; [`Header`]
//! is the owned form that the protocols work on. `docs/wire.md` draws every byte.
//!
//! This crate is `no_std`, has no unsafe code, does no I/O, and never panics on any input:
//! [`decode`] either returns a header whose every field is in range, and its body,
//! or a [`WireError`].
#![no_std]
#![forbid(unsafe_code)]

mod atomic;
mod codec;
mod header;
mod kind;
mod line;
mod record;
mod types;

pub use atomic::{ATOMIC_LEN, AtomicOp};
pub use codec::{
    HEADER_LEN, HeaderView, OWN_LEN, OwnView, WireError, decode, decode_header, encode,
};
pub use header::{Flags, Header, Own};
pub use kind::Kind;
pub use line::PacketLine;
pub use record::{RECORD_LEN, Record, records_that_fit};
pub use types::{
    Contract, Copyset, Dest, GlobalStatus, HomeId, NodeId, Reason, RequesterId, Seq, Tag,
};

/// First two bytes of every packet, `"RM"`.
pub const MAGIC: u16 = 0x524d;
/// Version of the layout; a receiver drops every other.
pub const VERSION: u8 = 2;

/// Nodes in a rack at most: a copyset is a 32-bit map, one bit a switch port (paper §6).
pub const MAX_NODES: usize = 32;
/// Most homes of a rack: its nodes' own memories, and one for each group of replicated memory.
pub const MAX_HOMES: usize = 64;
/// Requesters of one node at most, one per application thread that misses at the same time.
pub const MAX_REQUESTERS: usize = 64;
/// The smallest unit of coherence, in bytes.
pub const MIN_BLOCK: usize = 256;
/// The largest unit of coherence, in bytes.
pub const MAX_BLOCK: usize = 64 * 1024;
/// The largest body of one packet, in bytes, with what its kind has of its own:
/// a whole block where the network carries it.
pub const MAX_BODY: usize = 32 * 1024;

/// A block travels in segments of whole granules, and a block has this many.
pub const GRANULES: u32 = 64;

/// The longest segment, in bytes, of a block of `block` bytes that fits a body of `body` bytes.
pub const fn segment_len(block: u32, body: u32) -> u32 {
    let granule = block / GRANULES;
    let fit = body / granule * granule;
    if fit > block {
        block
    } else if fit == 0 {
        granule
    } else {
        fit
    }
}
