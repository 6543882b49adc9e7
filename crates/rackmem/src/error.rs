//! What can go wrong, and what to do about it.

use rackmem_proto::heap::Backing;
use rackmem_proto::wire::{Contract, NodeId, Reason, Tag};

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation did not happen. Unless a variant says otherwise, nothing has changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The node gives memory that others use: if it leaves, their data is lost.
    InUse {
        /// The node.
        node: NodeId,
    },
    /// The rack has declared this process dead and goes on without it. Start it again.
    Fenced,
    /// This process cannot show the rack that it is alive, and so must not use its cache.
    /// It may pass.
    NoLease,
    /// The node that gave this memory has died or left, and its memory with it.
    NodeLost {
        /// The node.
        node: NodeId,
    },
    /// What had this name has died with the node that gave its memory. It can be had anew:
    /// [`Mutex::renewed`](crate::locked::Mutex::renewed) and its like,
    /// [`Node::renewed_region`](crate::Node::renewed_region).
    NameLost {
        /// The name.
        name: String,
        /// The node.
        node: NodeId,
    },
    /// The block's last content died with a node; [`Node::accept_loss`](crate::Node::accept_loss)
    /// goes on with what its home had before.
    Lost {
        /// Where.
        addr: u64,
    },
    /// The rack changed while the operation was under way: it may or may not have happened.
    Interrupted {
        /// Where.
        addr: u64,
    },
    /// The address is in no memory of this rack: its node does not exist, or has not handed it out.
    BadAddress {
        /// The global address.
        addr: u64,
    },
    /// The memory at this address is shared under another contract than this operation's: it is a
    /// lock's, say, and this reads bytes.
    WrongContract {
        /// The global address.
        address: u64,
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
    /// Nothing of this size that begins there is allocated: it was freed before, perhaps, or
    /// allocated with another size.
    NotAllocated {
        /// Where.
        addr: u64,
    },
    /// The node has not as much memory left, or never had. Raise its `memory`, or free some.
    OutOfMemory {
        /// The node.
        node: NodeId,
    },
    /// A region of this name exists with another size, element type or backing.
    RegionMismatch {
        /// The name.
        name: String,
    },
    /// The region of this handle has been removed; another may have its name. Drop the handle, and
    /// open or create the region anew.
    RegionRemoved {
        /// The name.
        name: String,
    },
    /// The region has no such bytes.
    RegionBounds {
        /// Its name.
        name: String,
        /// The first byte asked for.
        at: usize,
        /// How many.
        len: usize,
    },
    /// The slice or array has no such elements.
    OutOfBounds {
        /// The first element asked for.
        at: usize,
        /// How many.
        len: usize,
        /// How many it has.
        of: usize,
    },
    /// What has this name is not removed as a region: a lock is freed by its handle
    /// ([`Mutex::free`](crate::locked::Mutex::free)), and an array of locks cannot be freed yet.
    NotRemovable {
        /// The name.
        name: String,
        /// Its contract.
        contract: Contract,
    },
    /// This version has no memory under this contract.
    ContractNotBuilt {
        /// Which.
        contract: Contract,
    },
    /// This version has no memory with this backing.
    BackingNotBuilt {
        /// Which.
        backing: Backing,
    },
    /// No region of this name exists.
    NoSuchRegion {
        /// The name.
        name: String,
    },
    /// The region table is full, or the name does not fit it.
    RegionTable {
        /// The name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// Nobody has answered for as long as the configuration allows:
    /// the switch or a node is dead or unreachable. A write may or may not have taken effect.
    Timeout {
        /// Home of the block concerned.
        node: NodeId,
    },
    /// The block stayed locked by others for as long as the configuration allows.
    Busy {
        /// The block's address.
        addr: u64,
    },
    /// At this address is no lock of this kind that protects so many bytes.
    NoLock {
        /// Where.
        addr: u64,
    },
    /// At this address is a lock of this kind over a value of as many bytes, but of another type.
    WrongType {
        /// Where.
        addr: u64,
    },
    /// The lock of this handle has been freed; in its place may be another one. A second `free` is
    /// told so as well. Make or attach to another one; by its name
    /// [`Mutex::renewed`](crate::locked::Mutex::renewed) makes it anew.
    LockFreed {
        /// Where it was.
        addr: u64,
    },
    /// The node cannot leave: a thread of it is inside a lock of another node or waits for one, or
    /// that lock's home did not take it back in time.
    KeepsLocks {
        /// The node.
        node: NodeId,
    },
    /// As many threads wait for a condition as it has room for.
    TooManyWaiting {
        /// How many.
        most: usize,
    },
    /// This node knows as many locks as it can.
    TooManyLocks {
        /// How many.
        most: usize,
    },
    /// The rack has been closed.
    Closed,
    /// The rack has no node of this number in this process.
    NoSuchNode {
        /// The number.
        node: usize,
    },
    /// The configuration contradicts itself; the text says where and how to mend it.
    Config(String),
    /// A peer refused in a way that no correct peer does. The event has been undone.
    Protocol(Reason),
    /// This process is not, or cannot be, a member of the rack.
    Membership(crate::membership::Error),
    /// The switch cannot run in this kernel, or not as it was asked to.
    Kernel {
        /// The cause in a word: `permission`, `kernel`, `verifier`, `driver`, `no-interface`,
        /// `busy`, `rack`, `map`, or `not-built`.
        code: &'static str,
        /// The cause.
        why: String,
    },
    /// Another process has the place of this member: its address, or its memory on this host.
    PlaceTaken {
        /// Which place, and what says that it is taken.
        place: String,
    },
    /// A socket or a thread could not be had.
    Io(std::io::Error),
}

impl Error {
    /// This memory's home is gone, or is none of this rack: `host` is who serves it.
    pub(crate) fn gone(tag: Tag, host: Option<NodeId>) -> Error {
        host.map_or(Error::BadAddress { addr: tag.0 }, |node| Error::NodeLost {
            node,
        })
    }

    /// This memory's home has not answered: `host` is who serves it.
    pub(crate) fn silent(tag: Tag, host: Option<NodeId>) -> Error {
        host.map_or(Error::BadAddress { addr: tag.0 }, |node| Error::Timeout {
            node,
        })
    }

    /// What is at this address is no memory under the contract that was wanted.
    pub(crate) fn wrong_contract(tag: Tag, wanted: Contract) -> Error {
        let address = tag.0;
        match tag.contract() {
            Some(is) if is != wanted => Error::WrongContract {
                address,
                wanted,
                is,
            },
            _ => Error::BadAddress { addr: address },
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::InUse { node } => write!(
                f,
                "node {node} has given out memory, whose content would be lost if it left"
            ),
            Error::Fenced => f.write_str(
                "the rack has declared this process dead and goes on without it: start it again",
            ),
            Error::NoLease => f.write_str(
                "the membership store does not answer, so this process may not use its cache: check the store",
            ),
            Error::NodeLost { node } => write!(
                f,
                "node {node} is no member of the rack any more, and its memory is lost"
            ),
            Error::NameLost { name, node } => write!(
                f,
                "what was named `{name}` died with node {node}, its home: `renewed` makes it anew"
            ),
            Error::Lost { addr } => write!(
                f,
                "the last content of block {addr:#018x} died with a node: write it anew after `accept_loss`"
            ),
            Error::Interrupted { addr } => write!(
                f,
                "the rack changed during an operation on {addr:#018x}: it may or may not have happened"
            ),
            Error::BadAddress { addr } => {
                write!(f, "address {addr:#018x} is in no memory of this rack")
            }
            Error::WrongContract {
                address,
                wanted,
                is,
            } => write!(
                f,
                "memory at {address:#018x} is {is}, and this operation is for {wanted} memory: {}",
                next_step(*is)
            ),
            Error::BadRange { addr, len, block } => {
                write!(
                    f,
                    "{len} bytes at {addr:#018x} must be aligned and lie within one block of {block} bytes"
                )
            }
            Error::NotAllocated { addr } => {
                write!(f, "no memory of this size is allocated at {addr:#018x}")
            }
            Error::OutOfMemory { node } => {
                write!(
                    f,
                    "node {node} has not as much memory left: raise `memory` in its configuration or free some"
                )
            }
            Error::RegionMismatch { name } => {
                write!(f, "region `{name}` exists with another size, element type or backing")
            }
            Error::RegionRemoved { name } => write!(
                f,
                "region `{name}` has been removed: drop the handle, and open or create the region anew"
            ),
            Error::RegionBounds { name, at, len } => {
                write!(f, "region `{name}` has no {len} bytes at {at}")
            }
            Error::OutOfBounds { at, len, of } => {
                write!(f, "{len} elements at {at} are not all among {of}")
            }
            Error::NotRemovable { name, contract } => write!(
                f,
                "`{name}` is {contract} memory, which is not removed as a region: free a lock by its handle; an array of locks stays"
            ),
            Error::ContractNotBuilt { contract } => write!(
                f,
                "this version has no {contract} memory: ask for coherent or locked memory"
            ),
            Error::BackingNotBuilt { backing } => write!(
                f,
                "this version has no memory in a {backing}: ask for the heap"
            ),
            Error::NoSuchRegion { name } => write!(f, "no region is named `{name}`"),
            Error::RegionTable { name, why } => {
                write!(f, "region `{name}` cannot be created: {why}")
            }
            Error::Timeout { node } => {
                write!(
                    f,
                    "no answer about memory of node {node}: the switch or a node is dead or unreachable"
                )
            }
            Error::Busy { addr } => {
                write!(f, "block {addr:#018x} stayed locked by other requesters")
            }
            Error::NoLock { addr } => {
                write!(f, "at {addr:#018x} is no lock of this kind and size")
            }
            Error::WrongType { addr } => {
                write!(f, "the lock at {addr:#018x} protects a value of another type")
            }
            Error::LockFreed { addr } => write!(
                f,
                "the lock at {addr:#018x} has been freed: drop its handles, and make another one (by a name: `renewed`)"
            ),
            Error::KeepsLocks { node } => write!(
                f,
                "node {node} keeps locks of other nodes: it can leave when its threads have, and their homes can be reached"
            ),
            Error::TooManyWaiting { most } => write!(
                f,
                "{most} threads wait for this condition, which is as many as can"
            ),
            Error::TooManyLocks { most } => {
                write!(f, "this node knows {most} locks, which is as many as it can")
            }
            Error::Closed => f.write_str("the rack is closed"),
            Error::NoSuchNode { node } => write!(f, "node {node} is not in this process"),
            Error::Config(why) => f.write_str(why),
            Error::Protocol(reason) => write!(f, "a peer broke the protocol ({reason:?})"),
            Error::Kernel { why, .. } => f.write_str(why),
            Error::Membership(error) => error.fmt(f),
            Error::PlaceTaken { place } => f.write_str(place),
            Error::Io(error) => error.fmt(f),
        }
    }
}

/// How memory under this contract is used.
fn next_step(is: Contract) -> &'static str {
    match is {
        Contract::Coherent => "use `Node::read` and `Node::write`, or a `Shared`",
        Contract::Locked => "use its lock (`Mutex`, `RwLock`, `RangesLock`, `RwLockArray`)",
        Contract::Object | Contract::Bounded | Contract::Replicated => {
            "this version cannot use it: take the version that made it"
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Membership(error) => Some(error),
            Error::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::Io(error)
    }
}

impl From<crate::membership::Error> for Error {
    fn from(error: crate::membership::Error) -> Self {
        Error::Membership(error)
    }
}
