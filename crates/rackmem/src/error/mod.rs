//! What can go wrong, by family.
//!
//! | family | what the program was doing |
//! |---|---|
//! | [`OpenError`] | describing a rack, opening or joining it |
//! | [`MembershipError`] | being a member: the store, the places in it |
//! | [`RackError`] | anything: the rack, or a node of it, cannot be used now |
//! | [`AccessError`] | reading and writing coherent memory |
//! | [`BulkError`] | writing or reading long ranges: how far it came, and an [`AccessError`] |
//! | [`AllocError`] | allocating and freeing memory |
//! | [`LockError`] | making, attaching to, taking, waiting for and freeing a lock |
//! | [`RegionError`] | regions and names |
//! | [`LeaveError`] | leaving a rack |
//! | [`TransactionError`] | reading and writing several objects as one step |
//! | [`ArenaError`] | objects in memory that several machines have mapped |
//! | [`SteerError`] | leaving a change to the node that owns a partition |
//!
//! A function returns the error of its family. A family can hold errors of those above it:
//! [`LockError::Rack`] is a lock whose home has died. [`Error`] holds any of them, each cause in
//! one place only: `?` makes an [`Error::Rack`] of [`LockError::Rack`] and of
//! [`AccessError::Rack`] alike.

mod access;
mod alloc;
mod arena;
mod bulk;
mod kind;
mod leave;
mod lock;
mod membership;
mod open;
mod rack;
mod region;
mod steer;
#[cfg(test)]
mod tests;
mod transaction;

pub use access::AccessError;
pub use alloc::AllocError;
pub use arena::ArenaError;
pub use bulk::{BulkError, BulkResult};
pub use kind::ErrorKind;
pub use leave::LeaveError;
pub use lock::{LockError, LockShape};
pub use membership::MembershipError;
pub use open::OpenError;
pub use rack::RackError;
pub use region::RegionError;
pub use steer::SteerError;
pub use transaction::TransactionError;

use std::fmt;

/// A result whose error is any error of the library, unless another one is named.
///
/// ```
/// use rackmem::{Rack, RackError, Result};
///
/// fn first(rack: &Rack) -> Result<u64> {
///     Ok(rack.try_node(0)?.alloc(7u64)?.read()?)      // three families of errors
/// }
/// fn number(rack: &Rack) -> Result<u16, RackError> {
///     Ok(rack.try_node(0)?.id())                      // one
/// }
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whether an operation that has failed has changed anything in the rack.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Changed, Rack};
///
/// let rack = Rack::local(1)?;
/// let error = rack.node(0).load(1 << 50).unwrap_err();
/// assert_eq!(error.changed(), Changed::No);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Changed {
    /// Nothing: it can be tried again as it was.
    No,
    /// It may have happened, as a whole or in part, or not at all: look before trying again.
    Perhaps,
    /// It has happened in part.
    Yes,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Changed::No => "nothing has changed",
            Changed::Perhaps => "it may or may not have happened",
            Changed::Yes => "it has happened in part",
        })
    }
}

/// Gives a family what all errors have. `through` are the variants that hold an error of another
/// family; each of the others has a code. The match has no wildcard:
/// a variant without a code does not compile.
macro_rules! family {
    ($family:ident, $word:literal, through [$($through:ident),*], $($variant:ident => $code:literal,)*) => {
        impl $family {
            /// The codes of this family's own causes.
            #[cfg(test)]
            pub(super) const CODES: &[&str] = &[$($code),*];

            /// The cause in a word that stays the same in later versions, for logs.
            pub fn code(&self) -> &'static str {
                match self {
                    $(Self::$through(error) => error.code(),)*
                    $(Self::$variant { .. } => $code,)*
                }
            }

            /// The family that the cause is of, in a word.
            pub fn family(&self) -> &'static str {
                match self {
                    $(Self::$through(error) => error.family(),)*
                    $(Self::$variant { .. } => $word,)*
                }
            }

            /// What a program can do about it, by kind.
            pub fn kind(&self) -> $crate::error::ErrorKind {
                $crate::error::ErrorKind::of(self.code())
            }

            /// What has happened.
            pub fn what(&self) -> String {
                $crate::error::text(|f| self.cause(f))
            }
        }

        $crate::error::shown!($family);
    };
}

/// Shows an error as what has happened, whether anything has changed, and what to do.
macro_rules! shown {
    ($family:ident) => {
        impl std::fmt::Display for $family {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.cause(f)?;
                write!(f, "; {}; {}", self.changed(), self.next_step())
            }
        }
    };
}

/// Lets `?` make an error of one family of another one's. What that one holds of a third family
/// becomes the new one's, so that each cause has one place.
macro_rules! from {
    ($from:ident => $to:ident, $($inner:ident => $via:ident,)* _ => $variant:ident) => {
        impl From<$from> for $to {
            #[cold]
            fn from(error: $from) -> Self {
                match error {
                    $($from::$inner(error) => $to::$via(error),)*
                    error => $to::$variant(error),
                }
            }
        }
    };
}

use {family, from, shown};

/// What a closure writes.
fn text(write: impl Fn(&mut fmt::Formatter<'_>) -> fmt::Result) -> String {
    struct Written<F>(F);
    impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Display for Written<F> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            (self.0)(f)
        }
    }
    Written(write).to_string()
}

