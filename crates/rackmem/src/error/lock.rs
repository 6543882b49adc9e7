//! A lock is made, found, taken, waited for or freed.

use super::{AccessError, AllocError, Changed, RackError, family, from};
use std::fmt;

/// Why something with a lock did not happen.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{LockError, Rack, locked::Mutex};
///
/// let rack = Rack::local(2)?;
/// let here = Mutex::create(&rack.node(0), 7u64)?;
/// let there = Mutex::<u64>::attach(&rack.node(1), here.addr())?;
/// let addr = here.addr();
/// here.free()?;
/// assert_eq!(there.lock().unwrap_err(), LockError::Freed { addr });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LockError {
    /// The rack, or a node of it, cannot be used now.
    Rack(RackError),
    /// The lock's description, or what its ranges had before, was not read or written.
    Access(AccessError),
    /// There is no memory for a new lock.
    Alloc(AllocError),
    /// No lock protects anything of this shape.
    BadShape {
        /// What is wrong with it.
        why: LockShape,
    },
    /// At this address is no lock of this kind that protects so many bytes.
    NoLock {
        /// The global address.
        addr: u64,
    },
    /// At this address is a lock of this kind over a value of as many bytes, but of another type.
    WrongType {
        /// The global address.
        addr: u64,
    },
    /// The lock of this handle has been freed; in its place may be another one.
    Freed {
        /// Where it was.
        addr: u64,
    },
    /// A lock in a region with copies stays, as the region does.
    Stays {
        /// The global address.
        addr: u64,
    },
    /// The lock is freed here, but its home has not confirmed that, or its name is not free yet.
    FreedInPart {
        /// Where it was.
        addr: u64,
        /// Why the rest has not happened.
        why: AccessError,
    },
    /// Other threads stayed inside for as long as the configuration allows.
    Busy {
        /// The global address.
        addr: u64,
    },
    /// These bytes are not all of one range of the lock.
    OutsideRanges {
        /// The global address of the first.
        addr: u64,
        /// How many.
        len: usize,
    },
    /// This node knows as many locks as it can.
    TooManyLocks {
        /// How many.
        most: usize,
    },
    /// As many threads wait for a condition as it has room for.
    TooManyWaiting {
        /// How many.
        most: usize,
    },
}

/// What is wrong with what a lock was to protect.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{LockError, LockShape, Rack, locked::RangesLock};
///
/// let rack = Rack::local(1)?;
/// let addr = rack.node(0).alloc_bytes(100)?;
/// let error = RangesLock::create(&rack.node(0), &[(addr, 8), (addr + 4, 8)]).unwrap_err();
/// assert_eq!(error, LockError::BadShape { why: LockShape::Overlap });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LockShape {
    /// More bytes than a lock protects.
    TooLong {
        /// Bytes that are possible.
        most: usize,
    },
    /// More ranges than a lock has.
    ManyRanges {
        /// Ranges that are possible.
        most: usize,
    },
    /// A range is empty, or goes past the last address.
    BadRange,
    /// Two ranges share a byte.
    Overlap,
    /// An array begins at an address that is no multiple of 16, or its pages are empty or no
    /// multiple of 8 bytes.
    Unaligned,
    /// The region is not coherent memory with copies.
    NoCopies,
    /// In a region with copies, a lock would lie in two blocks with what it protects, or begins at
    /// no multiple of 16.
    TwoBlocks {
        /// Bytes of a block.
        block: usize,
    },
}

impl fmt::Display for LockShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockShape::TooLong { most } => write!(f, "a lock protects at most {most} bytes"),
            LockShape::ManyRanges { most } => write!(f, "a lock has at most {most} ranges"),
            LockShape::BadRange => {
                f.write_str("a lock's range is empty, or goes past the last address")
            }
            LockShape::Overlap => f.write_str("two ranges of a lock share a byte"),
            LockShape::Unaligned => f.write_str(
                "an array of locks begins at a multiple of 16, and its pages are multiples of 8 bytes",
            ),
            LockShape::NoCopies => {
                f.write_str("locks are made in regions of coherent memory with copies only")
            }
            LockShape::TwoBlocks { block } => write!(
                f,
                "in a region with copies a lock lies in one block of {block} bytes with what it protects, \
                 at a multiple of 16"
            ),
        }
    }
}

