//! What can go wrong with a lock that is compared.

use std::fmt;

/// Why something with an [`AnyLock`](super::AnyLock) did not happen.
#[derive(Debug)]
pub enum Error {
    /// The rack said no.
    Rack(rackmem::Error),
    /// A thread of this node stopped waiting for this lock, or lost its memory in the middle of it,
    /// where no thread can stop: no thread of the node can use the lock any more.
    Abandoned {
        /// Where.
        addr: u64,
    },
    /// The rack's nodes have no [`Compared`](super::Compared) as their guest.
    NoGuest,
    /// There is nothing to do this on: steps of a lock that has none, or writing outside of one.
    NoSteps(&'static str),
}

/// The result of something with an [`AnyLock`](super::AnyLock).
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Rack(error) => error.fmt(f),
            Error::Abandoned { addr } => write!(
                f,
                "a thread has given up in the middle of the lock at {addr:#018x}, which cannot be used any more"
            ),
            Error::NoGuest => f.write_str(
                "the rack has no guests for compared locks: build it with `locks::guests`",
            ),
            Error::NoSteps(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl From<rackmem::Error> for Error {
    fn from(error: rackmem::Error) -> Self {
        Error::Rack(error)
    }
}

rackmem::from_families!(Error);
