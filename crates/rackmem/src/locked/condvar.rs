//! Waiting for what another thread of the rack brings about.
//!
//! A condition variable is a lock over the list of those who wait. Whoever waits puts itself there
//! while it holds the mutex, then sleeps until somebody has taken it off. The list is at every node
//! that has looked at it, so nobody asks the network while it sleeps: what takes the right to read
//! it away is that somebody changes it, and that wakes the node's threads.

use super::descriptor::{Descriptor, Kind};
use super::handle::{HEAD, Handle, Inside};
use super::mutex::MutexGuard;
use crate::bytes::value::Value;
use crate::bytes::window::{Window, WindowMut};
#[cfg(doc)]
use crate::error::{AllocError, RackError};
use crate::error::{LockError, RegionError};
use crate::host::locks::seat::{Content, Seat};
use crate::node::Node;
use crate::wait::Wait;
use rackmem_proto::gcp::Access;
use rackmem_proto::wire::NodeId;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Threads of the rack that wait for one condition at most.
pub const MAX_WAITERS: usize = 255;

/// How many wait, and who: first come, first served.
const LEN: usize = (1 + MAX_WAITERS) * 8;

/// A condition that threads of the rack wait for while another changes what a [`super::Mutex`]
/// protects.
///
/// As everywhere, a thread may wake without a notification, and checks its condition again:
/// [`Condvar::wait_while`] does. The death of a node that may have changed the list wakes all
/// waiters.
///
/// Dropping a handle frees nothing; [`Condvar::free`] does, and waiting threads of all nodes return
/// [`LockError::Freed`].
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Condvar, Mutex};
///
/// let rack = Rack::local(2)?;
/// let (full, ready) = (Mutex::create(&rack.node(0), 0u32)?, Condvar::create(&rack.node(0))?);
/// let there = (
///     Mutex::<u32>::attach(&rack.node(1), full.addr())?,
///     Condvar::attach(&rack.node(1), ready.addr())?,
/// );
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         there.0.lock().unwrap().set(3);
///         there.1.notify_all().unwrap();
///     });
///     let held = ready.wait_while(full.lock()?, |n| n == 0)?;
///     assert_eq!(held.get(), 3);
///     Ok::<_, rackmem::Error>(())
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Condvar {
    list: Handle,
}

impl std::fmt::Debug for Condvar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.list.describe::<()>("Condvar", f)
    }
}

/// Who waits: a thread of a process that is a member.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Waiter(u64);

/// Unique in the process.
static NUMBERS: AtomicU64 = AtomicU64::new(0);
const NODE_SHIFT: u32 = 58;
const INCARNATION_SHIFT: u32 = 36;

impl Waiter {
    fn new(node: &Node) -> Self {
        let number = NUMBERS.fetch_add(1, Relaxed) & ((1 << INCARNATION_SHIFT) - 1);
        let process = Waiter::process(node, node.inner.id);
        Waiter(process << INCARNATION_SHIFT | number)
    }

    /// The process that is this node now.
    fn process(node: &Node, id: NodeId) -> u64 {
        let incarnation = u64::from(node.inner.access.standing.incarnation(id));
        let most = (1 << (NODE_SHIFT - INCARNATION_SHIFT)) - 1;
        u64::from(id) << (NODE_SHIFT - INCARNATION_SHIFT) | (incarnation & most)
    }

    /// Whether its process is still a member, as far as this one knows.
    fn lives(self, node: &Node) -> bool {
        let id = (self.0 >> NODE_SHIFT) as NodeId;
        let same = self.0 >> INCARNATION_SHIFT == Waiter::process(node, id);
        same && node.inner.access.standing.live(id)
    }
}

/// The list, as whoever is inside sees it.
struct List<'a>(&'a [AtomicU64]);

impl List<'_> {
    fn view(&self) -> Window<'_> {
        Window::new(self.0, HEAD, LEN)
    }

    fn len(&self) -> usize {
        (self.view().u64(0) as usize).min(MAX_WAITERS)
    }

    fn find(&self, waiter: Waiter) -> Option<usize> {
        let view = self.view();
        (0..self.len()).find(|at| view.u64(8 + at * 8) == waiter.0)
    }

    fn set(&self, at: usize, word: u64) {
        WindowMut::new(self.0, HEAD, LEN).set_u64(at * 8, word);
    }

    fn push(&self, waiter: Waiter) -> bool {
        let len = self.len();
        if len == MAX_WAITERS {
            return false;
        }
        self.set(1 + len, waiter.0);
        self.set(0, len as u64 + 1);
        true
    }

    fn remove(&self, at: usize) -> Waiter {
        let (len, view) = (self.len(), self.view());
        let gone = Waiter(view.u64(8 + at * 8));
        for next in at + 1..len {
            self.set(next, view.u64(8 + next * 8));
        }
        self.set(0, len as u64 - 1);
        gone
    }

    fn clear(&self) -> usize {
        let len = self.len();
        self.set(0, 0);
        len
    }
}

impl Condvar {
    const WHAT: Descriptor = Descriptor {
        kind: Kind::Condvar,
        len: LEN,
        of: 0,
        regions: Vec::new(),
    };

    /// A new one, at home on this node.
    ///
    /// # Errors
    /// [`AllocError::OutOfMemory`], [`LockError::TooManyLocks`]: it is one of the locks that a node
    /// knows.
    pub fn create(node: &Node) -> Result<Self, LockError> {
        let list = Handle::create(node, Condvar::WHAT, |_| ())?;
        Ok(Condvar { list })
    }

