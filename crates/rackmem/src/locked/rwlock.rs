//! A value that threads of the rack read together and change alone.

use super::copied;
use super::descriptor::Kind;
use super::guard::{Guard, Reading, Writing};
use super::handle::Handle;
use super::mutex::descriptor;
use super::value::fill;
use crate::bytes::value::Value;
#[cfg(doc)]
use crate::error::{AccessError, AllocError, LockShape, RackError};
use crate::error::{LockError, RegionError};
use crate::host::locks::cell::Waiting;
use crate::node::Node;
use crate::region::Region;
use crate::wait::Wait;
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;

/// A value of up to 64 KiB that threads of the rack read together and change alone. Each node that
/// reads keeps a copy until a writer comes. See [the module](super).
///
/// Threads enter in the order in which they came; readers enter together.
/// So a thread that reads and wants to read the same lock once more waits for the writer between,
/// which waits for the thread: it must not.
///
/// Dropping a handle frees nothing, since other nodes may have others;
/// [`RwLock::free`] frees the lock, and handles of all nodes say [`LockError::Freed`] then.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::RwLock;
///
/// let rack = Rack::local(2)?;
/// let table = RwLock::create(&rack.node(0), [0u32; 1000])?;
/// let same = RwLock::<[u32; 1000]>::attach(&rack.node(1), table.addr())?;
/// same.write()?[7] = 1;
/// let (one, other) = (table.read()?, same.read()?); // together
/// assert_eq!(one[7] + other[7], 2);
/// # Ok(())
/// # }
/// ```
pub struct RwLock<T> {
    pub(super) handle: Handle,
    value: PhantomData<fn() -> T>,
}

/// A [`RwLock`], held to read.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{ReadGuard, RwLock};
///
/// let rack = Rack::local(1)?;
/// let lock = RwLock::create(&rack.node(0), [1u64, 2])?;
/// let held: ReadGuard<'_, [u64; 2]> = lock.read()?;
/// assert_eq!(held.iter().sum::<u64>(), 3);
/// # Ok(())
/// # }
/// ```
pub type ReadGuard<'a, T> = Guard<'a, T, Reading>;

/// A [`RwLock`], held to write.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{RwLock, WriteGuard};
///
/// let rack = Rack::local(1)?;
/// let lock = RwLock::create(&rack.node(0), [1u64, 2])?;
/// let mut held: WriteGuard<'_, [u64; 2]> = lock.write()?;
/// held[1] = 5;
/// drop(held);
/// assert_eq!(lock.read()?[1], 5);
/// # Ok(())
/// # }
/// ```
pub type WriteGuard<'a, T> = Guard<'a, T, Writing>;

impl<T> Clone for RwLock<T> {
    fn clone(&self) -> Self {
        RwLock::of(self.handle.clone())
    }
}

impl<T> RwLock<T> {
    fn of(handle: Handle) -> Self {
        RwLock {
            handle,
            value: PhantomData,
        }
    }
}

impl<T: Value> RwLock<T> {
    /// A new one with this value, at home on this node.
    ///
    /// # Errors
    /// [`AccessError::BadRange`] when the value is longer than 64 KiB; [`AllocError::OutOfMemory`],
    /// [`LockError::TooManyLocks`].
    pub fn create(node: &Node, value: T) -> Result<Self, LockError> {
        let what = descriptor::<T>(Kind::RwLock);
        Handle::create(node, what, fill(value)).map(RwLock::of)
    }

    /// The one that some node has made at this address.
    ///
    /// # Errors
    /// [`LockError::NoLock`] when there is none over a value of this size,
    /// [`LockError::WrongType`] when its value is of another type;
    /// [`RackError::NodeLost`].
    pub fn attach(node: &Node, addr: u64) -> Result<Self, LockError> {
        Handle::attach(node, addr, &descriptor::<T>(Kind::RwLock)).map(RwLock::of)
    }

    /// The one of this name, made with this value, on the node that is the first to ask.
    ///
    /// # Errors
    /// [`RegionError::Mismatch`] when what has this name is another kind of lock,
    /// or one over another type; those of
    /// [`Node::region`], [`RwLock::create`] and [`RwLock::attach`].
    pub fn named(node: &Node, name: &str, value: T) -> Result<Self, RegionError> {
        let what = descriptor::<T>(Kind::RwLock);
        Handle::named(node, name, what, fill(value)).map(RwLock::of)
    }