/// Any error of the library. Shown, it says what has happened, whether anything has changed,
/// and what to do about it.
///
/// By family and by cause:
///
/// ```
/// use rackmem::{AccessError, Changed, Error, RackError};
///
/// fn advice(error: &Error) -> &'static str {
///     match error {
///         Error::Rack(RackError::NodeLost { .. }) => "make it anew",
///         Error::Access(AccessError::Lost { .. }) => "make it anew",
///         Error::Rack(RackError::Fenced | RackError::Closed) => "join again",
///         Error::Open(_) | Error::Membership(_) => "correct the configuration",
///         other if other.changed() == Changed::No => "try again",
///         _ => "look, then try again",
///     }
/// }
///
/// let error = Error::from(RackError::NodeLost { node: 2 });
/// assert_eq!(advice(&error), "make it anew");
/// assert_eq!((error.family(), error.code()), ("rack", "node-lost"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Describing a rack, opening or joining it.
    Open(OpenError),
    /// Being a member.
    Membership(MembershipError),
    /// The rack, or a node of it, cannot be used now, whatever the operation.
    Rack(RackError),
    /// Reading and writing.
    Access(AccessError),
    /// Reading and writing long ranges.
    Bulk(BulkError),
    /// Allocating and freeing.
    Alloc(AllocError),
    /// Locks.
    Lock(LockError),
    /// Regions and names.
    Region(RegionError),
    /// Leaving.
    Leave(LeaveError),
    /// Transactions over several objects.
    Transaction(TransactionError),
    /// Objects in mapped memory.
    Arena(ArenaError),
    /// Owners of partitions.
    Steer(SteerError),
}

/// Lets `?` make an error of yours of every family's, where one can be made of
/// [`Error`](enum@Error).
///
/// ```
/// use rackmem::{Rack, RackError, from_families};
///
/// enum Mine {
///     Rack(rackmem::Error),
///     Empty,
/// }
/// impl From<rackmem::Error> for Mine {
///     fn from(error: rackmem::Error) -> Self {
///         Mine::Rack(error)
///     }
/// }
/// from_families!(Mine);
///
/// fn first(rack: &Rack) -> Result<u64, Mine> {
///     match rack.try_node(7)?.alloc(0u64)?.read()? {
///         0 => Err(Mine::Empty),
///         value => Ok(value),
///     }
/// }
/// let rack = Rack::local(1).unwrap_or_else(|why| panic!("{why}"));
/// let why = first(&rack);
/// assert!(matches!(why, Err(Mine::Rack(rackmem::Error::Rack(RackError::NoSuchNode { .. })))));
/// ```
#[macro_export]
macro_rules! from_families {
    ($own:ty) => {
        $crate::from_families!(
            $own: OpenError, RackError, AccessError, BulkError, AllocError, LockError, RegionError,
            LeaveError, TransactionError, ArenaError, SteerError
        );
        $crate::from_families!($own: membership::MembershipError);
    };
    ($own:ty: $($($family:ident)::+),+) => {
        $(impl From<$crate::$($family)::+> for $own {
            #[cold]
            fn from(error: $crate::$($family)::+) -> Self {
                $crate::Error::from(error).into()
            }
        })+
    };
}

/// The same of whichever family it is.
macro_rules! of_any {
    ($error:expr, $inner:ident => $result:expr) => {
        match $error {
            Error::Open($inner) => $result,
            Error::Membership($inner) => $result,
            Error::Rack($inner) => $result,
            Error::Access($inner) => $result,
            Error::Bulk($inner) => $result,
            Error::Alloc($inner) => $result,
            Error::Lock($inner) => $result,
            Error::Region($inner) => $result,
            Error::Leave($inner) => $result,
            Error::Transaction($inner) => $result,
            Error::Arena($inner) => $result,
            Error::Steer($inner) => $result,
        }
    };
}

impl Error {
    /// The cause in a word that stays the same in later versions, for logs.
    pub fn code(&self) -> &'static str {
        of_any!(self, error => error.code())
    }

    /// The family that the cause is of, in a word.
    pub fn family(&self) -> &'static str {
        of_any!(self, error => error.family())
    }

    /// What a program can do about it, by kind.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::of(self.code())
    }

    /// What has happened.
    pub fn what(&self) -> String {
        of_any!(self, error => error.what())
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        of_any!(self, error => error.changed())
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        of_any!(self, error => error.next_step())
    }

    /// What is wrong with the rack, or a node of it, if that is the cause:
    /// also in the middle of a long range.
    pub fn rack(&self) -> Option<RackError> {
        match self {
            Error::Rack(error) => Some(*error),
            Error::Bulk(bulk) => bulk.error.rack(),
            _ => None,
        }
    }

    /// What is wrong with the memory that was read or written, if that is the cause:
    /// also in the middle of a long range.
    pub fn access(&self) -> Option<AccessError> {
        match self {
            Error::Access(error) => Some(*error),
            Error::Bulk(bulk) => Some(bulk.error),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        of_any!(self, error => error.fmt(f))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        of_any!(self, error => error.source())
    }
}

from!(RackError => Error, _ => Rack);
from!(MembershipError => Error, _ => Membership);
from!(BulkError => Error, _ => Bulk);
from!(OpenError => Error, Membership => Membership, _ => Open);
from!(AccessError => Error, Rack => Rack, _ => Access);
from!(AllocError => Error, Rack => Rack, Access => Access, _ => Alloc);
from!(LockError => Error, Rack => Rack, Access => Access, Alloc => Alloc, _ => Lock);
from!(TransactionError => Error, Rack => Rack, Access => Access, _ => Transaction);
from!(ArenaError => Error, Rack => Rack, Access => Access, Alloc => Alloc, Lock => Lock, _ => Arena);
from!(LeaveError => Error, Rack => Rack, Access => Access, Membership => Membership, _ => Leave);
from!(
    RegionError => Error,
    Rack => Rack, Access => Access, Bulk => Bulk, Alloc => Alloc, Lock => Lock, _ => Region
);
