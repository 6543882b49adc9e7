//! A node leaves a rack.

use super::{AccessError, Changed, MembershipError, RackError, family, from};
use rackmem_proto::wire::NodeId;
use std::fmt;

/// Why a node has not left its rack as it should. [`Rack::leave`](crate::Rack::leave) drops the
/// rack all the same, as a crash does: what the node had alone is lost.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{LeaveError, Rack};
///
/// let rack = Rack::local(1)?;
/// rack.node(0).alloc(7u64)?;
/// let error = rack.leave().unwrap_err();
/// assert!(matches!(error, LeaveError::InUse { node: 0 }), "{error}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum LeaveError {
    /// The rack, or a node of it, cannot be used now.
    Rack(RackError),
    /// Something in its cache was not written home.
    Access(AccessError),
    /// The membership store did not take note of it.
    Membership(MembershipError),
    /// The node gives memory that others use: if it leaves, their data is lost.
    InUse {
        /// The node.
        node: NodeId,
    },
    /// A thread of the node is inside a lock of another node or waits for one, or that lock's home
    /// did not take it back in time.
    LocksInUse {
        /// The node.
        node: NodeId,
    },
    /// Too few of those that keep a block are left to take what the node has written to it.
    Deserted {
        /// The node.
        node: NodeId,
        /// The block's global address.
        addr: u64,
    },
}

family!(LeaveError, "leave", through [Rack, Access, Membership],
    InUse => "memory-in-use",
    LocksInUse => "locks-in-use",
    Deserted => "deserted",
);

from!(RackError => LeaveError, _ => Rack);
from!(AccessError => LeaveError, Rack => Rack, _ => Access);
from!(MembershipError => LeaveError, _ => Membership);

impl LeaveError {
    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaveError::Rack(error) => error.cause(f),
            LeaveError::Access(error) => error.cause(f),
            LeaveError::Membership(error) => error.cause(f),
            LeaveError::InUse { node } => write!(
                f,
                "node {node} has gone without leaving: it has given out memory, whose content is lost"
            ),
            LeaveError::Deserted { node, addr } => write!(
                f,
                "node {node} has gone with what it wrote last, at {addr:#x} among others: too few members are left that keep it"
            ),
            LeaveError::LocksInUse { node } => {
                write!(
                    f,
                    "node {node} has gone without leaving: it used locks of other nodes, or could not return them"
                )
            }
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            // It has written some of its cache home, and has then gone.
            LeaveError::Rack(_)
            | LeaveError::Access(_)
            | LeaveError::Membership(_)
            | LeaveError::InUse { .. }
            | LeaveError::LocksInUse { .. }
            | LeaveError::Deserted { .. } => Changed::Yes,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            LeaveError::Rack(error) => error.next_step(),
            LeaveError::Access(error) => error.next_step(),
            LeaveError::Membership(error) => error.next_step(),
            LeaveError::InUse { .. } => {
                "before it leaves, free what is of its memory, or copy it to other nodes"
            }
            LeaveError::Deserted { .. } => {
                "end the members of a rack one after the other, or have each write survive (`survives`)"
            }
            LeaveError::LocksInUse { .. } => {
                "before it leaves, let its threads leave them, and check that their homes can be reached"
            }
        }
    }
}

impl std::error::Error for LeaveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LeaveError::Membership(error) => error.source(),
            _ => None,
        }
    }
}
