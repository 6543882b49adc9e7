//! A lock, held: one type for every kind of lock that brings what it protects.

use super::handle::{HEAD, Handle, Inside};
use super::value;
use crate::bytes::value::Value;
use crate::bytes::window::{Window, WindowMut};
use crate::error::LockError;
use crate::host::locks::seat::Content;
use crate::wait::Wait;
use rackmem_proto::gcp::Access;
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

mod sealed {
    pub trait Sealed {}
}

/// What a [`Guard`] is over: a [`Value`], [`super::Ranges`], a [`super::Page`] or a
/// [`super::Block`]. A program has no use for it but as a bound.
///
/// ```
/// use rackmem::locked::{Guard, Protected, Writing};
///
/// // Whatever it is that is held: let the next one in, and do something else.
/// fn done<T: Protected>(held: Guard<'_, T, Writing>) {
///     drop(held);
/// }
/// ```
pub trait Protected: Sized {
    /// What leaves the lock when it is dropped.
    #[doc(hidden)]
    type Inside<'a>;
}

impl<T: Value> Protected for T {
    type Inside<'a> = Inside<'a>;
}

impl Protected for super::Ranges {
    type Inside<'a> = Inside<'a>;
}

impl Protected for super::Page {
    type Inside<'a> = Inside<'a>;
}

/// What the holder of a [`Guard`] may do: [`Reading`] or [`Writing`]. No other type is one.
///
/// ```
/// use rackmem::locked::{Guard, Right};
///
/// // For holders that read and for those that write.
/// fn first<A: Right>(held: &Guard<'_, [u64; 2], A>) -> u64 {
///     held[0]
/// }
/// ```
pub trait Right: sealed::Sealed + 'static {
    /// The same for the protocol.
    const ACCESS: Access;
}

/// Together with other readers.
///
/// ```
/// use rackmem::locked::{Access, Reading, Right};
///
/// assert_eq!(Reading::ACCESS, Access::Read);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Reading {}

/// Alone.
///
/// ```
/// use rackmem::locked::{Access, Right, Writing};
///
/// assert_eq!(Writing::ACCESS, Access::Write);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Writing {}

impl sealed::Sealed for Reading {}
impl sealed::Sealed for Writing {}

impl Right for Reading {
    const ACCESS: Access = Access::Read;
}

impl Right for Writing {
    const ACCESS: Access = Access::Write;
}

/// A lock over a `T`, held by this thread, alone or with other readers. What it protects is here,
/// and is used in place: a guard over a [`Value`] dereferences to it.
///
/// While it lives, no thread of the rack writes what it shows, and one that writes is alone.
/// **Dropping** it lets the next thread in, here or at another node. **When a node dies** that had
/// the lock, the next thread that enters finds an older state, and [`Guard::content`] says so.
/// A thread that panics inside leaves, and what it has written so far stays.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Content, Guard, Mutex, Writing};
///
/// let rack = Rack::local(1)?;
/// let lock = Mutex::create(&rack.node(0), [1u64, 2])?;
/// let mut held: Guard<'_, [u64; 2], Writing> = lock.lock()?;
/// assert_eq!(held.content(), Content::Current);
/// held.swap(0, 1);
/// drop(held); // the next one may come in
/// assert_eq!(*lock.lock()?, [2, 1]);
/// # Ok(())
/// # }
/// ```
#[must_use = "the lock is left when this is dropped"]
pub struct Guard<'a, T: Protected, A> {
    inside: T::Inside<'a>,
    of: PhantomData<fn() -> (T, A)>,
}

impl<'a, T: Protected, A> Guard<'a, T, A> {
    #[inline]
    pub(super) fn of(inside: T::Inside<'a>) -> Self {
        Guard {
            inside,
            of: PhantomData,
        }
    }
}

impl<'a, T: Protected<Inside<'a> = Inside<'a>>, A: Right> Guard<'a, T, A> {
    #[inline]
    pub(super) fn hold(handle: &'a Handle) -> Result<Self, LockError> {
        let inside = handle.enter(A::ACCESS, Duration::MAX)?;
        // An error that is made in any case costs more than the lock.
        match inside {
            Some(inside) => Ok(Guard::of(inside)),
            None => Err(handle.busy()),
        }
    }

    #[inline]
    pub(super) fn try_hold(handle: &'a Handle) -> Result<Option<Self>, LockError> {
        Ok(handle.try_enter(A::ACCESS)?.map(Guard::of))
    }

    #[inline]
    pub(super) fn hold_within(
        handle: &'a Handle,
        wait: impl Into<Wait>,
    ) -> Result<Option<Self>, LockError> {
        match wait.into().limit() {
            Some(at_most) => Ok(handle.enter(A::ACCESS, at_most)?.map(Guard::of)),
            None => Guard::try_hold(handle),
        }
    }
}

impl<'a, T: Protected<Inside<'a> = Inside<'a>>, A> Guard<'a, T, A> {
    pub(super) fn handle(&self) -> &'a Handle {
        self.inside.handle()
    }

    /// The fencing token: higher than that of any writer of another node before. Threads that hand
    /// over inside a node may share one.
    pub fn token(&self) -> u64 {
        self.inside.token()
    }

    /// Whether what is found inside is what the last writer left. After a death every guard says
    /// so, until a writer has left.
    pub fn content(&self) -> Content {
        self.inside.content()
    }
}

impl<T: Value, A> Guard<'_, T, A> {
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

impl<T: Value> Guard<'_, T, Writing> {
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

    /// Its bytes, to change parts of a long value.
    pub fn view_mut(&mut self) -> WindowMut<'_> {
        WindowMut::new(self.inside.handle().words(), HEAD, size_of::<T>())
    }
}

impl<T: Value, A> Deref for Guard<'_, T, A> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is inside, so no other thread writes, and it writes itself only through
        // `&mut` of itself.
        unsafe { value::in_place(self.inside.handle().words()) }
    }
}

impl<T: Value> DerefMut for Guard<'_, T, Writing> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is inside, alone, and is itself borrowed for as long.
        unsafe { value::in_place_mut(self.inside.handle().words()) }
    }
}

impl<T: Value + Debug, A> Debug for Guard<'_, T, A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
