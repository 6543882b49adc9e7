//! Many reader-writer locks over a page each, which nobody has to make one by one.
//!
//! Such a lock costs a node nothing until the node first wants it. Its home makes it, with zeros in
//! its page, when it first hears of it: requests tell how long the page is. So whoever allocates
//! the addresses has made all of them, at whatever home.

use super::handle::{Handle, locks};
use crate::bytes::window::{Window, WindowMut};
use crate::error::{AccessError, LockError, LockShape};
use crate::host::locks::arrays::STRIDE;
use crate::host::locks::seat::Content;
use crate::node::Node;
use crate::wait::Wait;
use rackmem_proto::gcp::{Access, MAX_LOCKED};
use rackmem_proto::wire::{Contract, Tag};
use std::sync::OnceLock;

/// Reader-writer locks over pages of equal length, at consecutive addresses:
/// [`RwLockArray::STRIDE`] bytes of memory each, which nobody reads or writes.
/// A page that nobody has written is zeros.
///
/// Taking a lock that is at this node costs no packet; otherwise it is one coherence transaction,
/// which brings the page. There are no guards, so that whoever holds many of them may keep them
/// wherever it likes: each [`RwLockArray::enter`] that says that the caller is inside is followed
/// by one [`RwLockArray::leave`]. For the rest, see [the module](super).
///
/// Its memory is never freed. Dropping the array lets the node forget its locks
/// ([`Node::forget_locks`]).
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Access, RwLockArray};
/// use std::time::Duration;
///
/// let rack = Rack::local(2)?;
/// let memory = rack.node(0).alloc_bytes(100 * RwLockArray::STRIDE)?;
/// let here = RwLockArray::attach(&rack.node(0), memory, 100, 4096)?;
/// let there = RwLockArray::attach(&rack.node(1), memory, 100, 4096)?;
/// there.enter(7, Access::Write, Duration::MAX)?;
/// there.view_mut(7).set_u64(0, 42);
/// there.leave(7, Access::Write);
/// here.enter(7, Access::Read, Duration::MAX)?;
/// assert_eq!(here.view(7).u64(0), 42);
/// here.leave(7, Access::Read);
/// # Ok(())
/// # }
/// ```
pub struct RwLockArray {
    node: Node,
    first: Tag,
    len: usize,
    handles: Box<[OnceLock<Handle>]>,
}

impl std::fmt::Debug for RwLockArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RwLockArray")
            .field("first", &format_args!("{:#018x}", self.first.0))
            .field("locks", &self.handles.len())
            .field("len", &self.len)
            .finish()
    }
}

impl RwLockArray {
    /// Bytes of memory from one lock to the next.
    pub const STRIDE: usize = STRIDE;

    /// The array of `count` locks over `len` bytes each in coherent memory at an address: a
    /// multiple of 16, in memory that has been allocated for it and is never freed.
    /// All nodes name the same length.
    ///
    /// # Errors
    /// [`LockError::BadShape`] for an address that is no multiple of 16, and a length that is zero,
    /// no multiple of eight, or above 64 KiB; [`LockError::TooManyLocks`] when the node has no room
    /// for all of them.
    pub fn attach(node: &Node, addr: u64, count: usize, len: usize) -> Result<Self, LockError> {
        let fits = (1..=MAX_LOCKED as usize).contains(&len) && len.is_multiple_of(8);
        if !fits || !addr.is_multiple_of(16) {
            let most = MAX_LOCKED as usize;
            let why = match len > most {
                true => LockShape::TooLong { most },
                false => LockShape::Unaligned,
            };
            return Err(LockError::BadShape { why });
        }
        let (locks, first) = (locks(node), Tag(addr).under(Contract::Locked));
        locks.arrays.add(first, count, |more| locks.claim(more))?;
        Ok(RwLockArray {
            node: node.clone(),
            first,
            len,
            handles: (0..count).map(|_| OnceLock::new()).collect(),
        })
    }

    #[inline]
    fn handle(&self, index: usize) -> Result<&Handle, LockError> {
        match self.handles[index].get() {
            Some(handle) => Ok(handle),
            None => self.first_use(index),
        }
    }

