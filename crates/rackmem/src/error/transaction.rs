//! Several objects are read and written as one step.

use super::{AccessError, Changed, RackError, family, from};
use std::fmt;

/// Why a transaction has not taken effect, or is not known to have.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Changed, Rack, TransactionError};
///
/// let rack = Rack::local(1)?;
/// let none: Result<(), _> = rack.node(0).transaction(|_| Err(TransactionError::Cancelled));
/// assert_eq!(none.unwrap_err().changed(), Changed::No);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TransactionError {
    /// The rack, or a node of it, cannot be used now.
    Rack(RackError),
    /// An object was not read, or cannot be written.
    Access(AccessError),
    /// What it has read was changed by others each time, for as long as the configuration allows.
    Conflict {
        /// How often it was tried.
        tries: u32,
    },
    /// The program has given it up.
    Cancelled,
    /// It was not decided that it takes effect, and never will.
    GivenUp {
        /// What came between.
        why: RackError,
    },
    /// It was decided that it takes effect, and not all homes have said that it has.
    Undecided {
        /// What came between.
        why: RackError,
    },
    /// It reads and writes too many objects.
    TooManyObjects {
        /// Objects that are possible.
        most: usize,
    },
    /// It writes too many bytes.
    TooManyBytes {
        /// Bytes that it writes.
        len: usize,
        /// Bytes that are possible.
        most: usize,
    },
}

family!(TransactionError, "transaction", through [Rack, Access],
    Conflict => "conflict",
    Cancelled => "cancelled",
    GivenUp => "given-up",
    Undecided => "undecided",
    TooManyObjects => "too-many-objects",
    TooManyBytes => "too-many-bytes",
);

from!(RackError => TransactionError, _ => Rack);
from!(AccessError => TransactionError, Rack => Rack, _ => Access);

impl TransactionError {
    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransactionError::Rack(error) => error.cause(f),
            TransactionError::Access(error) => error.cause(f),
            TransactionError::Conflict { tries } => write!(
                f,
                "objects of the transaction were changed by others in each of {tries} attempts"
            ),
            TransactionError::Cancelled => write!(f, "the program has given up the transaction"),
            TransactionError::GivenUp { why } => {
                write!(f, "the transaction was given up: ")?;
                why.cause(f)
            }
            TransactionError::Undecided { why } => {
                write!(f, "the transaction was to take effect: ")?;
                why.cause(f)
            }
            TransactionError::TooManyObjects { most } => {
                write!(f, "the transaction has more than {most} objects")
            }
            TransactionError::TooManyBytes { len, most } => write!(
                f,
                "the transaction writes {len} bytes: at most {most} are possible"
            ),
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            TransactionError::Rack(error) => error.changed(),
            TransactionError::Access(error) => error.changed(),
            TransactionError::Undecided { .. } => Changed::Perhaps,
            // What ends before it is decided never takes effect.
            TransactionError::GivenUp { .. }
            | TransactionError::Conflict { .. }
            | TransactionError::Cancelled
            | TransactionError::TooManyObjects { .. }
            | TransactionError::TooManyBytes { .. } => Changed::No,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            TransactionError::Rack(error) => error.next_step(),
            TransactionError::Access(error) => error.next_step(),
            TransactionError::Conflict { .. } => {
                "try again, with fewer objects or less often, or give hot objects one home"
            }
            TransactionError::Cancelled => "do what the program does without it",
            TransactionError::GivenUp { why } => why.next_step(),
            TransactionError::Undecided { .. } => "look what is there, then try again",
            TransactionError::TooManyObjects { .. } => {
                "do it in several steps, or put what belongs together into one object"
            }
            TransactionError::TooManyBytes { .. } => {
                "do it in several steps, or have large objects replaced by new ones"
            }
        }
    }
}

impl std::error::Error for TransactionError {}
