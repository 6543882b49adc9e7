//! GCP: locks that are coherence, the `Locked` contract (Soul, the generalized cache-coherence
//! protocol).
//!
//! A lock is a directory entry that is held for as long as a critical section,
//! over as many bytes as it protects. `docs/protocols/gcp.md` tells the protocol as built;
//! these are its roles:
//!
//! | role | file | paper |
//! |---|---|---|
//! | directory entry: sharer list, permission, queue holder, version | `entry` | §3.1, §4.2.2 |
//! | directory at the home agent | `directory` | – (Soul has a switch) |
//! | directory at the switch | [`crate::switch::LockProgram`] | §4.1 |
//! | compute blade: a lock's rights, promises and hand-overs | `lock`, `hand_over`, `answer` | §4.2.2, Algorithm 1 |
//! | compute blade: all its locks | `blade` | – |
//! | wait queue | `queue` | §4.2.2 "Queue holders" |
//! | region list | `regions` | §4.3 |
//! | freeing a lock, and making the next one in its place | `life` | – |
//! | a holder or the queue dies | `settle` | – |
//! | a node gets rid of what it keeps | `dismiss` | – |
//! | a home keeps a lock at rest in one number | `rest` | – |
//!
//! Every packet may be lost, duplicated or delayed. Nothing here waits for a packet without asking
//! again ([`Blade::retry`]), and nothing is done twice: the directory numbers everything that it
//! does to a lock (its *version*), and a node ignores what is not newer than the last thing that it
//! has given up (its *floor*).

mod answer;
mod blade;
mod directory;
mod dismiss;
pub(crate) mod entry;
mod few;
mod hand_over;
mod life;
mod lock;
mod queue;
mod regions;
mod rest;
mod settle;

pub use blade::{Blade, BladeConfig, BladeCounters};
pub use directory::{LockDirectory, LockPlace};
pub use dismiss::Keeping;
pub use entry::{Entry, Mode, State, Verdict};
pub use life::Life;
pub use lock::{Body, Entered, Event, Lock, Promise, Right, Send, Steps};
pub use queue::{Queue, Waiter};
pub use regions::{
    MAX_LOCKED, MAX_REGIONS, Region, Regions, RegionsError, SEGMENT, used, with_used,
};
pub use rest::{Known, Rest};
pub use settle::{Age, Before, Report, Reports, settle};

use crate::wire::{GlobalStatus, Header, Seq};

/// What a lock is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    /// To read, together with other readers: permission S.
    Read,
    /// To write, alone: permission M.
    Write,
}

impl Access {
    /// From a request's status; `Unshared` asks for nothing.
    pub const fn from_status(status: GlobalStatus) -> Option<Self> {
        match status {
            GlobalStatus::Unshared => None,
            GlobalStatus::Shared => Some(Access::Read),
            GlobalStatus::Modified => Some(Access::Write),
        }
    }

    /// As a request carries it.
    pub const fn status(self) -> GlobalStatus {
        match self {
            Access::Read => GlobalStatus::Shared,
            Access::Write => GlobalStatus::Modified,
        }
    }
}

/// The lock's version in a packet: the number that its directory has given to what it is about.
/// Its upper bits are the epoch's ([`first`]), so it never falls,
/// and fencing tokens are made of it.
///
/// GCP's packets are fenced by the epoch and nothing in them is an event of a requester,
/// so `seq` is free for it.
pub const fn version(header: &Header) -> u64 {
    header.seq.0
}

/// The same packet with a version.
#[must_use]
pub const fn with_version(mut header: Header, version: u64) -> Header {
    header.seq = Seq(version);
    header
}

/// Bits of a version below the epoch's.
const COUNT: u32 = 40;

/// The version that a lock's entry begins an epoch with. An epoch lasts for 2^40 requests of one
/// lock; no rack has 2^23 epochs.
pub const fn first(epoch: u32) -> u64 {
    (epoch as u64) << COUNT | 1
}

/// Whether a directory may have given this number in an epoch.
const fn is_of(version: u64, epoch: u32) -> bool {
    version >> COUNT == epoch as u64
}
