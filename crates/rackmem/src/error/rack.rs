//! The rack, or a node of it, cannot be used now.

use super::{Changed, family};
use rackmem_proto::wire::{NodeId, Reason};
use std::fmt;

/// The rack, or a node of it, cannot be used now: it can happen to any operation.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{AccessError, Rack, RackError};
///
/// let rack = Rack::local(1)?;
/// let count = rack.node(0).alloc(0u64)?;
/// drop(rack);
/// assert_eq!(count.read(), Err(AccessError::Rack(RackError::Closed)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RackError {
    /// The rack has been closed in this process. What was under way may have happened;
    /// nothing that began afterwards has.
    Closed,
    /// The rack has declared this process dead and goes on without it.
    /// What it wrote last may be lost.
    Fenced,
    /// This process cannot show the rack that it is alive, and so must not use its cache.
    /// It may pass.
    NoLease,
    /// The node that gave this memory has died or left, and its memory with it.
    NodeLost {
        /// The node.
        node: NodeId,
    },
    /// There is no node of this number: not in the rack, or not in this process.
    NoSuchNode {
        /// The number.
        node: usize,
    },
    /// The home of the memory, or the switch, has not answered for as long as the configuration
    /// allows.
    Timeout {
        /// The home.
        node: NodeId,
    },
    /// A peer has refused in a way that no correct peer does.
    Refused {
        /// What it said.
        reason: Reason,
    },
    /// This process does not get a socket, or shared memory, for one more thread.
    NoSocket {
        /// The number of the operating system's error; 0 if it gave none.
        os: i32,
    },
}

family!(RackError, "rack", through [],
    Closed => "closed",
    Fenced => "fenced",
    NoLease => "no-lease",
    NodeLost => "node-lost",
    NoSuchNode => "no-such-node",
    Timeout => "timeout",
    Refused => "refused",
    NoSocket => "no-socket",
);

impl RackError {
    pub(crate) fn no_socket(error: &std::io::Error) -> Self {
        let os = error.raw_os_error().unwrap_or(0);
        RackError::NoSocket { os }
    }

    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RackError::Closed => f.write_str("the rack is closed in this process"),
            RackError::Fenced => {
                f.write_str("the rack has declared this process dead and goes on without it")
            }
            RackError::NoLease => f.write_str(
                "the membership store does not answer, so this process must not use its cache",
            ),
            RackError::NodeLost { node } => write!(
                f,
                "node {node} is no longer the member that gave this memory, which is lost"
            ),
            RackError::NoSuchNode { node } => {
                write!(f, "node {node} is not in the rack, or not in this process")
            }
            RackError::Timeout { node } => write!(
                f,
                "no answer about memory of node {node}: the node or the switch is dead or cannot be reached"
            ),
            RackError::Refused { reason } => {
                write!(f, "a peer broke the protocol ({reason:?})")
            }
            RackError::NoSocket { os: 0 } => f.write_str("there is no socket for one more thread"),
            RackError::NoSocket { os } => write!(
                f,
                "there is no socket for one more thread: {}",
                std::io::Error::from_raw_os_error(*os)
            ),
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            RackError::Closed | RackError::Fenced | RackError::Timeout { .. } => Changed::Perhaps,
            RackError::NoLease
            | RackError::NodeLost { .. }
            | RackError::NoSuchNode { .. }
            | RackError::Refused { .. }
            | RackError::NoSocket { .. } => Changed::No,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            RackError::Closed => "open or join the rack again, and drop the handles on this one",
            RackError::Fenced => "drop this rack and join it again",
            RackError::NoLease => "check that the store runs and can be reached, then try again",
            RackError::NodeLost { .. } => {
                "make the data anew on a live node (a node that comes back has empty memory)"
            }
            RackError::NoSuchNode { .. } => {
                "choose a number from 0 to the rack's last node (`Node::nodes`), or a node of this process"
            }
            RackError::Timeout { .. } => {
                "check that the node and the switch run and can be reached, then look what is there and try again"
            }
            RackError::Refused { .. } => {
                "run the same version everywhere, and if it stays, report it with this text"
            }
            RackError::NoSocket { .. } => {
                "raise the limit of open files (`ulimit -n`), or use fewer threads"
            }
        }
    }
}

impl std::error::Error for RackError {}
