//! Memory that each domain of coherence caches, and that is stale for a bounded time at most:
//! Bounded Incoherence, the `Bounded` contract.
//!
//! A *domain* is what has one cache: a processor's package, a machine, or a process that keeps
//! copies of its own. Caches of different domains know nothing of each other. Readers load through
//! their cache. Writers put objects in place by one word and write lines back; every tick each
//! domain drops what others have modified (*quiescence*), and memory that was freed is used again
//! when no cache can hold it any more. `docs/protocols/bi.md` tells what is the paper's.
//!
//! | question | answered in |
//! |---|---|
//! | what time is it, and do clocks agree? | `clock` |
//! | what does a word that leads to an object say? | `pointer` |
//! | who says what it has modified and freed, and what has a reader not heard yet? | `ring` |
//! | how are an object and a word to it put in place, and an old one retired? | `storing` |
//! | what does a domain do at a tick, in which order? | `quiescence` |
//! | may a section begin, and may what it has read be believed? | `section` |
//! | which domains does memory wait for? | `roll` |
//! | which lines are free? | `extents` |
//! | and where domains are nodes, which ask homes for items? | [`cached`] |
//!
//! The lines themselves, caches and the instructions that drop and write back are the host's. What
//! stands in memory for all domains is a [`Board`], and where each word of it is, `layout` says.

mod board;
pub mod cached;
mod clock;
mod defect;
mod extents;
mod layout;
mod pointer;
mod quiescence;
mod ring;
mod roll;
mod section;
mod storing;

pub use board::{Board, DomainRow, OwnBoard, Presence};
pub use clock::{BiClock, Skew, Tick};
pub use defect::Defect;
pub use extents::{Extents, SLAB_LINES};
pub use layout::{BoardIn, BoardLayout, BoardWords, FRONT};
pub use pointer::BiPtr;
pub use quiescence::{Act, Quiescence, Quiescer, Standstill};
pub use ring::{Extent, Queue, RingEntry, RingFull, RingOwner, RingReader};
pub use roll::Roll;
pub use section::{Bound, Late, ReadSection};
pub use storing::{Change, Phase, Tracking};

/// Bytes of a line: what a cache holds, drops and writes back.
pub const LINE: u64 = 64;
/// Domains of a region, one a node.
pub const MAX_DOMAINS: usize = crate::wire::MAX_NODES;
/// Entries of a ring.
pub const RING: u64 = 4096;