    /// The same. One that has died with its home ([`RegionError::NameLost`]) is made anew,
    /// with this value, on the node that is the first to ask. Handles on the dead one keep
    /// returning
    /// [`RackError::NodeLost`]: replace them by this one.
    ///
    /// # Errors
    /// Those of [`RwLock::named`], but [`RegionError::NameLost`].
    pub fn renewed(node: &Node, name: &str, value: T) -> Result<Self, RegionError> {
        let what = descriptor::<T>(Kind::RwLock);
        Handle::renewed(node, name, what, fill(value)).map(RwLock::of)
    }

    /// Bytes that one takes in a region with copies, whatever else is there: a power of two, so at
    /// multiples of it none is in two blocks.
    pub const BYTES: usize = copied::room(size_of::<T>());

    /// The one at this byte of a region with copies, made with this value by the first that asks.
    /// It does not die with a node: see [the module](super#in-a-region-with-copies).
    ///
    /// # Errors
    /// [`LockShape::NoCopies`] where the region is not coherent memory with copies,
    /// [`LockShape::TwoBlocks`] where the lock would not lie in one block, at a multiple of 16;
    /// [`RegionError::OutOfBounds`], and those of [`RwLock::attach`] and [`RwLock::create`].
    pub fn in_region(region: &Region, at: usize, value: T) -> Result<Self, RegionError> {
        let what = descriptor::<T>(Kind::RwLock);
        Handle::in_region(region, at, &what, fill(value)).map(RwLock::of)
    }

    /// Brings it to rest, if it is in a region with copies: waits for its turn to write, and then
    /// a majority has what it protects, until a thread enters. No death takes anything of it.
    ///
    /// # Errors
    /// [`LockError::Busy`] when others stay inside for as long as the configuration allows; those
    /// of [`super::Mutex::lock`].
    pub fn rest(&self) -> Result<(), LockError> {
        self.handle.rest()
    }

    /// Frees it, on any node: waits for its turn to write, then for its home to
    /// acknowledge. Its memory is used by the next locks of that home. A name that it has is
    /// free again. Handles that are left, on all nodes, return
    /// [`LockError::Freed`], also to threads that wait; no node keeps a copy of the value.
    ///
    /// # Errors
    /// [`LockError::Stays`] in a region with copies. [`LockError::Freed`] when it has been freed
    /// before; [`AccessError::Busy`] when another thread holds it for as long as the configuration
    /// allows, and nothing has changed;
    /// [`RackError::Timeout`] when the home does not answer: if this node dies before it does,
    /// the lock may live on; otherwise it is freed. Those of [`super::Mutex::lock`].
    pub fn free(self) -> Result<(), LockError> {
        self.handle.free(|_| Ok(()))
    }

    /// Its global address, which [`RwLock::attach`] takes on any node.
    pub fn addr(&self) -> u64 {
        self.handle.addr()
    }

    /// Who waits for it, as far as this node knows.
    pub fn waiting(&self) -> Waiting {
        self.handle.waiting()
    }

    /// Holds it together with other readers, as soon as it is this thread's turn.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn read(&self) -> Result<ReadGuard<'_, T>, LockError> {
        Guard::hold(&self.handle)
    }

    /// Holds it alone, as soon as it is this thread's turn.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn write(&self) -> Result<WriteGuard<'_, T>, LockError> {
        Guard::hold(&self.handle)
    }

    /// Holds it together with other readers, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn read_within(
        &self,
        wait: impl Into<Wait>,
    ) -> Result<Option<ReadGuard<'_, T>>, LockError> {
        Guard::hold_within(&self.handle, wait)
    }

    /// Holds it alone, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn write_within(
        &self,
        wait: impl Into<Wait>,
    ) -> Result<Option<WriteGuard<'_, T>>, LockError> {
        Guard::hold_within(&self.handle, wait)
    }

    /// Holds it together with other readers, if a copy is at this node and no writer is inside or
    /// waits.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn try_read(&self) -> Result<Option<ReadGuard<'_, T>>, LockError> {
        Guard::try_hold(&self.handle)
    }

    /// Holds it alone, if it is at this node and free, as [`super::Mutex::try_lock`].
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn try_write(&self) -> Result<Option<WriteGuard<'_, T>>, LockError> {
        Guard::try_hold(&self.handle)
    }
}

impl<T> Debug for RwLock<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.handle.describe::<T>("RwLock", f)
    }
}
