//! What the store asks of the memory under it, and nothing more.
//!
//! The store is written against [`Memory`] so that it runs in a rack (`rackmem::Node`) and, with
//! [`HeapMemory`], in one process without one: unit tests, fuzzing and models need no cluster.

mod copied;
mod events;
mod heap;
mod locks;
mod node;

use std::fmt;
use std::time::Duration;

use rackmem::window::{Window, WindowMut};

pub use copied::{CopiedMemory, CopiedPages};
pub use events::{Events, Step};
pub use heap::HeapMemory;
pub use locks::{HeapInside, HeapPages};
pub use node::NodeInside;
pub use rackmem::locked::Access;

/// Coherent memory made of blocks, as one node of a rack sees it.
///
/// Every method may be called from any thread. `snapshot` and `update` are each one atomic step in
/// the whole rack; their range must lie within one block.
pub trait Memory: Clone + Send + Sync + 'static {
    /// See [`Memory::pages`].
    type Pages: Pages;

    /// Bytes in a block: a power of two, 256 to 65536.
    fn block_size(&self) -> usize;

    /// Bytes of the pages of a store in it.
    fn page_bytes(&self) -> usize {
        self.block_size().min(LONGEST_PAGE)
    }

    /// This node's number in the rack.
    fn id(&self) -> u16;

    /// Nodes in the rack.
    fn nodes(&self) -> usize;

    /// Shows `len` bytes at `addr` to `f`. `f` may run several times,
    /// may see torn bytes while it runs, and must have no effect it cannot repeat; the `R` returned
    /// comes from a run that saw no torn bytes.
    fn snapshot<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, MemoryError>;

    /// Runs `f` once, while no other thread in the rack reads or writes the block.
    fn update<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut WindowMut<'_>) -> R,
    ) -> Result<R, MemoryError>;

    /// Copies any range. Atomic for each block, not for the whole.
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), MemoryError>;

    /// Writes any range. Atomic for each block, not for the whole.
    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), MemoryError>;

    /// Reserves `len` bytes at this node; their contents are arbitrary.
    /// Block-aligned when `len` is a block or more.
    fn alloc(&self, len: usize) -> Result<u64, MemoryError>;

    /// Like [`Memory::alloc`], with the bytes at node `home`.
    fn alloc_on(&self, home: u16, len: usize) -> Result<u64, MemoryError>;

    /// Addresses of so many pages ([`Memory::pages`]), with the bytes at node `home`.
    fn alloc_pages(&self, home: u16, count: usize) -> Result<u64, MemoryError> {
        self.alloc_on(home, count * PAGE_STRIDE)
    }

    /// Gives back what `alloc` reserved.
    fn free(&self, addr: u64, len: usize) -> Result<(), MemoryError>;

    /// Opens the region called `name`; the first to open it creates it, with zeros.
    /// Size and type must agree. It lives as long as any memory here can: what is published of it
    /// outlives the nodes that have written it.
    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64, MemoryError>;

    /// `count` pages of `len` bytes, each behind a reader-writer lock: the same ones for whoever
    /// names this address. It is that of
    /// [`PAGE_STRIDE`] bytes a page, allocated for them, or of a region; those bytes are not
    /// touched. Pages begin as zeros.
    fn pages(&self, addr: u64, count: usize, len: usize) -> Result<Self::Pages, MemoryError>;

    /// Bytes that this node keeps: what it has given out of its memory, and pages with their locks.
    fn used_bytes(&self) -> usize {
        0
    }

    /// Whether pages are blocks of this memory, and stay as they were when who is inside dies.
    /// Otherwise they take as much memory as they need, and die with the last who has them.
    fn pages_survive(&self) -> bool {
        false
    }

    /// Pages of which nothing is kept any more, since others were forgotten last.
    fn idle_pages(&self) -> usize {
        0
    }

    /// Forgets these, but for those of which [`Memory::pages`] is in use.
    fn forget_pages(&self) {}

    /// What has become of the memory that an address is in.
    fn fate(&self, _addr: u64) -> Fate {
        Fate::Live
    }

    /// The node whose memory an address is, or `None` where it is no single one's: then it need not
    /// be moved when a node leaves.
    fn home_of(&self, _addr: u64) -> Option<u16> {
        None
    }

    /// From now on this node gives out none of its memory, to nobody: there is no room left. Or it
    /// does again.
    fn withhold(&self, _yes: bool) {}

    /// Bytes of this node's memory that are given out, or kept by others for what they allocate
    /// next.
    fn given_bytes(&self) -> usize {
        0
    }

    /// Whether no member has ever died or left.
    fn undisturbed(&self) -> bool {
        true
    }

    /// Whether a node is a member of the rack just now.
    fn is_member(&self, _node: u16) -> bool {
        true
    }

    /// Another number whenever a node has died, left, or come back.
    fn lives(&self) -> u64 {
        0
    }

    /// The number of this node's incarnation: higher each time that it has come back.
    fn life(&self) -> u64 {
        0
    }

    /// Whether this node cleans up after buckets that are spread to node `home`.
    fn looks_after(&self, home: u16) -> bool {
        home == self.id()
    }

    /// Goes on with a block that answers [`MemoryError::Lost`], with what was last published of it.
    /// Does nothing to others; in any case their home has answered.
    fn accept(&self, _addr: u64) -> Result<(), MemoryError> {
        Ok(())
    }

    /// Returns when what was read and written so far may be told to clients:
    /// the rack has not gone on without this node since. `Err` when it has, or nobody can say.
    fn confirm(&self) -> Result<(), MemoryError> {
        Ok(())
    }

    /// Returns when what was written to a block before is in its home's memory,
    /// where the death of other nodes leaves it.
    fn publish(&self, _addr: u64) -> Result<(), MemoryError> {
        Ok(())
    }
}