    #[cold]
    fn first_use(&self, index: usize) -> Result<&Handle, LockError> {
        self.node.inner.access.alive(self.first)?;
        self.is_there()?;
        let tag = Tag(self.first.0 + (index * Self::STRIDE) as u64);
        let handle = Handle::implicit(&self.node, tag, self.len)?;
        // Had its home died before it was known here, nobody would ever tell it.
        self.is_there()?;
        Ok(self.handles[index].get_or_init(|| handle))
    }

    fn is_there(&self) -> Result<(), LockError> {
        match locks(&self.node).is_current(self.first) {
            true => Ok(()),
            false => Err(self.gone()),
        }
    }

    #[cold]
    fn gone(&self) -> LockError {
        let host = locks(&self.node).standing.host(self.first.home());
        AccessError::gone(self.first, host).into()
    }

    /// Whether this node has heard of a lock: its home has of all that anybody has used.
    pub fn is_known(&self, index: usize) -> bool {
        let tag = Tag(self.first.0 + (index * Self::STRIDE) as u64);
        self.handles[index].get().is_some() || locks(&self.node).knows(tag)
    }

    /// Tells the other nodes, from the home of a lock, that they need not keep what they have of
    /// it, if the lock is here to write. They drop its page, and forget the lock when their arrays
    /// of it are no more ([`Node::forget_locks`]).
    pub fn tell_home(&self, index: usize) {
        if let Some(handle) = self.handles[index].get() {
            handle.tell_home();
        }
    }

    /// Enters a lock, waiting no longer than this; `None`: it was not this thread's turn in time.
    /// Says what is found inside, as
    /// [`super::ReadGuard::content`].
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    ///
    /// # Panics
    /// When the array has no such lock.
    #[inline]
    pub fn enter(
        &self,
        index: usize,
        access: Access,
        wait: impl Into<Wait>,
    ) -> Result<Option<Content>, LockError> {
        let handle = self.handle(index)?;
        let inside = match wait.into().limit() {
            Some(at_most) => handle.enter(access, at_most)?,
            None => handle.try_enter(access)?,
        };
        Ok(inside.map(|inside| {
            let content = inside.content();
            std::mem::forget(inside); // it would leave
            content
        }))
    }

    /// Leaves a lock that the caller is inside of.
    #[inline]
    pub fn leave(&self, index: usize, access: Access) {
        if let Some(handle) = self.handles.get(index).and_then(OnceLock::get) {
            handle.leave(access);
        }
    }

    /// The page of a lock that the caller is inside of, as far as it has been written:
    /// what lies behind is zeros.
    ///
    /// # Panics
    /// When nobody has ever entered the lock here.
    #[inline]
    pub fn view(&self, index: usize) -> Window<'_> {
        let words = self.entered(index).words();
        Window::new(words, 0, self.len.min(words.len() * 8))
    }

    /// The page of a lock that the caller is inside of to write: all of it.
    ///
    /// # Panics
    /// When nobody has ever entered the lock here.
    #[inline]
    pub fn view_mut(&self, index: usize) -> WindowMut<'_> {
        self.view_mut_of(index, self.len)
    }

    /// The page of a lock that the caller is inside of to write: its first `len` bytes, or more. A
    /// page takes as much memory, here and at other nodes, as has been asked for; the bytes behind
    /// it are zeros. Windows taken before show an older page.
    ///
    /// # Panics
    /// When nobody has ever entered the lock here.
    #[inline]
    pub fn view_mut_of(&self, index: usize, len: usize) -> WindowMut<'_> {
        let handle = self.entered(index);
        let mut words = handle.words();
        if words.len() * 8 < len.min(self.len) {
            handle.grow(len.min(self.len));
            words = handle.words();
        }
        WindowMut::new(words, 0, self.len.min(words.len() * 8))
    }

    /// The bytes of a page behind the first `len` are zeros from now on, or what they were; the
    /// caller is inside of its lock to write. Windows taken before show an older page.
    ///
    /// # Panics
    /// When nobody has ever entered the lock here.
    pub fn trim(&self, index: usize, len: usize) {
        self.entered(index).trim(len);
    }

    #[inline]
    fn entered(&self, index: usize) -> &Handle {
        let handle = self.handles[index].get();
        handle.expect("a lock that has been entered is known")
    }
}
