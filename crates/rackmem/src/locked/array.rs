//! Many reader-writer locks over a page each, which nobody has to make one by one.
//!
//! Such a lock costs a node nothing until the node first wants it. Its home makes it, with zeros in
//! its page, when it first hears of it: requests tell how long the page is. So whoever allocates
//! the addresses has made all of them, at whatever home.

use super::descriptor::Descriptor;
use super::guard::{Guard, Reading, Right, Writing};
use super::handle::{Handle, locks};
use crate::bytes::window::{Grow, Window, WindowMut};
use crate::error::{AccessError, LockError, LockShape};
use crate::host::locks::arrays::STRIDE;
use crate::host::locks::seat::Content;
use crate::node::Node;
use crate::wait::Wait;
use rackmem_proto::gcp::MAX_LOCKED;
use rackmem_proto::wire::{Contract, Tag};
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Reader-writer locks over pages of equal length, at consecutive addresses:
/// [`RwLockArray::STRIDE`] bytes of memory each, which are not read or written directly.
/// A page that has not been written is zeros.
///
/// Taking a lock that is at this node costs no packet; otherwise it is one coherence transaction,
/// which brings the page. A page is read and written by its holder only: through a [`Guard`] over a
/// [`Page`], or, where a holder cannot keep a borrow of the array, with an [`Entered`]. For the
/// rest, see [the module](super).
///
/// Its memory is never freed. Dropping the array lets the node forget its locks
/// ([`Node::forget_locks`]).
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::RwLockArray;
///
/// let rack = Rack::local(2)?;
/// let memory = rack.node(0).alloc_bytes(100 * RwLockArray::STRIDE)?;
/// let here = RwLockArray::attach(&rack.node(0), memory, 100, 4096)?;
/// let there = RwLockArray::attach(&rack.node(1), memory, 100, 4096)?;
/// there.write(7)?.view_mut(8).set_u64(0, 42);
/// assert_eq!(here.read(7)?.view().u64(0), 42);
/// # Ok(())
/// # }
/// ```
///
/// Code that does not hold a page, or holds it to read, cannot write it:
///
/// ```compile_fail,E0599
/// # fn write(locks: &rackmem::locked::RwLockArray) -> rackmem::Result<()> {
/// locks.read(7)?.view_mut(8).set_u64(0, 42); // `write(7)` compiles
/// # Ok(())
/// # }
/// ```
pub struct RwLockArray {
    node: Node,
    first: Tag,
    /// Bytes from one lock to the next.
    stride: usize,
    len: usize,
    handles: Box<[OnceLock<Handle>]>,
    /// Unique in the process: whose an [`Entered`] is.
    number: u64,
}

/// The numbers of arrays.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// What a lock of an [`RwLockArray`] protects: bytes, which its guards show as a window.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Guard, Page, RwLockArray, Writing};
///
/// let rack = Rack::local(1)?;
/// let memory = rack.node(0).alloc_bytes(RwLockArray::STRIDE)?;
/// let locks = RwLockArray::attach(&rack.node(0), memory, 1, 4096)?;
/// let mut held: Guard<'_, Page, Writing> = locks.write(0)?;
/// let mut page = held.view_mut(8); // so much memory does it take
/// page.set_u64(0, 42);
/// page.grow(100);
/// page.write(92, b"the rest");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Page {}

/// A page of an [`RwLockArray`], held to read.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{PageReadGuard, RwLockArray};
///
/// let rack = Rack::local(1)?;
/// let memory = rack.node(0).alloc_bytes(RwLockArray::STRIDE)?;
/// let locks = RwLockArray::attach(&rack.node(0), memory, 1, 4096)?;
/// let held: Option<PageReadGuard<'_>> = locks.try_read(0)?;
/// assert_eq!(held.expect("no other thread is inside").view().u64(0), 0);
/// # Ok(())
/// # }
/// ```
pub type PageReadGuard<'a> = Guard<'a, Page, Reading>;