family!(LockError, "lock", through [Rack, Access, Alloc],
    BadShape => "bad-shape",
    NoLock => "no-lock",
    WrongType => "wrong-type",
    Freed => "lock-freed",
    Stays => "lock-stays",
    FreedInPart => "lock-freed-in-part",
    Busy => "lock-busy",
    OutsideRanges => "outside-ranges",
    TooManyLocks => "too-many-locks",
    TooManyWaiting => "too-many-waiting",
);

from!(RackError => LockError, _ => Rack);
from!(AccessError => LockError, Rack => Rack, _ => Access);
from!(AllocError => LockError, Rack => Rack, Access => Access, _ => Alloc);

impl LockError {
    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Rack(error) => error.cause(f),
            LockError::Access(error) => error.cause(f),
            LockError::Alloc(error) => error.cause(f),
            LockError::BadShape { why } => fmt::Display::fmt(why, f),
            LockError::NoLock { addr } => {
                write!(f, "at {addr:#018x} is no lock of this kind and size")
            }
            LockError::WrongType { addr } => write!(
                f,
                "the lock at {addr:#018x} protects a value of another type"
            ),
            LockError::Freed { addr } => write!(f, "the lock at {addr:#018x} has been freed"),
            LockError::Stays { addr } => write!(
                f,
                "the lock at {addr:#018x} is in a region with copies, and stays with it"
            ),
            LockError::FreedInPart { addr, why } => {
                write!(f, "the lock at {addr:#018x} is freed, but not everywhere: ")?;
                why.cause(f)
            }
            LockError::Busy { addr } => {
                write!(f, "other threads stayed inside the lock at {addr:#018x}")
            }
            LockError::OutsideRanges { addr, len } => write!(
                f,
                "{len} bytes at {addr:#018x} are not all of one range of the lock"
            ),
            LockError::TooManyLocks { most } => {
                write!(
                    f,
                    "this node knows {most} locks, which is as many as it can"
                )
            }
            LockError::TooManyWaiting { most } => write!(
                f,
                "{most} threads wait for this condition, which is as many as can"
            ),
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            LockError::Rack(error) => error.changed(),
            LockError::Access(error) => error.changed(),
            LockError::Alloc(error) => error.changed(),
            LockError::FreedInPart { .. } => Changed::Yes,
            LockError::BadShape { .. }
            | LockError::NoLock { .. }
            | LockError::WrongType { .. }
            | LockError::Freed { .. }
            | LockError::Stays { .. }
            | LockError::Busy { .. }
            | LockError::OutsideRanges { .. }
            | LockError::TooManyLocks { .. }
            | LockError::TooManyWaiting { .. } => Changed::No,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            LockError::Rack(error) => error.next_step(),
            LockError::Access(error) => error.next_step(),
            LockError::Alloc(error) => error.next_step(),
            LockError::BadShape { .. } => {
                "divide it among several locks, or correct the list, the place or the region"
            }
            LockError::NoLock { .. } => "attach with the kind of lock and the type that made it",
            LockError::WrongType { .. } => "attach with the type that made it",
            LockError::Freed { .. } => {
                "drop its handles and make another one (`renewed`, if it has a name)"
            }
            LockError::Stays { .. } => "leave it, or use it for something else",
            LockError::FreedInPart { .. } => {
                "drop its handles (if it has a name, `renewed` finishes this and makes another one)"
            }
            LockError::Busy { .. } => {
                "try again (`rackmem inspect` and `Node::locks` show who is inside)"
            }
            LockError::OutsideRanges { .. } => "read and write within the lock's `ranges`",
            LockError::TooManyLocks { .. } => "free locks, or make them at other nodes",
            LockError::TooManyWaiting { .. } => "use several conditions, or fewer threads",
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LockError::FreedInPart { why, .. } => Some(why),
            _ => None,
        }
    }
}
