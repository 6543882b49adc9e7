//! A value that threads of the rack read together and change alone.

use super::descriptor::Kind;
use super::handle::{HEAD, Handle, Inside};
use super::mutex::descriptor;
use super::value::{self, fill};
use crate::bytes::window::{Window, WindowMut};
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

/// A value of up to 64 KiB that threads of the rack read together and change alone. Each node that
/// reads keeps a copy until a writer comes. See [the module](super).
///
/// Nobody overtakes whoever came before, unless both read. So a thread that reads and wants to read
/// the same lock once more waits for the writer between, which waits for the thread: it must not.
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
    handle: Handle,
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
pub struct ReadGuard<'a, T> {
    inside: Inside<'a>,
    value: PhantomData<fn() -> T>,
}

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
pub struct WriteGuard<'a, T> {
    inside: Inside<'a>,
    value: PhantomData<fn() -> T>,
}

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
    /// with this value, on the node that is the first to ask; who has a handle on the dead one asks
    /// as well, for it keeps saying [`RackError::NodeLost`].
    ///
    /// # Errors
    /// Those of [`RwLock::named`], but [`RegionError::NameLost`].
    pub fn renewed(node: &Node, name: &str, value: T) -> Result<Self, RegionError> {
        let what = descriptor::<T>(Kind::RwLock);
        Handle::renewed(node, name, what, fill(value)).map(RwLock::of)
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

    fn busy(&self) -> LockError {
        LockError::Busy { addr: self.addr() }
    }

    /// Holds it together with other readers, as soon as it is this thread's turn.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn read(&self) -> Result<ReadGuard<'_, T>, LockError> {
        let inside = self.handle.enter(Access::Read, Duration::MAX)?;
        inside.map(ReadGuard::of).ok_or_else(|| self.busy())
    }

    /// Holds it alone, as soon as it is this thread's turn.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn write(&self) -> Result<WriteGuard<'_, T>, LockError> {
        let inside = self.handle.enter(Access::Write, Duration::MAX)?;
        inside.map(WriteGuard::of).ok_or_else(|| self.busy())
    }

    /// Holds it together with other readers, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn read_timeout(&self, at_most: Duration) -> Result<Option<ReadGuard<'_, T>>, LockError> {
        let inside = self.handle.enter(Access::Read, at_most)?;
        Ok(inside.map(ReadGuard::of))
    }

    /// Holds it alone, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn write_timeout(&self, at_most: Duration) -> Result<Option<WriteGuard<'_, T>>, LockError> {
        let inside = self.handle.enter(Access::Write, at_most)?;
        Ok(inside.map(WriteGuard::of))
    }

    /// Holds it together with other readers, if a copy is at this node and no writer is inside or
    /// waits.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn try_read(&self) -> Result<Option<ReadGuard<'_, T>>, LockError> {
        let inside = self.handle.try_enter(Access::Read)?;
        Ok(inside.map(ReadGuard::of))
    }

    /// Holds it alone, if it is at this node and free, as [`super::Mutex::try_lock`].
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn try_write(&self) -> Result<Option<WriteGuard<'_, T>>, LockError> {
        let inside = self.handle.try_enter(Access::Write)?;
        Ok(inside.map(WriteGuard::of))
    }
}

impl<'a, T> ReadGuard<'a, T> {
    #[inline]
    fn of(inside: Inside<'a>) -> Self {
        ReadGuard {
            inside,
            value: PhantomData,
        }
    }

    /// The fencing token: not lower than that of any writer before.
    pub fn token(&self) -> u64 {
        self.inside.token()
    }

    /// Whether what is found inside is what the last writer left. All who enter after a death are
    /// told, until one of them has written.
    pub fn content(&self) -> Content {
        self.inside.content()
    }
}

impl<T: Value> ReadGuard<'_, T> {
    /// The value.
    #[inline]
    pub fn get(&self) -> T {
        value::get(self.inside.handle().words())
    }

    /// Its bytes, to read parts of a long value.
    pub fn view(&self) -> Window<'_> {
        Window::new(self.inside.handle().words(), HEAD, size_of::<T>())
    }
}

impl<'a, T> WriteGuard<'a, T> {
    #[inline]
    fn of(inside: Inside<'a>) -> Self {
        WriteGuard {
            inside,
            value: PhantomData,
        }
    }

    /// The fencing token: as [`super::MutexGuard::token`].
    pub fn token(&self) -> u64 {
        self.inside.token()
    }

    /// Whether what is found inside is what the last writer left. All who enter after a death are
    /// told, until one of them has written.
    pub fn content(&self) -> Content {
        self.inside.content()
    }
}

impl<T: Value> WriteGuard<'_, T> {
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

impl<T: Value> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is inside, so no writer is.
        unsafe { value::in_place(self.inside.handle().words()) }
    }
}

impl<T: Value> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is inside, and writes only through `&mut` of itself.
        unsafe { value::in_place(self.inside.handle().words()) }
    }
}

impl<T: Value> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is inside, alone, and is itself borrowed for as long.
        unsafe { value::in_place_mut(self.inside.handle().words()) }
    }
}

impl<T> Debug for RwLock<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.handle.describe::<T>("RwLock", f)
    }
}

impl<T: Value + Debug> Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Value + Debug> Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