/// A page of an [`RwLockArray`], held to write.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{PageWriteGuard, RwLockArray};
///
/// let rack = Rack::local(1)?;
/// let memory = rack.node(0).alloc_bytes(RwLockArray::STRIDE)?;
/// let locks = RwLockArray::attach(&rack.node(0), memory, 1, 4096)?;
/// let held: Option<PageWriteGuard<'_>> = locks.try_write(0)?;
/// held.expect("no other thread is inside").view_mut(8).set_u64(0, 42);
/// # Ok(())
/// # }
/// ```
pub type PageWriteGuard<'a> = Guard<'a, Page, Writing>;

/// That this process is inside of a lock of an [`RwLockArray`], for a holder that keeps no borrow
/// of the array: [`RwLockArray::view`] and its like take it, and [`RwLockArray::leave`] takes it
/// back. Any thread may do that.
///
/// **Dropping** it does not leave the lock: then no other thread of the rack gets the lock to write
/// (or at all, if this is a writer's) as long as this process lives. A [`Guard`] leaves by itself.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::locked::{Entered, Reading, RwLockArray, Writing};
/// use rackmem::{Rack, Wait};
///
/// let rack = Rack::local(1)?;
/// let memory = rack.node(0).alloc_bytes(2 * RwLockArray::STRIDE)?;
/// let locks = RwLockArray::attach(&rack.node(0), memory, 2, 4096)?;
/// let mut both: Vec<Entered<Writing>> = Vec::new();
/// for index in [0, 1] {
///     both.extend(locks.enter(index, Wait::Forever)?);
/// }
/// locks.view_mut(&mut both[1], 8).set_u64(0, 42);
/// both.into_iter().for_each(|entered| locks.leave(entered));
/// let entered: Entered<Reading> = locks.enter(1, Wait::Forever)?.expect("it waits");
/// assert_eq!(locks.view(&entered).u64(0), 42);
/// locks.leave(entered);
/// # Ok(())
/// # }
/// ```
///
/// Without one there is nothing to write to, nor with that of a reader, nor after leaving:
///
/// ```compile_fail,E0308
/// # use rackmem::locked::{Entered, Reading, RwLockArray};
/// fn write(locks: &RwLockArray, mut entered: Entered<Reading>) {
///     locks.view_mut(&mut entered, 8).set_u64(0, 42); // with `Entered<Writing>` it compiles
/// }
/// ```
///
/// ```compile_fail,E0382
/// # use rackmem::locked::{Entered, Writing, RwLockArray};
/// fn write(locks: &RwLockArray, mut entered: Entered<Writing>) {
///     locks.leave(entered); // after the next line it compiles
///     locks.view_mut(&mut entered, 8).set_u64(0, 42);
/// }
/// ```
#[must_use = "the lock stays held until `RwLockArray::leave` takes this"]
pub struct Entered<A> {
    array: u64,
    index: usize,
    content: Content,
    /// A window to change the page has been given out.
    changed: bool,
    right: PhantomData<fn() -> A>,
}

impl<A> Entered<A> {
    /// Which lock of the array.
    pub fn index(&self) -> usize {
        self.index
    }

    /// [`Guard::content`].
    #[inline]
    pub fn content(&self) -> Content {
        self.content
    }
}

impl<A> Debug for Entered<A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered")
            .field("index", &self.index)
            .field("content", &self.content())
            .finish()
    }
}