/// The longest page of a store: what goes with a lock from node to node.
pub const LONGEST_PAGE: usize = 4096;

/// Bytes of addresses from one page of [`Memory::pages`] to the next.
pub const PAGE_STRIDE: usize = rackmem::locked::RwLockArray::STRIDE;

/// Pages, each behind a lock that has either readers inside or one writer.
///
/// Whoever is inside leaves. Whoever waits for several takes them in rising order of their
/// addresses; no thread enters twice.
pub trait Pages: Send + Sync + 'static {
    /// That a thread is inside of one page's lock. It is lost when it is dropped, not left.
    type Inside;

    /// Enters a page's lock, waiting no longer than `at_most`; `None`: it was not the caller's turn
    /// in time.
    fn enter(
        &self,
        page: usize,
        access: Access,
        at_most: Duration,
    ) -> Result<Option<Self::Inside>, MemoryError>;

    /// Leaves it.
    fn leave(&self, inside: Self::Inside);

    /// Whether what is found inside is old: what was written after it died with a node. All who
    /// enter are told until a writer has left.
    fn is_outdated(&self, _inside: &Self::Inside) -> bool {
        false
    }

    /// The page: as much of it as there is, the rest is zeros.
    fn view<'a>(&'a self, inside: &'a Self::Inside) -> Window<'a>;

    /// The page to change: at least its first `len` bytes, and more as the window grows. `None`:
    /// the caller is inside to read.
    fn view_mut<'a>(&'a self, inside: &'a mut Self::Inside, len: usize) -> Option<WindowMut<'a>>;

    /// Whether any node may have used a page, as its home knows.
    fn is_known(&self, _page: usize) -> bool {
        true
    }

    /// Tells other nodes that they need not keep a page whose home this is, if its lock is here.
    fn tell_home(&self, _page: usize) {}

    /// No more than the first `len` bytes of the page are needed. Does nothing for a reader.
    fn trim(&self, _inside: &mut Self::Inside, _len: usize) {}
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
    /// A store cannot have so many copies in this rack.
    Copies(rackmem::OpenError),
    /// The node that gave this memory is no member of the rack just now.
    NodeLost(u16),
    /// What was last written here died with a node. The block's address, or one in it.
    Lost(u64),
    /// The rack goes on without this node, for ever.
    Fenced,
    /// This node cannot show the rack that it is alive. It may pass.
    NoLease,
    /// Anything else: a dead peer, a closed rack, a bad address.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("the rack's memory is full"),
            Self::Mismatch(what) => write!(f, "the region exists with other settings: {what}"),
            Self::Copies(error) => error.fmt(f),
            Self::NodeLost(node) => {
                write!(f, "node {node} has died or left, and what it kept with it")
            }
            Self::Lost(addr) => write!(f, "what was last written at {addr:#x} died with a node"),
            Self::Fenced => f.write_str(
                "the rack has declared this node dead: use another node",
            ),
            Self::NoLease => f.write_str(
                "this node cannot show the rack that it is alive, and may not serve until it can: ask another node",
            ),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MemoryError {}
