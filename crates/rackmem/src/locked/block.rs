//! The directory's reader-writer lock, offered to applications (paper §6,
//! "Synchronization primitive").

use super::guard::{Guard, Protected, Reading, Right, Writing};
use crate::backoff::Backoff;
#[cfg(doc)]
use crate::error::AllocError;
use crate::error::LockError;
use crate::host::access::coherent;
use crate::node::Node;
use crate::ports::requester::{Borrowed, Bytes};
use crate::wait::Wait;
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::gcp::Access;
use rackmem_proto::wire::Tag;
use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

/// How long a lock that is to be freed may stay held: its entry may be moving to the switch or
/// back.
const IN_USE: Duration = Duration::from_millis(20);

/// A reader-writer lock that the owner of a directory entry keeps: taking it is one round trip,
/// and it is not cached. It guards nothing but what its users agree on.
/// It occupies a block of its own, and one of the node's requesters for as long as it is held.
/// Waiters try again with growing pauses; there is no queue. Prefer [`super::Lock`], which stays
/// where it is used and is handed over in order; this one costs its home no memory but the block.
///
/// Dropping a handle frees nothing; [`BlockLock::free`] gives the block back,
/// and other nodes' handles must not be used any more.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::BlockLock;
///
/// let rack = Rack::local(2)?;
/// let lock = BlockLock::create(&rack.node(0))?;
/// let same = BlockLock::attach(&rack.node(1), lock.addr())?;
/// let held = lock.write()?;
/// assert!(same.try_read()?.is_none());
/// drop(held);
/// lock.free()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct BlockLock {
    node: Node,
    tag: Tag,
}

/// What a [`BlockLock`] protects: nothing but what its users agree on.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Block, BlockLock, Guard, Reading};
///
/// let rack = Rack::local(1)?;
/// let lock = BlockLock::create(&rack.node(0))?;
/// let one: Guard<'_, Block, Reading> = lock.read()?;
/// let other = lock.read()?; // readers together
/// drop((one, other));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Block {}

impl Protected for Block {
    type Inside<'a> = InsideBlock<'a>;
}

/// A [`BlockLock`], held to read.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{BlockLock, BlockReadGuard};
///
/// let rack = Rack::local(1)?;
/// let lock = BlockLock::create(&rack.node(0))?;
/// let held: Option<BlockReadGuard<'_>> = lock.try_read()?;
/// assert!(held.is_some());
/// # Ok(())
/// # }
/// ```
pub type BlockReadGuard<'a> = Guard<'a, Block, Reading>;

/// A [`BlockLock`], held to write.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{BlockLock, BlockWriteGuard};
///
/// let rack = Rack::local(1)?;
/// let lock = BlockLock::create(&rack.node(0))?;
/// let held: Option<BlockWriteGuard<'_>> = lock.try_write()?;
/// assert!(held.is_some());
/// # Ok(())
/// # }
/// ```
pub type BlockWriteGuard<'a> = Guard<'a, Block, Writing>;

/// The requester that has the lock, until this is dropped.
pub struct InsideBlock<'a>(Borrowed<'a>);

impl Drop for InsideBlock<'_> {
    fn drop(&mut self) {
        self.0.release_held();
    }
}

impl Debug for BlockLock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "BlockLock({:#018x})", self.tag.0)
    }
}

impl<A> Debug for Guard<'_, Block, A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

impl BlockLock {
    /// A new one, in a block of this node's memory.
    ///
    /// # Errors
    /// [`AllocError::OutOfMemory`].
    pub fn create(node: &Node) -> Result<Self, LockError> {
        let addr = node.alloc_bytes(node.block_size())?;
        BlockLock::attach(node, addr)
    }

    /// The one that some node has made at this address. What is there is not looked at.
    ///
    /// # Errors
    /// [`LockError::Access`] where no block of coherent memory begins.
    pub fn attach(node: &Node, addr: u64) -> Result<Self, LockError> {
        node.open()?;
        let (tag, _) = node.within(addr, node.block_size())?;
        coherent(tag)?;
        let node = node.clone();
        Ok(BlockLock { node, tag })
    }

