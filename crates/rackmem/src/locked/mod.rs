//! Locks that are coherence: taking one and receiving what it protects is one coherence
//! transaction, and a lock that no other node wants stays where it is and costs no packet, no
//! system call and no memory.
//!
//! ```
//! # fn main() -> rackmem::Result<()> {
//! use rackmem::Rack;
//! use rackmem::locked::Mutex;
//!
//! let rack = Rack::local(4)?;
//! let account: Mutex<[u64; 2]> = Mutex::create(&rack.node(0), [100, 0])?;
//! let same: Mutex<[u64; 2]> = Mutex::attach(&rack.node(3), account.addr())?;
//! let mut held = same.lock()?;
//! held.update(|[from, to]| [from - 30, to + 30]);
//! drop(held);
//! assert_eq!(account.lock()?.get(), [70, 30]);
//! # Ok(())
//! # }
//! ```
//!
//! | | protects |
//! |---|---|
//! | [`Mutex`] | a value, for one thread at a time |
//! | [`RwLock`] | a value, for readers together or one writer |
//! | [`RangesLock`] | a list of byte ranges, likewise |
//! | [`RwLockArray`] | pages of bytes, each likewise, created all at once |
//! | [`Lock`] | nothing but what its users agree on |
//! | [`BlockLock`] | the same, by a round trip each time: the directory's own lock |
//!
//! Threads that wait for what others do to a [`Mutex`]'s value sleep at a [`Condvar`].
//! The protocol of all but the last is GCP; `docs/protocols/gcp.md` explains it.
//! Its directory is at the rack's switch, as far as that has room, or else at the lock's home,
//! the node that has made it.
//!
//! - **Order**: what a thread sees inside is what the last writer left. Nodes are served in the
//!   order in which the directory heard of them. Inside a node threads are served in the order in
//!   which they came, and while another node waits the lock goes on after at most 16 hand-overs
//!   inside one.
//! - **Waiting** is bounded in one way: `lock`, `read` and `write` wait as long as it takes,
//!   `try_…` ask no other node, and `…_within` takes a [`crate::Wait`]: a `Duration`, an `Instant`,
//!   [`crate::Wait::Never`] or [`crate::Wait::Forever`]. Where it is not the thread's turn in time
//!   they return `None`, and nothing has changed.
//! - **Guards** are one type, [`Guard`], of what is protected and of the right to it; it leaves the
//!   lock when it is dropped. Where a holder of a lock of an [`RwLockArray`] cannot borrow the
//!   array, it has an [`Entered`] instead. Nothing else shows what a lock protects.
//! - **Panics** do not poison a lock: a thread that panics inside releases it,
//!   and what it has written so far stays.
//! - **Bounds**: 65,528 bytes a lock (a page of an array 64 KiB),
//!   2,097,152 locks that a node knows.
//! - **Freeing** is a call, [`Mutex::free`] and its like, on any node: dropping a handle frees
//!   nothing, since other nodes may have others. The lock's memory is used by the next locks of its
//!   home. A handle that is left returns
//!   [`crate::LockError::Freed`], also while another lock is in that place, and so
//!   does a second `free`. An address is not a handle: attaching to one gives the lock that is
//!   there by then. Locks of an array are not freed.
//! - **Deadlock** is the caller's to avoid: threads that hold several locks take them in one
//!   order. A lock is not reentrant: a thread that locks it again waits for itself.
//!
//! **When members die**, locks live on. Threads inside stay inside, threads that wait go on
//! waiting. If the node that had the lock has died, inside or not, the others go on with the data
//! as of the last time that the lock was handed from one node to another, and each guard says so
//! ([`MutexGuard::content`]) until a writer has left. What a node released without
//! handing it on was nowhere else, and died with it. When its home has died, a lock is gone:
//! [`crate::RackError::NodeLost`], and by its name
//! [`crate::RegionError::NameLost`]; [`Mutex::renewed`] makes it anew.
//! Those in a region with copies go on.
//! A process that the rack has declared dead may have a thread inside all the same; when that
//! matters, let the receiver of what it does compare fencing tokens ([`MutexGuard::token`]).
//! Without a membership store no process is ever declared dead, and threads wait without end for a
//! lock that a dead process had.
//!
//! # In a region with copies
//!
//! Coherent memory with copies ([`crate::RegionSpec::survives`]) outlives any minority of the nodes
//! that keep it, and so do the locks in it. Such a lock is at a byte of the region, and is made by
//! the first that asks. A lock over a `T` takes [`Mutex::BYTES`], in one block of the rack.
//!
//! ```
//! # fn main() -> rackmem::Result<()> {
//! use rackmem::locked::{Mutex, RwLock};
//! use rackmem::{Rack, RegionSpec, Survives};
//!
//! let rack = Rack::local(3)?;
//! let spec = RegionSpec::new("accounts", 1 << 16).copies(3).survives(Survives::Writes);
//! let region = rack.node(0).create_region(&spec)?;
//! let nth = |nth: usize| nth * Mutex::<u64>::BYTES;
//! let account: Mutex<u64> = Mutex::in_region(&region, nth(7), 100)?;
//! *account.lock()? -= 30; // a majority has it when the guard is dropped
//! let there = rack.node(2).open_region(&spec)?;
//! assert_eq!(*Mutex::in_region(&there, nth(7), 0u64)?.lock()?, 70);
//! # Ok(())
//! # }
//! ```
//!
//! What a death takes is the region's to say. With [`crate::Survives::Writes`] nothing that was
//! released: a guard leaves the lock when a majority has what it has written, and the next guard
//! after its holder's death says [`Content::OwnerDied`] and finds the last release. With
//! [`crate::Survives::Rest`] a lock costs no more than any other, and is after a death what it was
//! when it was last handed over, as far as a live node knows, or came to rest ([`Mutex::rest`]).
//! An array of locks over pages is made by [`RwLockArray::in_region`], where writes survive.
//! The node that serves these locks is followed by another when it dies, and threads wait
//! meanwhile: no call returns [`crate::RackError::NodeLost`]. Such a lock stays as the region
//! does ([`crate::LockError::Stays`]); `docs/decisions/0042-locks-with-a-record.md` has the rest.

mod array;
mod awaiting;
mod block;
mod condvar;
mod copied;
mod descriptor;
mod entering;
mod freeing;
mod guard;
mod handle;
mod making;
mod mutex;
mod pages;
mod ranges;
mod rwlock;
mod value;

pub use crate::host::locks::cell::Waiting;
pub use crate::host::locks::seat::Content;
pub use crate::host::locks::status::{Held, LockStatus};
pub use crate::host::locks::table::LockMetrics;
pub use array::{Entered, Page, PageReadGuard, PageWriteGuard, RwLockArray};
pub use block::{Block, BlockLock, BlockReadGuard, BlockWriteGuard};
pub use condvar::{Condvar, MAX_WAITERS};
pub use guard::{Guard, Protected, Reading, Right, Writing};
pub use mutex::{Lock, Mutex, MutexGuard};
pub use rackmem_proto::gcp::Access;
pub use ranges::{Ranges, RangesLock, RangesReadGuard, RangesWriteGuard};
pub use rwlock::{ReadGuard, RwLock, WriteGuard};

use rackmem_proto::gcp::MAX_REGIONS;
