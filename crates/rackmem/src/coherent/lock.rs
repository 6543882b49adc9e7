//! The directory's reader-writer lock, offered to applications (paper §6,
//! "Synchronization primitive").

use crate::backoff::Backoff;
use crate::error::{AccessError, AllocError};
use crate::node::Node;
use crate::ports::requester::{Borrowed, Bytes};
use crate::wait::Wait;
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::wire::Tag;
use std::time::Duration;

impl Node {
    /// A reader-writer lock of the directory, in a block of its own (paper §6,
    /// "synchronization primitive").
    pub fn alloc_lock(&self) -> Result<BlockLock, AllocError> {
        let addr = self.alloc_bytes(self.inner.block)?;
        Ok(self.attach_lock(addr)?)
    }

    /// The lock that [`Node::alloc_lock`] made at this address, on any node.
    pub fn attach_lock(&self, addr: u64) -> Result<BlockLock, AccessError> {
        self.open()?;
        let (tag, offset) = self.within(addr, self.inner.block)?;
        debug_assert_eq!(offset, 0);
        Ok(BlockLock::new(self.clone(), tag))
    }
}

/// How long a lock that is to be freed may stay held: its entry may be moving to the switch or
/// back.
const IN_USE: Duration = Duration::from_millis(20);

/// A reader-writer lock that the owner of a directory entry keeps: taking it is one round trip,
/// and it is not cached. It guards nothing but what its users agree on.
/// It occupies a block of its own, and one of the node's requesters for as long as it is held.
/// Waiters try again with growing pauses; there is no queue.
///
/// Dropping a handle frees nothing; [`BlockLock::free`] gives the block back,
/// and other nodes' handles must not be used any more.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
///
/// let rack = Rack::local(2)?;
/// let lock = rack.node(0).alloc_lock()?;
/// let same = rack.node(1).attach_lock(lock.addr())?;
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

/// The lock, held. Dropping it gives the lock back.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{BlockGuard, Rack};
///
/// let rack = Rack::local(1)?;
/// let lock = rack.node(0).alloc_lock()?;
/// let one: BlockGuard<'_> = lock.read()?;
/// let other = lock.read()?; // readers together
/// drop((one, other));
/// # Ok(())
/// # }
/// ```
pub struct BlockGuard<'a> {
    slot: Borrowed<'a>,
}

impl std::fmt::Debug for BlockLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlockLock({:#018x})", self.tag.0)
    }
}

impl std::fmt::Debug for BlockGuard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlockGuard")
    }
}

impl BlockLock {
    pub(crate) fn new(node: Node, tag: Tag) -> Self {
        BlockLock { node, tag }
    }

    /// Its global address, which [`Node::attach_lock`] takes on any node.
    pub fn addr(&self) -> u64 {
        self.tag.0
    }

    /// Holds it together with other readers.
    pub fn read(&self) -> Result<BlockGuard<'_>, AccessError> {
        self.wait(true, Duration::MAX)?
            .ok_or(AccessError::Busy { addr: self.tag.0 })
    }

    /// Holds it alone.
    pub fn write(&self) -> Result<BlockGuard<'_>, AccessError> {
        self.wait(false, Duration::MAX)?
            .ok_or(AccessError::Busy { addr: self.tag.0 })
    }

    /// Holds it together with other readers, if that is possible within this time (a `Duration`, an
    /// `Instant` or a [`Wait`]). Its owner is asked once at least.
    pub fn read_within(
        &self,
        wait: impl Into<Wait>,
    ) -> Result<Option<BlockGuard<'_>>, AccessError> {
        self.wait(true, wait.into().limit().unwrap_or_default())
    }

    /// Holds it alone, if that is possible within this time. Its owner is asked once at least.
    pub fn write_within(
        &self,
        wait: impl Into<Wait>,
    ) -> Result<Option<BlockGuard<'_>>, AccessError> {
        self.wait(false, wait.into().limit().unwrap_or_default())
    }

    /// Holds it together with other readers, if its owner grants that at once.
    pub fn try_read(&self) -> Result<Option<BlockGuard<'_>>, AccessError> {
        self.wait(true, Duration::ZERO)
    }

    /// Holds it alone, if its owner grants that at once.
    pub fn try_write(&self) -> Result<Option<BlockGuard<'_>>, AccessError> {
        self.wait(false, Duration::ZERO)
    }

    /// Gives the lock's block back, for anything. Other handles on it must not be used any more.
    ///
    /// # Errors
    /// [`AccessError::Busy`] when somebody holds it; [`AllocError::NotAllocated`] when it has been
    /// freed before. That may be known only when it gets home: see [`Node::free_bytes`].
    pub fn free(self) -> Result<(), AllocError> {
        let addr = self.tag.0;
        let alone = self.write_within(IN_USE)?;
        let _alone = alone.ok_or(AccessError::Busy { addr })?;
        self.node.free_bytes(addr, self.node.block_size())
    }

    fn wait(&self, shared: bool, at_most: Duration) -> Result<Option<BlockGuard<'_>>, AccessError> {
        let access = &self.node.inner.access;
        let mut backoff = Backoff::new(at_most);
        loop {
            let mut slot = access.requesters.borrow()?;
            match slot.ask(Purpose::Hold { shared }, self.tag, 0, Bytes::Nothing) {
                Then::Done => return Ok(Some(BlockGuard { slot })),
                Then::Again | Then::BackOff => {}
                then => return Err(access.fatal(then, self.tag)),
            }
            drop(slot);
            if at_most.is_zero() || !backoff.wait() {
                return Ok(None);
            }
        }
    }
}

impl Drop for BlockGuard<'_> {
    fn drop(&mut self) {
        self.slot.release_held();
    }
}
