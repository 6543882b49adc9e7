//! Coherent memory is read or written.

use super::{Changed, RackError, family, from};
use rackmem_proto::wire::{Contract, NodeId, Tag};
use std::fmt;
use std::time::Duration;

/// Why memory was not read or written.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{AccessError, Rack};
///
/// let rack = Rack::local(1)?;
/// let error = rack.node(0).load(4).unwrap_err();
/// assert!(matches!(error, AccessError::BadRange { addr: 4, .. }), "{error}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AccessError {
    /// The rack, or a node of it, cannot be used now.
    Rack(RackError),
    /// The address is in no memory of this rack: its node does not exist, or has not handed it out.
    BadAddress {
        /// The global address.
        addr: u64,
    },
    /// The memory is shared under another contract than this operation's: it is a lock's, say,
    /// and this reads bytes.
    WrongContract {
        /// The global address.
        addr: u64,
        /// The operation's.
        wanted: Contract,
        /// The memory's.
        is: Contract,
    },
    /// The range must lie within one block (or be aligned) for this operation and does not.
    BadRange {
        /// The global address.
        addr: u64,
        /// Bytes asked for.
        len: usize,
        /// Bytes of a block.
        block: usize,
    },
    /// The slice has no such elements.
    OutOfBounds {
        /// The first element asked for.
        at: usize,
        /// How many.
        len: usize,
        /// How many it has.
        of: usize,
    },
    /// The system does not put the block's page into the mapping: its addresses are not the
    /// mapping's any more, or the process has as many mappings as it may (`vm.max_map_count`).
    NotShown {
        /// The block's global address.
        addr: u64,
        /// The number of the operating system's error.
        os: i32,
    },
    /// The block's last content died with a node.
    Lost {
        /// The block's global address.
        addr: u64,
    },
    /// The rack changed while the operation was under way.
    Interrupted {
        /// The block's global address.
        addr: u64,
    },
    /// No majority of the copies has answered in the time that the configuration allows.
    NoQuorum {
        /// The line's global address.
        addr: u64,
        /// Copies that have answered the last question.
        answered: u8,
        /// How many are a majority.
        needed: u8,
        /// Whether it was a write, which may take effect later, or never.
        writes: bool,
    },
    /// The region with copies that this line was in has been removed.
    Removed {
        /// The line's global address.
        addr: u64,
    },
    /// This node cannot write replicated memory any more: it has been started too often.
    NoStamp {
        /// The line's global address.
        addr: u64,
    },
    /// The object has been freed. What may be in its place is another one.
    Gone {
        /// The object's global address.
        addr: u64,
    },
    /// Every attempt to read the object has met a writer.
    Torn {
        /// The object's global address.
        addr: u64,
        /// Attempts.
        tries: u32,
    },
    /// The object has another size than the handle's type, or less room than was to be written.
    OtherSize {
        /// The object's global address.
        addr: u64,
        /// Bytes that were asked for.
        len: usize,
        /// Bytes that it has; 0 where only its home knows.
        is: usize,
    },
    /// Bounded memory: what was to be read, or was read, may be older than was promised.
    Stale {
        /// The region's global address.
        addr: u64,
        /// By so much.
        by: Duration,
    },
    /// Bounded memory cannot be asked for as often as this bound needs.
    TightBound {
        /// What was asked for.
        bound: Duration,
        /// What is possible.
        least: Duration,
    },
    /// The system does not map a page of replicated memory.
    NotMapped {
        /// The page's global address.
        addr: u64,
        /// The number of the operating system's error.
        os: i32,
    },
    /// The block stayed locked by others for as long as the configuration allows.
    Busy {
        /// The block's global address.
        addr: u64,
    },
    /// As many operations of futures are under way or wait at this node as may be.
    TooManyAsked {
        /// How many.
        most: usize,
    },
}