    /// Its global address, which [`BlockLock::attach`] takes on any node.
    pub fn addr(&self) -> u64 {
        self.tag.0
    }

    /// Holds it together with other readers, as soon as its owner grants that.
    ///
    /// # Errors
    /// [`LockError::Rack`] and [`LockError::Access`], as of any access to coherent memory.
    pub fn read(&self) -> Result<BlockReadGuard<'_>, LockError> {
        self.hold()
    }

    /// Holds it alone, as soon as its owner grants that.
    ///
    /// # Errors
    /// Those of [`BlockLock::read`].
    pub fn write(&self) -> Result<BlockWriteGuard<'_>, LockError> {
        self.hold()
    }

    /// Holds it together with other readers, if that is possible within this time (a `Duration`, an
    /// `Instant` or a [`Wait`]). Its owner is asked once at least.
    ///
    /// # Errors
    /// Those of [`BlockLock::read`].
    pub fn read_within(
        &self,
        wait: impl Into<Wait>,
    ) -> Result<Option<BlockReadGuard<'_>>, LockError> {
        self.hold_within(wait)
    }

    /// Holds it alone, if that is possible within this time. Its owner is asked once at least.
    ///
    /// # Errors
    /// Those of [`BlockLock::read`].
    pub fn write_within(
        &self,
        wait: impl Into<Wait>,
    ) -> Result<Option<BlockWriteGuard<'_>>, LockError> {
        self.hold_within(wait)
    }

    /// Holds it together with other readers, if its owner grants that at once.
    ///
    /// # Errors
    /// Those of [`BlockLock::read`].
    pub fn try_read(&self) -> Result<Option<BlockReadGuard<'_>>, LockError> {
        self.hold_within(Wait::Never)
    }

    /// Holds it alone, if its owner grants that at once.
    ///
    /// # Errors
    /// Those of [`BlockLock::read`].
    pub fn try_write(&self) -> Result<Option<BlockWriteGuard<'_>>, LockError> {
        self.hold_within(Wait::Never)
    }

    /// Gives the lock's block back, for anything. Other handles on it must not be used any more.
    ///
    /// # Errors
    /// [`LockError::Busy`] when a thread holds it; [`AllocError::NotAllocated`] when it has been
    /// freed before. That may be known only when it gets home: see [`Node::free_bytes`].
    pub fn free(self) -> Result<(), LockError> {
        let alone = self.write_within(IN_USE)?;
        let _alone = alone.ok_or(LockError::Busy { addr: self.tag.0 })?;
        Ok(self.node.free_bytes(self.tag.0, self.node.block_size())?)
    }

    fn hold<A: Right>(&self) -> Result<Guard<'_, Block, A>, LockError> {
        let held = self.hold_within(Wait::Forever)?;
        held.ok_or(LockError::Busy { addr: self.tag.0 })
    }

    fn hold_within<A: Right>(
        &self,
        wait: impl Into<Wait>,
    ) -> Result<Option<Guard<'_, Block, A>>, LockError> {
        self.node.open()?;
        let at_most = wait.into().limit().unwrap_or_default();
        let shared = A::ACCESS == Access::Read;
        let access = &self.node.inner.access;
        let mut backoff = Backoff::new(at_most);
        loop {
            access.alive(self.tag)?;
            let mut slot = access.requesters.borrow()?;
            match slot.ask(Purpose::Hold { shared }, self.tag, 0, Bytes::Nothing) {
                Then::Done => return Ok(Some(Guard::of(InsideBlock(slot)))),
                Then::Again | Then::BackOff => {}
                then => return Err(access.fatal(then, self.tag).into()),
            }
            drop(slot);
            if at_most.is_zero() || !backoff.wait() {
                return Ok(None);
            }
        }
    }
}
