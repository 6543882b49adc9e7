//! A value that one thread of the rack at a time works on.

use super::descriptor::{Descriptor, Kind};
use super::handle::{HEAD, Handle, Inside};
use super::value::{self, fill};
use crate::bytes::window::{Window, WindowMut};
use crate::coherent::fingerprint::fingerprint;
use crate::coherent::shared::Value;
#[cfg(doc)]
use crate::error::{AccessError, AllocError, RackError};
use crate::error::{LockError, RegionError};
use crate::host::locks::cell::Waiting;
use crate::host::locks::seat::Content;
use crate::node::Node;
use rackmem_proto::gcp::Access;
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

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
    handle: Handle,
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
pub struct MutexGuard<'a, T> {
    inside: Inside<'a>,
    value: PhantomData<fn() -> T>,
}

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
    /// with this value, on the node that is the first to ask; who has a handle on the dead one asks
    /// as well, for it keeps saying [`RackError::NodeLost`].
    ///
    /// # Errors
    /// Those of [`Mutex::named`], but [`RegionError::NameLost`].
    pub fn renewed(node: &Node, name: &str, value: T) -> Result<Self, RegionError> {
        let what = descriptor::<T>(Kind::Mutex);
        Handle::renewed(node, name, what, fill(value)).map(Mutex::of)
    }

    /// Frees it, on whichever node, and whoever has made it: waits for its turn to write, then for
    /// its home to know. Its memory is used by the next locks of that home. A name that it has is
    /// free again. Handles on it that are left, here and elsewhere, are told
    /// [`LockError::Freed`] when they enter, and so are threads that wait;
    /// a copy of the value stays with nobody.
    ///
    /// # Errors
    /// [`LockError::Freed`] when it has been freed before; [`AccessError::Busy`] when somebody
    /// stays inside for as long as the configuration allows, and nothing has changed;
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

    /// Holds it, as soon as it is this thread's turn. Waits without end for whoever holds it and
    /// does not let go.
    ///
    /// # Errors
    /// [`RackError::NodeLost`] when its home has died; [`RackError::Closed`],
    /// [`RackError::NoLease`],
    /// [`RackError::Fenced`].
    #[inline]
    pub fn lock(&self) -> Result<MutexGuard<'_, T>, LockError> {
        MutexGuard::hold(&self.handle)
    }

    /// Holds it, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`Mutex::lock`].
    #[inline]
    pub fn lock_timeout(&self, at_most: Duration) -> Result<Option<MutexGuard<'_, T>>, LockError> {
        let inside = self.handle.enter(Access::Write, at_most)?;
        Ok(inside.map(MutexGuard::of))
    }

    /// Holds it, if it is at this node and free: nobody is asked, and nothing is waited for.
    /// A lock that is elsewhere does not come by trying; [`Mutex::lock_timeout`] asks for it.
    ///
    /// # Errors
    /// Those of [`Mutex::lock`].
    #[inline]
    pub fn try_lock(&self) -> Result<Option<MutexGuard<'_, T>>, LockError> {
        let inside = self.handle.try_enter(Access::Write)?;
        Ok(inside.map(MutexGuard::of))
    }
}

impl<'a, T> MutexGuard<'a, T> {
    #[inline]
    fn of(inside: Inside<'a>) -> Self {
        MutexGuard {
            inside,
            value: PhantomData,
        }
    }

    #[inline]
    pub(super) fn hold(handle: &'a Handle) -> Result<Self, LockError> {
        let inside = handle.enter(Access::Write, Duration::MAX)?;
        // An error that is made in any case costs more than the lock.
        match inside {
            Some(inside) => Ok(MutexGuard::of(inside)),
            None => Err(handle.busy()),
        }
    }

    pub(super) fn handle(&self) -> &'a Handle {
        self.inside.handle()
    }

    /// The fencing token: higher than that of any thread of another node that held the lock before.
    /// Threads that hand over inside a node may share one.
    pub fn token(&self) -> u64 {
        self.inside.token()
    }

    /// Whether what is found inside is what the last writer left. All who enter after a death are
    /// told, until one of them has written.
    pub fn content(&self) -> Content {
        self.inside.content()
    }
}

impl<T: Value> MutexGuard<'_, T> {
    /// The value.
    #[inline]
    pub fn get(&self) -> T {
        value::get(self.inside.handle().words())
    }

    /// Replaces it.
    #[inline]
    pub fn set(&mut self, value: T) {
        value::put(self.inside.handle().words(), value);
    }

    /// Replaces it by what `f` makes of it; what was there before.
    #[inline]
    pub fn update(&mut self, f: impl FnOnce(T) -> T) -> T {
        let old = self.get();
        self.set(f(old));
        old
    }

    /// Its bytes, to read parts of a long value.
    pub fn view(&self) -> Window<'_> {
        Window::new(self.inside.handle().words(), HEAD, size_of::<T>())
    }

    /// Its bytes, to change parts of a long value.
    pub fn view_mut(&mut self) -> WindowMut<'_> {
        WindowMut::new(self.inside.handle().words(), HEAD, size_of::<T>())
    }
}

impl<T: Value> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is inside, and writes only through `&mut` of itself.
        unsafe { value::in_place(self.inside.handle().words()) }
    }
}

impl<T: Value> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is inside, alone, and is itself borrowed for as long.
        unsafe { value::in_place_mut(self.inside.handle().words()) }
    }
}

impl<T> Debug for Mutex<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.handle.describe::<T>("Mutex", f)
    }
}

impl<T: Value + Debug> Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
