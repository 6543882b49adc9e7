//! A value that one thread of the rack at a time works on.

use super::copied;
use super::descriptor::{Descriptor, Kind};
use super::guard::{Guard, Writing};
use super::handle::Handle;
use super::value::fill;
use crate::bytes::value::Value;
use crate::coherent::fingerprint::fingerprint;
#[cfg(doc)]
use crate::error::{AccessError, AllocError, LockShape, RackError};
use crate::error::{LockError, RegionError};
use crate::host::locks::cell::Waiting;
use crate::node::Node;
use crate::region::Region;
use crate::wait::Wait;
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;

/// A value of up to 64 KiB that one thread of the rack at a time works on. See [the module](super).
///
/// Dropping a handle frees nothing, since other nodes may have others;
/// [`Mutex::free`] frees the lock, and handles of all nodes say [`LockError::Freed`] then.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::Mutex;
///
/// let rack = Rack::local(2)?;
/// let here: Mutex<u64> = Mutex::named(&rack.node(0), "tickets", 100)?;
/// let there: Mutex<u64> = Mutex::named(&rack.node(1), "tickets", 100)?;
/// *there.lock()? -= 1;
/// assert_eq!(*here.lock()?, 99);
/// here.free()?; // the handle `there` says so from now on
/// assert!(there.lock().is_err());
/// # Ok(())
/// # }
/// ```
pub struct Mutex<T> {
    pub(super) handle: Handle,
    value: PhantomData<fn() -> T>,
}

/// A lock without data, for what its users agree on.
pub type Lock = Mutex<()>;

/// A [`Mutex`], held. Dropping it lets the next one in.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Mutex, MutexGuard};
///
/// let rack = Rack::local(1)?;
/// let lock = Mutex::create(&rack.node(0), [1u64, 2])?;
/// let mut held: MutexGuard<'_, [u64; 2]> = lock.lock()?;
/// held.swap(0, 1);
/// let first = held[0];
/// drop(held); // the next one may come in
/// assert_eq!(first, 2);
/// # Ok(())
/// # }
/// ```
pub type MutexGuard<'a, T> = Guard<'a, T, Writing>;

impl<T> Clone for Mutex<T> {
    fn clone(&self) -> Self {
        Mutex::of(self.handle.clone())
    }
}

/// What stands at the address of a lock over a `T`.
pub(super) fn descriptor<T>(kind: Kind) -> Descriptor {
    Descriptor {
        kind,
        len: size_of::<T>(),
        of: fingerprint::<T>(),
        regions: Vec::new(),
    }
}

impl<T> Mutex<T> {
    fn of(handle: Handle) -> Self {
        Mutex {
            handle,
            value: PhantomData,
        }
    }
}

impl<T: Value> Mutex<T> {
    /// A new one with this value, at home on this node.
    ///
    /// # Errors
    /// [`AccessError::BadRange`] when the value is longer than 64 KiB; [`AllocError::OutOfMemory`],
    /// [`LockError::TooManyLocks`].
    pub fn create(node: &Node, value: T) -> Result<Self, LockError> {
        let what = descriptor::<T>(Kind::Mutex);
        Handle::create(node, what, fill(value)).map(Mutex::of)
    }

    /// The one that some node has made at this address.
    ///
    /// # Errors
    /// [`LockError::NoLock`] when there is none over a value of this size,
    /// [`LockError::WrongType`] when its value is of another type;
    /// [`RackError::NodeLost`].
    pub fn attach(node: &Node, addr: u64) -> Result<Self, LockError> {
        Handle::attach(node, addr, &descriptor::<T>(Kind::Mutex)).map(Mutex::of)
    }

    /// The one of this name, made with this value, on the node that is the first to ask.
    ///
    /// # Errors
    /// [`RegionError::Mismatch`] when what has this name is another kind of lock,
    /// or one over another type; those of
    /// [`Node::region`], [`Mutex::create`] and [`Mutex::attach`].
    pub fn named(node: &Node, name: &str, value: T) -> Result<Self, RegionError> {
        let what = descriptor::<T>(Kind::Mutex);
        Handle::named(node, name, what, fill(value)).map(Mutex::of)
    }

    /// The same. One that has died with its home ([`RegionError::NameLost`]) is made anew,
    /// with this value, on the node that is the first to ask. Handles on the dead one keep
    /// returning
    /// [`RackError::NodeLost`]: replace them by this one.
    ///
    /// # Errors
    /// Those of [`Mutex::named`], but [`RegionError::NameLost`].
    pub fn renewed(node: &Node, name: &str, value: T) -> Result<Self, RegionError> {
        let what = descriptor::<T>(Kind::Mutex);
        Handle::renewed(node, name, what, fill(value)).map(Mutex::of)
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
    /// [`RegionError::OutOfBounds`], and those of [`Mutex::attach`] and [`Mutex::create`].
    pub fn in_region(region: &Region, at: usize, value: T) -> Result<Self, RegionError> {
        let what = descriptor::<T>(Kind::Mutex);
        Handle::in_region(region, at, &what, fill(value)).map(Mutex::of)
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
    /// the lock may live on; otherwise it is freed. Those of [`Mutex::lock`].
    pub fn free(self) -> Result<(), LockError> {
        self.handle.free(|_| Ok(()))
    }

    /// Its global address, which [`Mutex::attach`] takes on any node.
    pub fn addr(&self) -> u64 {
        self.handle.addr()
    }

    /// Who waits for it, as far as this node knows.
    pub fn waiting(&self) -> Waiting {
        self.handle.waiting()
    }

    /// Holds it, as soon as it is this thread's turn. Waits without end while another
    /// thread holds it; so does a thread that holds it itself and locks it again.
    ///
    /// # Errors
    /// [`RackError::NodeLost`] when its home has died; [`RackError::Closed`],
    /// [`RackError::NoLease`],
    /// [`RackError::Fenced`].
    #[inline]
    pub fn lock(&self) -> Result<MutexGuard<'_, T>, LockError> {
        Guard::hold(&self.handle)
    }

    /// Holds it, if it is this thread's turn within this time (a `Duration`, an `Instant` or a
    /// [`Wait`]).
    ///
    /// # Errors
    /// Those of [`Mutex::lock`].
    #[inline]
    pub fn lock_within(
        &self,
        wait: impl Into<Wait>,
    ) -> Result<Option<MutexGuard<'_, T>>, LockError> {
        Guard::hold_within(&self.handle, wait)
    }

    /// Holds it, if it is at this node and free: sends no packet and does not wait.
    /// A lock that is elsewhere does not come by trying; [`Mutex::lock_within`] asks for it.
    ///
    /// # Errors
    /// Those of [`Mutex::lock`].
    #[inline]
    pub fn try_lock(&self) -> Result<Option<MutexGuard<'_, T>>, LockError> {
        Guard::try_hold(&self.handle)
    }
}

impl<T> Debug for Mutex<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.handle.describe::<T>("Mutex", f)
    }
}
