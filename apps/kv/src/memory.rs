//! What the store asks of the memory under it, and nothing more.
//!
//! The store is written against [`Memory`] so that it runs in a rack (`rackmem::Node`) and, with
//! [`HeapMemory`], in one process without one: unit tests, fuzzing and models need no cluster.

mod heap;
mod node;

use std::fmt;

use rackmem::view::{View, ViewMut};

pub use heap::HeapMemory;

/// Coherent memory made of blocks, as one node of a rack sees it.
///
/// Every method may be called from any thread. `snapshot` and `update` are each one atomic step in the
/// whole rack; their range must lie within one block.
pub trait Memory: Clone + Send + Sync + 'static {
    /// Bytes in a block: a power of two, 256 to 65536.
    fn block_size(&self) -> usize;

    /// This node's number in the rack.
    fn id(&self) -> u16;

    /// Nodes in the rack.
    fn nodes(&self) -> usize;

    /// Shows `len` bytes at `addr` to `f`. `f` may run several times, may see torn bytes while it runs, and
    /// must have no effect it cannot repeat; the `R` returned comes from a run that saw no torn bytes.
    fn snapshot<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnMut(&View<'_>) -> R,
    ) -> Result<R, MemoryError>;

    /// Runs `f` once, with nobody else in the rack reading or writing the block meanwhile.
    fn update<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut ViewMut<'_>) -> R,
    ) -> Result<R, MemoryError>;

    /// Copies any range. Atomic for each block, not for the whole.
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), MemoryError>;

    /// Writes any range. Atomic for each block, not for the whole.
    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), MemoryError>;

    /// Reserves `len` bytes at this node; their contents are arbitrary. Block-aligned when `len` is a block or more.
    fn alloc(&self, len: usize) -> Result<u64, MemoryError>;

    /// Like [`Memory::alloc`], with the bytes at node `home`.
    fn alloc_on(&self, home: u16, len: usize) -> Result<u64, MemoryError>;

    /// Gives back what `alloc` reserved.
    fn free(&self, addr: u64, len: usize) -> Result<(), MemoryError>;

    /// Opens the region called `name`, made of zeros by whoever opens it first. Size and type must agree.
    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64, MemoryError>;

    /// What has become of the memory that an address is in.
    fn fate(&self, _addr: u64) -> Fate {
        Fate::Live
    }

    /// How often this node has become a member of the rack, from 1.
    fn incarnation(&self) -> u32 {
        1
    }

    /// Whether a process that was a member has died or left.
    fn has_died(&self, _node: u16, _incarnation: u32) -> bool {
        false
    }

    /// Whether nobody who was ever a member has died or left.
    fn undisturbed(&self) -> bool {
        true
    }

    /// Goes on with a block that answers [`MemoryError::Lost`]: empty (zeros), or with what was last published of it.
    /// Does nothing to others.
    fn accept(&self, _addr: u64, _empty: bool) -> Result<(), MemoryError> {
        Ok(())
    }

    /// Returns when what was written to a block before is in its home's memory, where the death of other nodes leaves it.
    fn publish(&self, _addr: u64) -> Result<(), MemoryError> {
        Ok(())
    }
}

/// What has become of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is there.
    Live,
    /// Its node is no member of the rack just now.
    Away,
    /// It died with its node, which is back and has other memory.
    Gone,
}

/// What can go wrong in the memory.
#[derive(Debug)]
pub enum MemoryError {
    /// No room left for an allocation.
    OutOfMemory,
    /// A named region exists with another size or type.
    Mismatch(String),
    /// The node that gave this memory is no member of the rack just now.
    NodeLost(u16),
    /// What was last written here died with a node. The block's address, or one in it.
    Lost(u64),
    /// Anything else: a dead peer, a closed rack, a bad address.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("the rack's memory is full"),
            Self::Mismatch(what) => write!(f, "the region exists with other settings: {what}"),
            Self::NodeLost(node) => {
                write!(f, "node {node} has died or left, and what it kept with it")
            }
            Self::Lost(addr) => write!(f, "what was last written at {addr:#x} died with a node"),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MemoryError {}
