//! Objects in memory that several machines have mapped.

use super::{AccessError, AllocError, Changed, LockError, RackError, family, from};
use std::fmt;
use std::time::Duration;

/// Why something with an [`Arena`](crate::bounded::Arena) did not happen.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::bounded::{Arena, ArenaSpec};
/// use rackmem::{ArenaError, Rack};
///
/// let rack = Rack::local(1)?;
/// let nowhere = ArenaSpec::new("/nowhere/arena", 1 << 20);
/// let error = Arena::open(&rack.node(0), &nowhere).unwrap_err();
/// assert!(matches!(error, ArenaError::NoFile { .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArenaError {
    /// The rack, or a node of it, cannot be used now.
    Rack(RackError),
    /// The lock's memory was not read or written.
    Access(AccessError),
    /// There was no memory for the lock.
    Alloc(AllocError),
    /// The writers' lock was not taken.
    Lock(LockError),
    /// What was to be read, or was read, may be older than was promised.
    Late {
        /// By so much.
        by: Duration,
    },
    /// The rack has excluded this process: others do not wait for it, and may have reused what it
    /// reads.
    Expelled,
    /// Another node's clock shows what no clock can: its part of the arena is damaged, and without
    /// it nothing is known of the age of what is read.
    ClockSkew {
        /// By so much it would be ahead, or by more.
        by: Duration,
    },
    /// The pointer leads to no object of this arena of that size, or the slot is no place for one.
    BadPointer {
        /// The line that it names.
        line: u64,
        /// Bytes of the object that was expected there.
        len: usize,
    },
    /// Others have not quiesced, and so nothing that was freed can be forgotten or reused.
    RingFull {
        /// The domain that has quiesced least lately.
        slowest: u16,
    },
    /// This domain's share of the arena is given out.
    ArenaFull {
        /// Bytes of the share.
        share: u64,
    },
    /// No object has so many bytes.
    ObjectTooLarge {
        /// Bytes asked for.
        len: usize,
        /// Bytes that are possible.
        most: usize,
    },
    /// The file or device was not opened, made or mapped.
    NoFile {
        /// What was tried.
        tried: &'static str,
        /// The number of the operating system's error; 0 if it has none.
        os: i32,
    },
    /// What is there is no arena, is another version's, or is damaged.
    NoArena {
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is an arena already.
    IsThere,
    /// It is an arena of another rack.
    OtherRack {
        /// The number of that rack.
        rack: u64,
    },
    /// It was made otherwise than this program wants it.
    OtherShape {
        /// In what.
        what: &'static str,
        /// What it was made with.
        is: u64,
        /// What is wanted.
        wanted: u64,
    },
    /// This node has it already, in this process or another one.
    AttachedTwice {
        /// The node.
        node: u16,
    },
    /// A bound that clocks and threads cannot keep, or no room for one object a domain.
    BadSpec {
        /// What is wrong.
        why: &'static str,
    },
    /// A name that the arena needs for a lock of the rack is something else's.
    NameTaken {
        /// The number of the arena.
        number: u64,
    },
    /// The processor cannot write lines back or drop them.
    NoCacheOperations {
        /// What is missing.
        missing: &'static str,
    },
}

family!(ArenaError, "arena", through [Rack, Access, Alloc, Lock],
    Late => "late-section",
    Expelled => "expelled",
    ClockSkew => "clock-skew",
    BadPointer => "bad-pointer",
    RingFull => "ring-full",
    ArenaFull => "arena-full",
    ObjectTooLarge => "object-too-large",
    NoFile => "no-file",
    NoArena => "no-arena",
    IsThere => "is-there",
    OtherRack => "other-rack",
    OtherShape => "other-shape",
    AttachedTwice => "attached-twice",
    BadSpec => "bad-spec",
    NameTaken => "name-taken",
    NoCacheOperations => "no-cache-operations",
);

from!(RackError => ArenaError, _ => Rack);
from!(AccessError => ArenaError, Rack => Rack, _ => Access);
from!(
    LockError => ArenaError, Rack => Rack, Access => Access, Alloc => Alloc, _ => Lock
);

