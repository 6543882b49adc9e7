//! Transactions over several objects: optimistic, and strictly serializable (FaRM's shape).
//!
//! A thread reads objects with their versions and computes what it writes. To commit, its node
//! is the *coordinator* and each home whose objects are written a *participant*:
//!
//! | step | the coordinator | a participant |
//! |---|---|---|
//! | lock | `TxLock` to one home after the other, in the order of homes | makes all its written objects odd whose versions are as read, or none |
//! | validate | asks whether objects that were only read still have their versions | answers an `ObjRead` |
//! | commit | `TxCommit` to all homes, to its own last | puts the bytes in place and makes the versions even |
//! | or release | `TxCommit` with `a` = 0 to those that may have locked | leaves the same versions |
//!
//! All written objects are odd and all read ones unchanged at one moment: that is the
//! transaction's. The coordinator commits at its own home last, so what its death can take with it
//! has not been seen before all other homes have committed.
//!
//! *Objects with copies.* The keeper is the home of all of them and does one thing after the other,
//! so it needs no locks: one `TxCommit` to the lowest region brings all versions and contents,
//! and a record there that a majority has is the moment ([`super::KeptObjects`]).
//! What it reads and writes of other homes is locked before the keeper is asked,
//! and these homes are told afterwards to commit or to release:
//! so all of that is as it was read at the moment of the record,
//! and nobody sees what was written before.
//!
//! A coordinator dies: an epoch begins, and every home reports to the others which transactions of
//! dead nodes it has committed. When all have reported, a home that holds locks of one commits it,
//! with the bytes that came with `TxLock`, if any home has, and releases it otherwise. Packets of
//! the dead are of an earlier epoch, so no home commits after it has reported.
//! Where a keeper decides it is in doubt instead, and the home asks the keeper (`doubt`).

mod coordinator;
mod doubt;
mod part;
mod participant;
mod plan;

pub(super) use coordinator::Step;
pub use coordinator::Transaction;
pub(super) use doubt::{ENDED, ask_whether_ended, slot_in_doubt};
pub(super) use part::ENTRY;
pub use part::{Entry, NOT_WRITTEN, PartOf, Parts, decode};
pub use participant::Participant;
pub use plan::{Plan, Used};

use super::layout::{GRANULE, MAX_BYTES};

/// Objects that a transaction reads and writes, at most.
pub const MAX_OBJECTS: usize = 64;
/// Bytes that a transaction writes, at most.
pub const MAX_CONTENT: usize = 1 << 20;
/// Bytes that a transaction writes to objects with copies, at most: its keeper has all of it in one
/// call.
pub const MAX_KEPT_CONTENT: usize = MAX_BYTES as usize - MAX_OBJECTS * ENTRY;
/// Transactions that a home has open at one time, at most: it keeps their bytes.
pub const MAX_OPEN: usize = 64;

/// Bytes of a part that are under way at one time.
const WINDOW: u32 = 32 * GRANULE;
