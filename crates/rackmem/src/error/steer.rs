//! A change is left to the node that owns a partition.

use super::{AllocError, Changed, Error, LockError, RegionError, family};
use std::fmt;

/// Why a [`Partition`](crate::bounded::Partition) has not answered, or has no owner.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::bounded::Partition;
/// use rackmem::{Rack, SteerError};
///
/// let rack = Rack::local(1)?;
/// let nobodys = Partition::<u64, u64>::named(&rack.node(0), "prices");
/// assert!(matches!(nobodys, Err(SteerError::NoOwner { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SteerError {
    /// Its name, its locks or the rack cannot be used.
    Region(RegionError),
    /// No node owns it now.
    NoOwner {
        /// Its name.
        name: String,
    },
    /// Another handle owns it.
    Owned {
        /// Its name.
        name: String,
        /// The node of that handle.
        by: u16,
    },
    /// The owner was asked, and has died or given the partition up before it answered.
    Unanswered {
        /// Its name.
        name: String,
    },
}

family!(SteerError, "steering", through [Region],
    NoOwner => "no-owner",
    Owned => "owned",
    Unanswered => "unanswered",
);

impl From<RegionError> for SteerError {
    #[cold]
    fn from(error: RegionError) -> Self {
        SteerError::Region(error)
    }
}

impl From<LockError> for SteerError {
    #[cold]
    fn from(error: LockError) -> Self {
        SteerError::Region(error.into())
    }
}

impl From<AllocError> for SteerError {
    #[cold]
    fn from(error: AllocError) -> Self {
        SteerError::Region(error.into())
    }
}

impl From<SteerError> for Error {
    #[cold]
    fn from(error: SteerError) -> Self {
        match error {
            SteerError::Region(error) => error.into(),
            error => Error::Steer(error),
        }
    }
}

impl SteerError {
    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SteerError::Region(error) => error.cause(f),
            SteerError::NoOwner { name } => write!(f, "no node owns the partition '{name}'"),
            SteerError::Owned { name, by } => {
                write!(f, "a handle of node {by} owns the partition '{name}'")
            }
            SteerError::Unanswered { name } => write!(
                f,
                "the owner of the partition '{name}' has gone before it answered"
            ),
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            SteerError::Region(error) => error.changed(),
            SteerError::NoOwner { .. } | SteerError::Owned { .. } => Changed::No,
            SteerError::Unanswered { .. } => Changed::Perhaps,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            SteerError::Region(error) => error.next_step(),
            SteerError::NoOwner { .. } => "try again when a node has owned it (Partition::own)",
            SteerError::Owned { .. } => {
                "ask that node (Partition::named), or drop its handle first"
            }
            SteerError::Unanswered { .. } => "look what is there, then ask the next owner",
        }
    }
}

impl std::error::Error for SteerError {}