impl ArenaError {
    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArenaError::Rack(error) => error.cause(f),
            ArenaError::Access(error) => error.cause(f),
            ArenaError::Alloc(error) => error.cause(f),
            ArenaError::Lock(error) => error.cause(f),
            ArenaError::Late { by } => {
                write!(
                    f,
                    "what the section reads may be older than was promised, by {by:?}"
                )
            }
            ArenaError::Expelled => f.write_str("the rack has excluded this process"),
            ArenaError::ClockSkew { by } => {
                write!(
                    f,
                    "another node's clock in the arena would be ahead by {by:?}"
                )
            }
            ArenaError::BadPointer { line, len } => {
                write!(
                    f,
                    "line {line:#x} is not the first one of an object of {len} bytes"
                )
            }
            ArenaError::RingFull { slowest } => write!(
                f,
                "too much is freed and not reused yet: node {slowest} has quiesced least lately"
            ),
            ArenaError::ArenaFull { share } => {
                write!(
                    f,
                    "this node's share of the arena, {share} bytes, is given out"
                )
            }
            ArenaError::ObjectTooLarge { len, most } => {
                write!(
                    f,
                    "an object of {len} bytes is too large: {most} are possible"
                )
            }
            ArenaError::NoFile { tried, os: 0 } => {
                write!(f, "the arena's file cannot be used: {tried}")
            }
            ArenaError::NoFile { tried, os } => write!(
                f,
                "the arena's file cannot be used: {tried}: {}",
                std::io::Error::from_raw_os_error(*os)
            ),
            ArenaError::NoArena { why } => write!(f, "the file holds no arena: {why}"),
            ArenaError::IsThere => f.write_str("there is an arena in the file"),
            ArenaError::OtherRack { rack } => {
                write!(f, "the arena was made by another rack, number {rack:016x}")
            }
            ArenaError::OtherShape { what, is, wanted } => {
                write!(f, "the arena was made with {what} {is}, not {wanted}")
            }
            ArenaError::AttachedTwice { node } => {
                write!(f, "node {node} has attached the arena already")
            }
            ArenaError::BadSpec { why } => write!(f, "no arena can be so: {why}"),
            ArenaError::NameTaken { number } => write!(
                f,
                "`arena/{number:016x}` is no lock: the arena needs it to take over what others left"
            ),
            ArenaError::NoCacheOperations { missing } => {
                write!(
                    f,
                    "this processor does not manage its cache for programs: {missing}"
                )
            }
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            ArenaError::Rack(error) => error.changed(),
            ArenaError::Access(error) => error.changed(),
            ArenaError::Alloc(error) => error.changed(),
            ArenaError::Lock(error) => error.changed(),
            _ => Changed::No,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            ArenaError::Rack(error) => error.next_step(),
            ArenaError::Access(error) => error.next_step(),
            ArenaError::Alloc(error) => error.next_step(),
            ArenaError::Lock(error) => error.next_step(),
            ArenaError::Late { .. } => {
                "throw away what the section has read and begin another one, or ask for a longer bound"
            }
            ArenaError::Expelled => "end this process and start it again",
            ArenaError::ClockSkew { .. } => {
                "look which node says so (`rackmem inspect --bounded`), and make the arena anew"
            }
            ArenaError::BadPointer { .. } => {
                "use pointers that were read from slots of this arena, with the type that was stored"
            }
            ArenaError::RingFull { .. } => {
                "look which node is late (`rackmem inspect --bounded`), then try again"
            }
            ArenaError::ArenaFull { .. } => "free some, or make a larger arena",
            ArenaError::ObjectTooLarge { .. } => "use several objects with pointers to each",
            ArenaError::NoFile { .. } => "correct the path or its rights, then try again",
            ArenaError::NoArena { .. } => {
                "name another file, or remove this one and create it anew"
            }
            ArenaError::IsThere => "open it, or remove the file if its rack is gone",
            ArenaError::OtherRack { .. } => {
                "name another file, or remove this one if that rack is gone"
            }
            ArenaError::OtherShape { .. } => "open it as it was made, or remove the file",
            ArenaError::AttachedTwice { .. } => {
                "use the handle that is there, or remove the file if the rack began anew since"
            }
            ArenaError::BadSpec { .. } => "ask for a longer bound or for more bytes",
            ArenaError::NameTaken { .. } => "remove what has that name, then try again",
            ArenaError::NoCacheOperations { .. } => {
                "use items at their home instead (`bounded::Domain`), which need none"
            }
        }
    }
}

impl std::error::Error for ArenaError {}
