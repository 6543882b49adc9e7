//! A Redis-compatible store in memory shared by a rack.
//!
//! A [`Store`] keeps keys and values in coherent memory. Every node that opens it sees the same
//! keys, reads them from its own cache, and sees the last write, whichever node made it. Every
//! operation, on one key or on many, is one atomic step in the whole rack. It needs no server:
//! programs use it as a library.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rackmem_kv::{Options, Store};
//!
//! let rack = rackmem::Rack::local(2)?;
//! let here = Store::open(rack.node(0), Options { buckets: 256, ..Options::default() })?;
//! let there = Store::open(rack.node(1), Options { buckets: 256, ..Options::default() })?;
//! here.set(b"greeting", b"hello")?;
//! let mut value = Vec::new();
//! assert!(there.get(b"greeting", &mut value)?);
//! assert_eq!(value, b"hello");
//! assert_eq!(there.increment(b"visits", 1)?, 1);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Server`] serves a store to clients that speak Redis' protocol, version 2 or 3, at one node;
//! every node may run one. `docs/differences-from-redis.md` lists what is not as in Redis.
//!
//! The store is written against the trait [`memory::Memory`]. A rack's nodes have it; so has
//! [`memory::HeapMemory`], for tests in one process.
#![warn(missing_docs)]

// For test support that tests outside of this package share.
#[cfg(test)]
extern crate self as rackmem_kv;

mod acl;
mod clock;
mod command;
mod double;
mod error;
mod glob;
mod hash;
mod layout;
mod lock;
pub mod memory;
mod number;
pub mod rdb;
mod resp;
mod script;
mod server;
pub mod snapshot;
mod store;

pub use clock::Clock;
pub use error::{Error, Result};
pub use server::{BindError, InfoSection, Server, ServerConfig, TlsConfig};
pub use store::{
    CannotLeave, Condition, Db, ExpireIf, Expiry, Keys, Kind, Losses, Mark, Meta, Moved, Options,
    Plan, SetOptions, SetOutcome, Store, Sweep, Swept, Transaction, Values,
};

/// Databases in a store.
pub const DATABASES: usize = 16;
/// The longest value, in bytes.
pub const MAX_VALUE: usize = 64 << 20;

/// Compiles the store for each kind of memory in this package, so that programs and tests on it do
/// not compile it again, each for itself.
#[cfg(not(test))]
#[doc(hidden)]
pub fn compiled() -> usize {
    fn one<M: memory::Memory>() -> usize {
        let bind: fn(Store<M>, ServerConfig) -> std::result::Result<Server, BindError> =
            Server::bind;
        let open: fn(M, Options) -> Result<Store<M>> = Store::open;
        bind as usize + open as usize
    }
    one::<memory::HeapMemory>() + one::<rackmem::Node>() + one::<memory::CopiedMemory>()
}
