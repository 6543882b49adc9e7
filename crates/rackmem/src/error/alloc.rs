//! Memory is allocated or freed.

use super::{AccessError, Changed, RackError, family, from};
use rackmem_proto::wire::NodeId;
use std::fmt;

/// Why memory was not allocated or freed.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{AllocError, Rack};
///
/// let rack = Rack::local(2)?;
/// let all = rack.node(0).alloc_bytes_on(1, 1 << 40);
/// assert_eq!(all, Err(AllocError::OutOfMemory { node: 1 }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AllocError {
    /// The rack, or a node of it, cannot be used now.
    Rack(RackError),
    /// New memory was not written, or what was to be freed is no such memory.
    Access(AccessError),
    /// The node has not as much memory left, or never had.
    OutOfMemory {
        /// The node.
        node: NodeId,
    },
    /// Nothing of this kind has so many bytes.
    TooLarge {
        /// Bytes asked for.
        len: usize,
        /// Bytes that are possible.
        most: usize,
    },
    /// Nothing of this size that begins there is allocated: it was freed before, perhaps, or
    /// allocated with another size.
    NotAllocated {
        /// The global address.
        addr: u64,
    },
}

family!(AllocError, "alloc", through [Rack, Access],
    OutOfMemory => "out-of-memory",
    TooLarge => "too-large",
    NotAllocated => "not-allocated",
);

from!(RackError => AllocError, _ => Rack);
from!(AccessError => AllocError, Rack => Rack, _ => Access);

impl AllocError {
    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllocError::Rack(error) => error.cause(f),
            AllocError::Access(error) => error.cause(f),
            AllocError::OutOfMemory { node } => {
                write!(f, "node {node} has not as much memory left")
            }
            AllocError::TooLarge { len, most } => {
                write!(f, "{len} bytes are too many: at most {most} are possible")
            }
            AllocError::NotAllocated { addr } => {
                write!(f, "no memory of this size is allocated at {addr:#018x}")
            }
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            AllocError::Rack(error) => error.changed(),
            AllocError::Access(error) => error.changed(),
            AllocError::OutOfMemory { .. }
            | AllocError::TooLarge { .. }
            | AllocError::NotAllocated { .. } => Changed::No,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            AllocError::Rack(error) => error.next_step(),
            AllocError::Access(error) => error.next_step(),
            AllocError::OutOfMemory { .. } => {
                "free some, use another node, or raise `memory` in the configuration"
            }
            AllocError::TooLarge { .. } => {
                "use several, or a `SharedSlice`, which may be longer than a block"
            }
            AllocError::NotAllocated { .. } => {
                "free an address once, with the size it was allocated with, and a lock by its handle"
            }
        }
    }
}

impl std::error::Error for AllocError {}