family!(AccessError, "access", through [Rack],
    BadAddress => "bad-address",
    WrongContract => "wrong-contract",
    BadRange => "bad-range",
    OutOfBounds => "out-of-bounds",
    NotShown => "not-shown",
    Lost => "lost",
    Interrupted => "interrupted",
    NoQuorum => "no-quorum",
    Removed => "copies-removed",
    NoStamp => "no-stamp",
    Gone => "gone",
    Torn => "torn",
    OtherSize => "other-size",
    Stale => "stale",
    TightBound => "tight-bound",
    NotMapped => "not-mapped",
    Busy => "busy",
    TooManyAsked => "too-many-asked",
);

from!(RackError => AccessError, _ => Rack);

impl AccessError {
    /// This memory's home is gone, or is none of this rack: `host` is who serves it.
    pub(crate) fn gone(tag: Tag, host: Option<NodeId>) -> Self {
        let lost = |node| AccessError::Rack(RackError::NodeLost { node });
        host.map_or(AccessError::BadAddress { addr: tag.0 }, lost)
    }

    /// This memory's home has not answered: `host` is who serves it.
    pub(crate) fn silent(tag: Tag, host: Option<NodeId>) -> Self {
        let silent = |node| AccessError::Rack(RackError::Timeout { node });
        host.map_or(AccessError::BadAddress { addr: tag.0 }, silent)
    }

    /// What is at this address is no memory under the contract that was wanted.
    pub(crate) fn wrong_contract(tag: Tag, wanted: Contract) -> Self {
        let addr = tag.0;
        match tag.contract() {
            Some(is) if is != wanted => AccessError::WrongContract { addr, wanted, is },
            _ => AccessError::BadAddress { addr },
        }
    }

