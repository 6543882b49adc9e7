//! A Redis-compatible store in memory shared by a rack.
#![warn(missing_docs)]

mod clock;
mod command;
mod error;
mod glob;
mod hash;
mod layout;
pub mod memory;
mod number;
mod resp;
mod server;
mod store;

pub use clock::Clock;
pub use error::{Error, Result};
pub use server::{BindError, InfoSection, Server, ServerConfig};
pub use store::{
    Condition, Db, ExpireIf, Expiry, Keys, Mark, Meta, Options, Plan, SetOptions, SetOutcome,
    Store, Sweep, Swept, Transaction, Values,
};

/// Databases in a store.
pub const DATABASES: usize = 16;
/// The longest value, in bytes.
pub const MAX_VALUE: usize = 64 << 20;
