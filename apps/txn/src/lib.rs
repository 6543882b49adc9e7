//! TPC-C's transactions on a database in rackmem memory.
//!
//! All nodes of a rack work on one database. Its records and its ordered indexes are cells
//! ([`Cell`]) in memory of the nodes: a warehouse, with all that belongs to it, at one node, and
//! items spread over all ([`Layout`]). An [`Engine`] makes transactions of reads and writes of
//! cells:
//!
//! | engine | cells are in | a transaction |
//! |---|---|---|
//! | [`Locks`] | coherent memory | locks each cell when it first uses it, and leaves all locks when it commits |
//! | [`Objects`] | objects | commits if nothing that it has read has changed |
//! | [`Delegated`] | memory of its owner's, which others ask for them | locks each cell at its owner: to compare |
//! | [`OneLock`] | coherent memory | has the one lock over the whole database ([`OnlyLock`]): to compare locks |
//!
//! With [`Locks::with_copies`] the database outlives nodes, and a transaction that a dead node was
//! in the middle of is there, or nothing of it.
//!
//! The five transactions ([`transactions`]) are written once over all. [`load`] makes the rows,
//! [`drive`] has terminals work on them, [`check`] looks at the specification's conditions of
//! consistency.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rackmem::Rack;
//! use rackmem_txn::{Layout, Limit, Locks, Plan, Remote, Scale, Unwatched, check, drive, load};
//!
//! let rack = Rack::local(2)?;
//! let small = Scale { items: 100, customers: 20, room: 100, ..Scale::of(2) };
//! let engine = Locks::new(rack.nodes(), Layout::new(small, 2)?)?;
//! load(&engine, 1, &Unwatched)?;
//! let plan = Plan {
//!     threads: 1,
//!     limit: Limit::Transactions(50),
//!     remote: Remote::Share(20),
//!     seed: 1,
//!     deeds: 0,
//! };
//! let done = drive(&engine, &plan, &Unwatched)?;
//! assert!(check(&engine, &done.tally.counts())?.holds());
//! # Ok(())
//! # }
//! ```

mod access;
mod conditions;
mod drive;
mod engine;
mod error;
mod generate;
mod history;
mod inputs;
mod keys;
mod last_name;
mod layout;
mod load;
mod random;
mod scale;
pub mod schema;
mod tally;
#[cfg(test)]
mod tests;
pub mod transactions;
mod tree;

pub use access::{Access, Cause, Footprint, Halt, Step};
pub use conditions::{Condition, Finding, Report, check};
pub use drive::{Done, Limit, Plan, drive, drive_since};
pub use engine::{
    Copies, Delegated, Engine, LockFailure, Locks, Objects, OneLock, OnlyLock, Outcome, PATIENCE,
    RackLock,
};
pub use error::{Result, TxnError};
pub use history::{History, Recorder, Remember};
pub use inputs::{Remote, Terminal};
pub use layout::{Cell, Layout, NAME, Ordered, Part, Space};
pub use load::{Unwatched, Watch, load, load_for};
pub use random::{Constants, Random};
pub use scale::{
    CUSTOMERS, DISTRICTS, ITEMS, MAX_LINES, MAX_ROOM, MAX_WAREHOUSES, NAMES, ROOM, Scale,
};
pub use tally::{Counts, Deed, Row, Tally};
pub use tree::{Shape, Tree};
