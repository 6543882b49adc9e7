//! What an operation on the store can fail with.

use std::fmt;
use std::time::Duration;

use crate::memory::MemoryError;

/// Why an operation did not happen. When the memory is to blame,
/// for another reason than being full, it may have happened all the same.
#[derive(Debug)]
pub enum Error {
    /// The memory under the store failed.
    Memory(MemoryError),
    /// A key of more bytes than a page's share for keys.
    KeyTooLong {
        /// Bytes in the key.
        len: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// A value of more bytes than [`crate::MAX_VALUE`].
    ValueTooLong,
    /// The key holds a value of another type than the operation is for.
    WrongType,
    /// The value does not read as a 64-bit integer.
    NotAnInteger,
    /// The value does not read as a number.
    NotAFloat,
    /// The sum leaves the range of a 64-bit integer.
    Overflow,
    /// The sum is infinite or not a number.
    NotFinite,
    /// RENAME of a key that is not there.
    NoSuchKey,
    /// Another operation held the key's bucket for this long; its holder may have died.
    Busy(Duration),
    /// A chain of pages is longer than any healthy chain can be.
    Corrupt(&'static str),
    /// The store exists with other settings.
    Settings {
        /// Which setting.
        what: &'static str,
        /// What the store has.
        have: u64,
        /// What was asked for.
        want: u64,
    },
    /// Values asked for together have more bytes than fit one answer.
    ReplyTooLong,
    /// A setting no store can have.
    BadOption(&'static str),
}

/// The result of an operation on the store.
pub type Result<T> = std::result::Result<T, Error>;

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

impl Error {
    /// Whether it is certain that nothing has happened. It is not when the memory failed for
    /// another reason than being full: a message that was not answered may have been heard.
    pub(crate) fn certain(&self) -> bool {
        let unclear = |error: &MemoryError| {
            use MemoryError::{Fenced, Lost, NoLease, NodeLost, Other};
            matches!(error, Other(_) | NodeLost(_) | Lost(_) | Fenced | NoLease)
        };
        !matches!(self, Self::Memory(error) if unclear(error))
    }

    /// Whether the key, or a part of it, was in the memory or the cache of a node that has died.
    pub fn is_node_lost(&self) -> bool {
        use MemoryError::{Lost, NodeLost};
        matches!(self, Self::Memory(NodeLost(_) | Lost(_)))
    }

    /// The first word of the error in Redis' protocol.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Memory(MemoryError::OutOfMemory) => "OOM",
            error if error.is_node_lost() => "NODELOST",
            // What clients of Redis know as "not this server, and not now".
            Self::Memory(MemoryError::Fenced | MemoryError::NoLease) => "MASTERDOWN",
            Self::WrongType => "WRONGTYPE",
            _ => "ERR",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(MemoryError::OutOfMemory) => {
                f.write_str("command not allowed: the rack's memory is full")
            }
            Self::Memory(
                error @ (MemoryError::NodeLost(_)
                | MemoryError::Lost(_)
                | MemoryError::Fenced
                | MemoryError::NoLease),
            ) => error.fmt(f),
            Self::Memory(error) => write!(f, "memory: {error}"),
            Self::KeyTooLong { len, limit } => {
                write!(f, "key of {len} bytes is too long, the limit is {limit}")
            }
            Self::ValueTooLong => f.write_str("string exceeds maximum allowed size (64 MiB)"),
            Self::WrongType => {
                f.write_str("Operation against a key holding the wrong kind of value")
            }
            Self::NotAnInteger => f.write_str("value is not an integer or out of range"),
            Self::NotAFloat => f.write_str("value is not a valid float"),
            Self::Overflow => f.write_str("increment or decrement would overflow"),
            Self::NotFinite => f.write_str("increment would produce NaN or Infinity"),
            Self::NoSuchKey => f.write_str("no such key"),
            Self::Busy(waited) => write!(
                f,
                "bucket busy: another operation has held it for {waited:?}"
            ),
            Self::Corrupt(what) => write!(f, "the store's memory is damaged: {what}"),
            Self::Settings { what, have, want } => {
                write!(
                    f,
                    "the store exists with {what} {have}, asked for with {want}"
                )
            }
            Self::ReplyTooLong => {
                f.write_str("the answer would be too long, ask for fewer or shorter values")
            }
            Self::BadOption(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}
