//! Hash and tree databases in rackmem memory, each under one lock.
//!
//! A DBM, as Kyoto Cabinet is one: keys and values are bytes, and one lock protects all of it.
//! All nodes of a rack open the same database: its pages are coherent memory, used by calls
//! ([`Called`]) or as loads and stores ([`Mapped`]), and the lock is whatever excludes
//! ([`Lock`]): GCP's, or another one to compare it with.
//!
//! | [`Kind`] | records are |
//! |---|---|
//! | hash | in chains of pages, by the hash of their keys |
//! | tree | in the leaves of a tree of pages, in the order of their keys |
//!
//! Operations read or change under the lock ([`Database::view`], [`Database::change`]), one or
//! several records in one step. A change that fails, because the database is full, changes nothing.
//! Nothing survives the node whose memory it is: there is no log and no disk.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rackmem::locked::RwLock;
//! use rackmem::{Rack, RegionSpec};
//! use rackmem_dbm::{Called, Database, Kind};
//!
//! let rack = Rack::local(2)?;
//! let spec = RegionSpec::new("database", 1 << 20);
//! let (here, there) = (rack.node(0), rack.node(1));
//! let memory = Called::new(&here, &here.create_region(&spec)?);
//! let lock = RwLock::named(&here, "database/lock", 0)?;
//! let database = Database::create(memory, lock, Kind::Tree)?;
//! database.set(b"one", b"1")?;
//!
//! let memory = Called::new(&there, &there.open_region(&spec)?);
//! let lock = RwLock::named(&there, "database/lock", 0)?;
//! let same = Database::open(memory, lock)?;
//! assert_eq!(same.get(b"one")?.as_deref(), Some(&b"1"[..]));
//! # Ok(())
//! # }
//! ```

mod database;
mod error;
mod hash;
mod lock;
mod memory;
mod page;
mod section;
#[cfg(test)]
mod tests;
mod tree;

pub use database::{Checked, Database};
pub use error::{DbmError, Result};
pub use lock::{Lock, LockFailure};
pub use memory::{Called, Mapped, Memory};
pub use page::{MAX_KEY, MAX_VALUE, PAGE};
pub use section::{Kind, Section};
