//! Locks of any kind, to compare: GCP's, and those that Soul compares it with,
//! over this rack's own coherent memory.
//!
//! ```
//! # fn main() -> rackmem_bench::locks::Result<()> {
//! use rackmem::Rack;
//! use rackmem_bench::locks::{self, AnyLock, LockKind};
//!
//! let rack = Rack::builder(2).guests(locks::guests(LockKind::Mcs)).build()?;
//! let lock = AnyLock::create(&rack.node(0), 64)?;
//! let same = AnyLock::attach(&rack.node(1), lock.addr())?;
//! same.write()?.write(0, &7u64.to_le_bytes())?;
//! let mut seven = [0; 8];
//! lock.read()?.read(0, &mut seven)?;
//! assert_eq!(u64::from_le_bytes(seven), 7);
//! # Ok(())
//! # }
//! ```
//!
//! The algorithms are the step machines of `rackmem_baselines::locks`, which tells of each; here
//! they are executed. A word of theirs lies in a block of its own where the algorithm keeps it in a
//! cache line of its own, near the threads that wait on it. Whoever waits for a word looks at its
//! own cached copy again and again, giving the processor away between looks, and sleeps only after
//! a millisecond: on idle processors that is quicker than
//! [`rackmem::locked::Mutex`], which sleeps after 50 µs. What the lock protects comes by coherence
//! when it is used; under [`LockKind::Gcp`] it comes with the lock.
//!
//! **When members die**, these locks do not live on, but for GCP's: a thread or a node that dies
//! inside or in a queue stops all others, who wait as long as they have said
//! ([`AnyLock::write_timeout`]), or for ever. No queue here can be left by who is in it, so a wait
//! that ends without the lock ends the lock for its node: [`crate::locks::Error::Abandoned`], then
//! and ever after. The service is in between: who gives up is forgotten, a dead member's turn is
//! over, and the next one is not told that what it finds may be half-written.

mod any;
mod error;
mod kind;
mod layout;
mod local;
mod pace;
mod pthread;
mod seat;
mod service;
mod steps;

pub use any::{AnyLock, AnyReadGuard, AnyWriteGuard};
pub use error::{Error, Result};
pub use kind::LockKind;
pub use pthread::{Pthread, PthreadGuard};
pub use steps::{Progress, Steps};

pub use service::{Compared, guests};