impl Debug for RwLockArray {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
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
    /// for all of them; [`LockError::NoLock`] for the address of another kind of lock.
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
        let is = [Contract::Coherent, Contract::Locked];
        if !is.iter().any(|is| Tag(addr).is_under(*is)) {
            return Err(AccessError::wrong_contract(Tag(addr), Contract::Locked).into());
        }
        if !Tag(addr).home().is_own() {
            return Err(AccessError::BadAddress { addr }.into());
        }
        // A lock that was made there has words of its own in front, which are no page.
        if Tag(addr).is_under(Contract::Locked) {
            match Descriptor::read(node, addr) {
                Ok(_) => return Err(LockError::NoLock { addr }),
                Err(LockError::NoLock { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        let (locks, first) = (locks(node), Tag(addr).under(Contract::Locked));
        locks.arrays.add(first, count, |more| locks.claim(more))?;
        Ok(RwLockArray::of(node, first, (count, Self::STRIDE), len))
    }

    pub(super) fn of(node: &Node, first: Tag, (count, stride): (usize, usize), len: usize) -> Self {
        RwLockArray {
            node: node.clone(),
            first,
            stride,
            len,
            handles: (0..count).map(|_| OnceLock::new()).collect(),
            number: NUMBERS.fetch_add(1, Relaxed),
        }
    }

    fn tag(&self, index: usize) -> Tag {
        Tag(self.first.0 + (index * self.stride) as u64)
    }

    #[inline]
    pub(super) fn handle(&self, index: usize) -> Result<&Handle, LockError> {
        match self.handles[index].get() {
            Some(handle) => Ok(handle),
            None => self.first_use(index),
        }
    }

    #[cold]
    fn first_use(&self, index: usize) -> Result<&Handle, LockError> {
        if !self.first.home().is_own() {
            let handle = Handle::of_page(&self.node, self.tag(index), self.len)?;
            return Ok(self.handles[index].get_or_init(|| handle));
        }
        self.node.inner.access.alive(self.first)?;
        self.is_there()?;
        let handle = Handle::implicit(&self.node, self.tag(index), self.len)?;
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
        let host = locks(&self.node).host(self.first.home());
        AccessError::gone(self.first, host).into()
    }

    /// Whether this node knows of a lock: its home knows of all that have been used.
    pub fn is_known(&self, index: usize) -> bool {
        self.handles[index].get().is_some() || locks(&self.node).knows(self.tag(index))
    }

    /// Sends home what this node has written under a lock, so that it outlives this node: the home
    /// takes the lock once, when it is its turn. Threads that come later take it again.
    ///
    /// # Errors
    /// [`LockError::Busy`] when the home has not had it in the time that the configuration allows,
    /// as when the thread that asks is inside.
    pub fn bring_home(&self, index: usize) -> Result<(), LockError> {
        match self.handles[index].get() {
            Some(handle) if !handle.bring_home() => Err(LockError::Busy {
                addr: handle.addr(),
            }),
            _ => Ok(()),
        }
    }

    /// Tells the other nodes, from the home of a lock, that they need not keep what they have of
    /// it, if the lock is here to write. They drop its page, and forget the lock when their arrays
    /// of it are no more ([`Node::forget_locks`]).
    pub fn tell_home(&self, index: usize) {
        if let Some(handle) = self.handles[index].get() {
            handle.tell_home();
        }
    }

    /// Holds a page together with other readers, as soon as it is this thread's turn.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    ///
    /// # Panics
    /// As do the other ways in: when the array has no such page.
    #[inline]
    pub fn read(&self, index: usize) -> Result<PageReadGuard<'_>, LockError> {
        Guard::hold(self.handle(index)?)
    }

    /// Holds a page alone, as soon as it is this thread's turn.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn write(&self, index: usize) -> Result<PageWriteGuard<'_>, LockError> {
        Guard::hold(self.handle(index)?)
    }

    /// Holds a page together with other readers, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn read_within(
        &self,
        index: usize,
        wait: impl Into<Wait>,
    ) -> Result<Option<PageReadGuard<'_>>, LockError> {
        Guard::hold_within(self.handle(index)?, wait)
    }

    /// Holds a page alone, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn write_within(
        &self,
        index: usize,
        wait: impl Into<Wait>,
    ) -> Result<Option<PageWriteGuard<'_>>, LockError> {
        Guard::hold_within(self.handle(index)?, wait)
    }

    /// Holds a page together with other readers, as [`super::RwLock::try_read`].
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn try_read(&self, index: usize) -> Result<Option<PageReadGuard<'_>>, LockError> {
        Guard::try_hold(self.handle(index)?)
    }

    /// Holds a page alone, as [`super::RwLock::try_write`].
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn try_write(&self, index: usize) -> Result<Option<PageWriteGuard<'_>>, LockError> {
        Guard::try_hold(self.handle(index)?)
    }

    /// Enters the lock of a page for a holder that keeps no borrow of the array: with a token in
    /// place of a guard. `None`: it was not this thread's turn in time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    #[inline]
    pub fn enter<A: Right>(
        &self,
        index: usize,
        wait: impl Into<Wait>,
    ) -> Result<Option<Entered<A>>, LockError> {
        let handle = self.handle(index)?;
        let inside = match wait.into().limit() {
            Some(at_most) => handle.enter(A::ACCESS, at_most)?,
            None => handle.try_enter(A::ACCESS)?,
        };
        Ok(inside.map(|inside| Entered {
            array: self.number,
            index,
            // Not the fencing token: it lies in a cache line that nothing else here reads.
            content: inside.pass_on(),
            changed: false,
            right: PhantomData,
        }))
    }

    /// Leaves it: the next thread may come in.
    ///
    /// # Panics
    /// As does all that takes a token: when it is another array's.
    #[inline]
    pub fn leave<A: Right>(&self, entered: Entered<A>) {
        let handle = self.entered(&entered);
        match entered.changed {
            true => handle.leave(A::ACCESS),
            false => handle.go(A::ACCESS),
        }
    }

    /// Has a majority have what was written under a lock of a region with copies, before it is
    /// left: then to leave takes no wait. Does nothing of other locks, and where nothing was.
    ///
    /// # Errors
    /// Those of [`Node::write`], where no majority has it in this time: what was written may be
    /// lost with this node, or may not. As long as the token is not given back nobody else sees it.
    pub fn keep(
        &self,
        entered: &mut Entered<Writing>,
        wait: impl Into<Wait>,
    ) -> Result<(), LockError> {
        let handle = self.entered(entered);
        if entered.changed && handle.survives() {
            handle.keep_within(wait.into().limit().unwrap_or_default())?;
        }
        entered.changed = false;
        Ok(())
    }

    /// [`Guard::view`], by a token.
    #[inline]
    pub fn view<'a, A>(&'a self, entered: &'a Entered<A>) -> Window<'a> {
        self.entered(entered).window()
    }

    /// [`Guard::view_mut`], by a token.
    #[inline]
    pub fn view_mut<'a>(&'a self, entered: &'a mut Entered<Writing>, len: usize) -> WindowMut<'a> {
        entered.changed = true;
        page_mut(self.entered(entered), len)
    }

    /// [`Guard::trim`], by a token.
    pub fn trim(&self, entered: &mut Entered<Writing>, len: usize) {
        entered.changed = true;
        self.entered(entered).trim(len);
    }

    #[inline]
    fn entered<A>(&self, entered: &Entered<A>) -> &Handle {
        assert!(
            entered.array == self.number,
            "the token of one array, used with another"
        );
        let handle = self.handles[entered.index].get();
        handle.expect("a lock that has been entered is known")
    }
}