    /// What is wrong with the rack, or a node of it, if that is the cause.
    pub fn rack(&self) -> Option<RackError> {
        match self {
            AccessError::Rack(error) => Some(*error),
            _ => None,
        }
    }

    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessError::Rack(error) => error.cause(f),
            AccessError::BadAddress { addr } => {
                write!(f, "address {addr:#018x} is in no memory of this rack")
            }
            AccessError::WrongContract { addr, wanted, is } => write!(
                f,
                "memory at {addr:#018x} is {is}, and this operation is for {wanted} memory"
            ),
            AccessError::BadRange { addr, len, block } => write!(
                f,
                "{len} bytes at {addr:#018x} are not aligned to 8 bytes, or not within one block of {block} bytes"
            ),
            AccessError::OutOfBounds { at, len, of } => {
                write!(
                    f,
                    "{len} elements from number {at} on are not all among {of}"
                )
            }
            AccessError::NotShown { addr, os } => write!(
                f,
                "the page of block {addr:#018x} cannot be mapped: {}",
                std::io::Error::from_raw_os_error(*os)
            ),
            AccessError::Lost { addr } => {
                write!(f, "the last content of block {addr:#018x} died with a node")
            }
            AccessError::Interrupted { addr } => {
                write!(f, "the rack changed during an operation on {addr:#018x}")
            }
            AccessError::NoQuorum {
                addr,
                answered,
                needed,
                ..
            } => write!(
                f,
                "{answered} of the {needed} copies that are needed have answered for the line at {addr:#018x}"
            ),
            AccessError::Removed { addr } => {
                write!(f, "the region of the line at {addr:#018x} was removed")
            }
            AccessError::NoStamp { addr } => write!(
                f,
                "this node has no number left to write the line at {addr:#018x} under: it has been started over 65,535 times"
            ),
            AccessError::Gone { addr } => {
                write!(f, "the object at {addr:#018x} has been freed")
            }
            AccessError::Torn { addr, tries } => write!(
                f,
                "the object at {addr:#018x} was being written in each of {tries} attempts to read it"
            ),
            AccessError::OtherSize { addr, len, is: 0 } => {
                write!(f, "the object at {addr:#018x} has no room for {len} bytes")
            }
            AccessError::OtherSize { addr, len, is } => {
                write!(f, "the object at {addr:#018x} has {is} bytes, not {len}")
            }
            AccessError::Stale { addr, by } => write!(
                f,
                "what is read at {addr:#018x} may be older than was promised, by {by:?}"
            ),
            AccessError::TightBound { bound, least } => {
                write!(
                    f,
                    "bounded memory cannot be {bound:?} old at most: {least:?} is the least"
                )
            }
            AccessError::NotMapped { addr, os } => write!(
                f,
                "the page at {addr:#018x} cannot be mapped: {}",
                std::io::Error::from_raw_os_error(*os)
            ),
            AccessError::Busy { addr } => write!(
                f,
                "block {addr:#018x} stayed locked by other threads or nodes"
            ),
            AccessError::TooManyAsked { most } => write!(
                f,
                "futures of this node have {most} operations under way, as many as may be"
            ),
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            AccessError::Rack(error) => error.changed(),
            AccessError::Interrupted { .. } | AccessError::NoQuorum { writes: true, .. } => {
                Changed::Perhaps
            }
            AccessError::BadAddress { .. }
            | AccessError::WrongContract { .. }
            | AccessError::BadRange { .. }
            | AccessError::OutOfBounds { .. }
            | AccessError::NotShown { .. }
            | AccessError::Lost { .. }
            | AccessError::NoQuorum { .. }
            | AccessError::Removed { .. }
            | AccessError::NoStamp { .. }
            | AccessError::Gone { .. }
            | AccessError::Torn { .. }
            | AccessError::OtherSize { .. }
            | AccessError::Stale { .. }
            | AccessError::TightBound { .. }
            | AccessError::NotMapped { .. }
            | AccessError::Busy { .. }
            | AccessError::TooManyAsked { .. } => Changed::No,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            AccessError::Rack(error) => error.next_step(),
            AccessError::BadAddress { .. } => {
                "use an address that a node of this rack has allocated"
            }
            AccessError::WrongContract { is, .. } => use_of(*is),
            AccessError::BadRange { .. } => {
                "align it to 8 bytes within one block, or use `Node::read` and `Node::write`"
            }
            AccessError::OutOfBounds { .. } => {
                "stay within its length (`SharedSlice::len`, `Region::bytes`)"
            }
            AccessError::NotShown { .. } => {
                "do not unmap what a handle is on, raise vm.max_map_count, or map with `FaultMode::Signal`"
            }
            AccessError::Lost { .. } => {
                "go on with what its home has (`Node::accept_loss`) or with zeros (`Node::accept_empty`)"
            }
            AccessError::Interrupted { .. } => "look what is there, then try again",
            AccessError::NoQuorum { .. } => {
                "start the members that are down, or have dead ones replaced (`rackmem members replace`), then try again"
            }
            AccessError::Removed { .. } => "drop the handle, and open or create the region anew",
            AccessError::NoStamp { .. } => "start this process as a node of another number",
            AccessError::Gone { .. } => "get a handle on the object that is meant now",
            AccessError::Torn { .. } => {
                "try again, more often or with writers kept out (`Retry::then`)"
            }
            AccessError::OtherSize { .. } => {
                "use a handle of the type it was made with, or make one with more room"
            }
            AccessError::Stale { .. } => {
                "throw away what the section has read and begin another one, and ask for a longer bound if it happens often"
            }
            AccessError::TightBound { .. } => "ask for a longer bound, or use coherent memory",
            AccessError::NotMapped { .. } => {
                "look for a limit of memory of this process, then try again"
            }
            AccessError::Busy { .. } => {
                "try again, and if it stays, look for a thread that has stopped with a lock"
            }
            AccessError::TooManyAsked { .. } => {
                "await some futures before more are polled (a semaphore, `buffer_unordered`)"
            }
        }
    }
}

/// How memory under this contract is used.
fn use_of(is: Contract) -> &'static str {
    match is {
        Contract::Coherent => "use `Node::read` and `Node::write`, or a `Shared`",
        Contract::Locked => "use its lock (`Mutex`, `RwLock`, `RangesLock`, `RwLockArray`)",
        Contract::Replicated => "use its region, or a `Replicated` (`Node::attach_replicated`)",
        Contract::Object => "use an `Object` (`Node::attach_object`)",
        Contract::Bounded => "use the version that made it: this one cannot",
    }
}

impl std::error::Error for AccessError {}