    /// The one that some node has made at this address.
    ///
    /// # Errors
    /// [`LockError::NoLock`] when there is none; [`RackError::NodeLost`].
    pub fn attach(node: &Node, addr: u64) -> Result<Self, LockError> {
        let list = Handle::attach(node, addr, &Condvar::WHAT)?;
        Ok(Condvar { list })
    }

    /// The one of this name, made on the node that is the first to ask.
    ///
    /// # Errors
    /// Those of [`Node::region`], [`Condvar::create`] and [`Condvar::attach`].
    pub fn named(node: &Node, name: &str) -> Result<Self, RegionError> {
        let list = Handle::named(node, name, Condvar::WHAT, |_| ())?;
        Ok(Condvar { list })
    }

    /// The same; one that has died with its home is made anew, as by [`super::Mutex::renewed`].
    ///
    /// # Errors
    /// Those of [`Condvar::named`], but [`RegionError::NameLost`].
    pub fn renewed(node: &Node, name: &str) -> Result<Self, RegionError> {
        let list = Handle::renewed(node, name, Condvar::WHAT, |_| ())?;
        Ok(Condvar { list })
    }

    /// Frees it, as [`super::Mutex::free`]. Threads that wait for it return [`LockError::Freed`].
    ///
    /// # Errors
    /// Those of [`super::Mutex::free`].
    pub fn free(self) -> Result<(), LockError> {
        self.list.free(|_| Ok(()))
    }

    /// Its global address, which [`Condvar::attach`] takes on any node.
    pub fn addr(&self) -> u64 {
        self.list.addr()
    }

    /// Lets the mutex go, waits to be notified, and holds the mutex again.
    ///
    /// # Errors
    /// [`LockError::TooManyWaiting`]; [`RackError::NodeLost`] when the home of this or of the mutex
    /// has died; [`RackError::Closed`],
    /// [`RackError::NoLease`], [`RackError::Fenced`]. The mutex is not held then.
    pub fn wait<'a, T: Value>(
        &self,
        held: MutexGuard<'a, T>,
    ) -> Result<MutexGuard<'a, T>, LockError> {
        self.wait_within(held, Wait::Forever).map(|(held, _)| held)
    }

    /// The same, as long as `f` says of what the mutex protects.
    ///
    /// # Errors
    /// Those of [`Condvar::wait`].
    pub fn wait_while<'a, T: Value>(
        &self,
        mut held: MutexGuard<'a, T>,
        mut f: impl FnMut(T) -> bool,
    ) -> Result<MutexGuard<'a, T>, LockError> {
        while f(held.get()) {
            held = self.wait(held)?;
        }
        Ok(held)
    }

    /// Waits no longer than this to be notified, and says whether it was.
    /// The mutex is waited for without end.
    ///
    /// # Errors
    /// Those of [`Condvar::wait`].
    pub fn wait_within<'a, T: Value>(
        &self,
        held: MutexGuard<'a, T>,
        wait: impl Into<Wait>,
    ) -> Result<(MutexGuard<'a, T>, bool), LockError> {
        let at_most = wait.into().limit().unwrap_or_default();
        let me = Waiter::new(self.list.node());
        self.change(|list| {
            let most = MAX_WAITERS;
            list.push(me)
                .then_some(())
                .ok_or(LockError::TooManyWaiting { most })
        })??;
        let mutex = held.handle();
        drop(held);
        let notified = self.sleep(me, at_most)?;
        Ok((MutexGuard::hold(mutex)?, notified))
    }

    /// Wakes the thread that has waited longest. Says whether one was waiting.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn notify_one(&self) -> Result<bool, LockError> {
        let node = self.list.node();
        self.change(|list| {
            // Nobody takes those off whose process has died.
            while list.len() > 0 {
                if list.remove(0).lives(node) {
                    return true;
                }
            }
            false
        })
    }

    /// Wakes all who wait. Says how many did, those of dead processes included.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn notify_all(&self) -> Result<usize, LockError> {
        self.change(|list| list.clear())
    }

    /// How many wait just now, those of dead processes included.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn waiters(&self) -> Result<usize, LockError> {
        let inside = self.enter(Access::Read, Duration::MAX)?;
        Ok(inside.map_or(0, |_inside| List(self.list.words()).len()))
    }

    /// Changes the list. What a death has left of it is older than what threads were told:
    /// all of them look again.
    fn change<R>(&self, f: impl FnOnce(List<'_>) -> R) -> Result<R, LockError> {
        let addr = self.addr();
        let inside = self.enter(Access::Write, Duration::MAX)?;
        let inside = inside.ok_or(LockError::Busy { addr })?;
        let list = List(self.list.words());
        if inside.content() != Content::Current {
            list.clear();
        }
        Ok(f(list))
    }

    fn enter(&self, access: Access, at_most: Duration) -> Result<Option<Inside<'_>>, LockError> {
        self.list.enter(access, at_most)
    }

    /// Whether somebody has taken this thread off the list in time.
    fn sleep(&self, me: Waiter, at_most: Duration) -> Result<bool, LockError> {
        let began = Instant::now();
        loop {
            let seat = Arc::new(Seat::new());
            let left = || at_most.saturating_sub(began.elapsed());
            if let Some(inside) = self.enter(Access::Read, left())? {
                if List(self.list.words()).find(me).is_none() {
                    return Ok(true);
                }
                // Nobody changes the list before this thread has left.
                self.list.watch(&seat);
                drop(inside);
                self.list.await_change(&seat, left())?;
            }
            if began.elapsed() >= at_most {
                // Who is not there any more has been notified, in the last moment.
                return self.change(|list| match list.find(me) {
                    Some(at) => {
                        list.remove(at);
                        false
                    }
                    None => true,
                });
            }
        }
    }
}