/// The page of a lock that a writer is inside of: its first `len` bytes, or more.
#[inline]
fn page_mut(handle: &Handle, len: usize) -> WindowMut<'_> {
    let mut view = WindowMut::growing(handle.window(), handle);
    view.grow(len);
    view
}

impl Grow for Handle {
    #[inline]
    fn window(&self) -> Window<'_> {
        let (words, before) = (self.words(), self.before_page());
        let there = (words.len() * 8).saturating_sub(before);
        Window::new(words, before.min(words.len() * 8), self.len().min(there))
    }

    #[cold]
    fn grown(&self, len: usize) -> Window<'_> {
        self.grow(len.min(self.len()));
        self.window()
    }
}

impl<A> Guard<'_, Page, A> {
    /// The page, as far as it has been written: what lies behind is zeros.
    #[inline]
    pub fn view(&self) -> Window<'_> {
        self.handle().window()
    }
}

impl Guard<'_, Page, Writing> {
    /// The page: its first `len` bytes, or more. It takes as much memory, here and at other nodes,
    /// as has been asked for; the bytes behind that are zeros. [`WindowMut::grow`] asks for more.
    #[inline]
    pub fn view_mut(&mut self, len: usize) -> WindowMut<'_> {
        page_mut(self.handle(), len)
    }

    /// The bytes of the page behind the first `len` are zeros from now on, or what they were: they
    /// need not be kept, and take no memory if that is worth while.
    pub fn trim(&mut self, len: usize) {
        self.handle().trim(len);
    }
}

impl<A> Debug for Guard<'_, Page, A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("addr", &format_args!("{:#018x}", self.handle().addr()))
            .field("content", &self.content())
            .finish()
    }
}
