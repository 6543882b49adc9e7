//! Why a run has no result.

use crate::access::Halt;
use std::fmt;

/// Why a run has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum TxnError {
    /// The rack failed. A transaction that was being written may be there in part; in a database
    /// with copies ([`crate::Locks::with_copies`]) it is there, or nothing of it.
    Rack(rackmem::Error),
    /// A table has more rows than it was made with room for.
    Full {
        /// Which one.
        table: &'static str,
    },
    /// Memory has not what a table or an index was left with.
    Broken {
        /// What is wrong.
        what: &'static str,
    },
    /// A transaction was tried again for longer than it may take.
    Starved {
        /// How often.
        tries: u32,
    },
    /// The lock over all of the database was not to be had: nothing has changed.
    Lock(Box<dyn std::error::Error + Send + Sync>),
    /// A node owns no cells: its rack was made without [`crate::Delegated::guests`].
    NoOwner,
    /// There is more of something than is possible, or nothing of it.
    OutOfRange {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: u64,
    },
}

/// The result of a run and its parts.
pub type Result<T> = std::result::Result<T, TxnError>;

impl TxnError {
    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            TxnError::Rack(error) => error.next_step(),
            TxnError::Full { .. } => "give a larger --room, or fewer seconds",
            TxnError::Broken { .. } => "this is a defect of rackmem: please report it",
            TxnError::Starved { .. } => "take more warehouses, or fewer threads",
            TxnError::Lock(_) => "see whether all nodes of the rack are there",
            TxnError::NoOwner => "give the rack's nodes the guests of the database",
            TxnError::OutOfRange { .. } => "give a number in the range",
        }
    }
}

impl fmt::Display for TxnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TxnError::Rack(error) => write!(f, "{}", error.what()),
            TxnError::Full { table } => write!(f, "the table of {table} is full"),
            TxnError::Broken { what } => write!(f, "the database is broken: {what}"),
            TxnError::Starved { tries } => {
                write!(f, "a transaction was aborted in each of {tries} tries")
            }
            TxnError::Lock(error) => write!(f, "the database's lock: {error}"),
            TxnError::NoOwner => write!(f, "a node of the rack owns no part of the database"),
            TxnError::OutOfRange { what, most } => write!(f, "there are 1 to {most} {what}"),
        }
    }
}

impl std::error::Error for TxnError {}

impl From<rackmem::Error> for TxnError {
    fn from(error: rackmem::Error) -> Self {
        TxnError::Rack(error)
    }
}

rackmem::from_families!(TxnError);

impl From<rackmem::Error> for Halt {
    fn from(error: rackmem::Error) -> Self {
        Halt::Failed(error.into())
    }
}

rackmem::from_families!(Halt);
