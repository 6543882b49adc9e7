//! What every kind of lock is: a lock of this node, and the way in and out.

use super::descriptor::Name;
use crate::error::{AccessError, LockError, RackError};
use crate::host::locks::cell::{Cell, Waiting};
use crate::host::locks::outbox::Outbox;
use crate::host::locks::seat::{Called, Content, Pass, Seat};
use crate::host::locks::table::{Locks, Origin};
use crate::node::Node;
use rackmem_fabric::awake::{Awake, SPIN};
use rackmem_fabric::{Body, Nobody};
use rackmem_proto::gcp::{Access, Life, MAX_LOCKED, Regions};
use rackmem_proto::membership::Survives;
use rackmem_proto::wire::Tag;
use std::fmt::{self, Formatter};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How often a thread that sleeps looks whether it waits for something that was lost,
/// or for a rack that is closed.
const LOOK: Duration = Duration::from_millis(5);

/// Bytes that a lock which can be freed protects at most: the others are its life's.
pub(super) const MOST: usize = (MAX_LOCKED - Life::LEN) as usize;

/// Bytes of a life, before those that its lock protects.
pub(super) const HEAD: usize = Life::LEN as usize;

/// A lock, as one node sees it.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) node: Node,
    pub(super) cell: Arc<Cell>,
    /// Which lock of this place it is; none where that is not asked.
    pub(super) life: Life,
    /// Words that it protects, its life's included, and with copies its stamp's: all of them when
    /// there is one.
    pub(super) words: u32,
    /// Bytes that it protects.
    pub(super) len: u32,
    pub(super) name: Name,
    /// What survives of it, in a region with copies ([`super::copied`]).
    pub(super) copied: Option<Survives>,
    /// It is one of an array in such a region ([`super::pages`]).
    pub(super) is_page: bool,
    /// The ranges that these bytes are of, of a lock over ranges.
    pub(super) regions: Option<Arc<Regions>>,
}

/// A thread is inside until this is dropped.
pub struct Inside<'a> {
    handle: &'a Handle,
    access: Access,
    pass: Pass,
}

impl Handle {
    pub(super) fn new(node: &Node, cell: Arc<Cell>, len: usize, life: Life, name: Name) -> Self {
        let tag = cell.tag;
        let survives = || match node.inner.access.agents.kept.writes_survive(tag) {
            true => Survives::Writes,
            false => Survives::Rest,
        };
        let copied = (!tag.home().is_own()).then(survives);
        Handle {
            node: node.clone(),
            cell,
            life,
            words: 1 + len.div_ceil(8) as u32 + u32::from(copied.is_some()),
            len: len as u32,
            name,
            copied,
            is_page: false,
            regions: None,
        }
    }

    /// A lock that nobody makes: one of an array for which there is room.
    pub fn implicit(node: &Node, tag: Tag, len: usize) -> Result<Self, LockError> {
        let cell = locks(node).open(tag, len, Origin::Array)?;
        Ok(Handle::new(node, cell, len, Life::NONE, Name::NONE))
    }

    /// The same place, whatever lock is there.
    pub(super) fn place(&self) -> Handle {
        Handle {
            life: Life::NONE,
            is_page: false,
            ..self.clone()
        }
    }

    pub(super) fn is_named(&self) -> bool {
        self.name != Name::NONE
    }

    /// Tells other nodes that it is home, if it is.
    pub fn tell_home(&self) {
        self.send(locks(&self.node).tell_home(&self.cell));
    }

    /// Has its home take it once. Whether it did, in the time that an access waits.
    pub fn bring_home(&self) -> bool {
        let access = &self.node.inner.access;
        self.cell.tag.home().is_of(self.node.id())
            || crate::host::locks::bring_one_home(access, &self.cell, access.patience)
    }

    /// What it is, for people.
    pub fn describe<T>(&self, what: &str, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct(what)
            .field("of", &std::any::type_name::<T>())
            .field("addr", &format_args!("{:#018x}", self.addr()))
            .field("node", &self.node.id())
            .finish()
    }

    /// The node whose threads use it.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Where it is.
    pub fn addr(&self) -> u64 {
        self.cell.tag.0
    }

    /// Who waits for it, as far as this node knows.
    pub fn waiting(&self) -> Waiting {
        locks(&self.node).look(&self.cell, |state| state.waiting())
    }

    /// Has a thread that is inside called when what it protects may have changed.
    pub fn watch(&self, seat: &Arc<Seat>) {
        let out = locks(&self.node).turn(&self.cell, |state, _| state.watchers.add(seat.clone()));
        out.finish();
    }

    /// Sleeps until then, or as long as this; the watch is over.
    pub fn await_change(&self, seat: &Arc<Seat>, at_most: Duration) -> Result<(), RackError> {
        let mut awake = Awake::begin(SPIN);
        let mut ended = None;
        while seat.called() == Called::Waiting && ended.is_none() {
            let waited = awake.waited();
            if waited >= at_most {
                break;
            }
            if !awake.look_again(waited) {
                std::thread::park_timeout(LOOK.min(at_most - waited));
            }
            ended = self.ended();
        }
        locks(&self.node).look(&self.cell, |state| state.watchers.remove(seat));
        ended.map_or(Ok(()), Err)
    }

    /// What it protects; in front of that the life of a lock that can be freed ([`HEAD`]).
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.cell.words()
    }

    /// Whether what is found inside is the lock that this is a handle on.
    #[inline]
    fn is_alive(&self) -> bool {
        let words = self.cell.words();
        if self.life == Life::NONE {
            return !self.is_page || !words.is_empty();
        }
        let whole = words.len() >= self.words as usize;
        whole
            && words
                .first()
                .is_some_and(|word| self.life.admits(Life::from_word(word.load(Relaxed))))
    }

    /// Changes which lock this is, for the writer inside.
    pub(super) fn set_life(&self, life: Life) {
        if let Some(word) = self.cell.words().first() {
            word.store(life.to_word(), Relaxed);
        }
    }

    /// Makes room for so many bytes of a page, for the writer inside.
    #[cold]
    pub fn grow(&self, len: usize) {
        self.cell
            .content
            .grow((self.before_page() + len).div_ceil(8));
    }

    /// Keeps no more than so many bytes of a page, for the writer inside.
    pub fn trim(&self, len: usize) {
        self.cell
            .content
            .trim((self.before_page() + len).div_ceil(8));
    }

    /// Bytes that it protects.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// It has not been this thread's turn in time.
    #[cold]
    pub fn busy(&self) -> LockError {
        LockError::Busy { addr: self.addr() }
    }

    /// Enters, waiting no longer than this.
    #[inline]
    pub fn enter(
        &self,
        access: Access,
        at_most: Duration,
    ) -> Result<Option<Inside<'_>>, LockError> {
        self.node.open()?;
        self.is_there()?;
        if self.cell.word.enter(access) {
            return self.inside_alive(self.inside(access, self.cell.pass()), at_most);
        }
        self.enter_slowly(access, at_most)
    }

    /// Its region, if it is in one, is not removed, as far as this node has heard.
    #[inline]
    pub(super) fn is_there(&self) -> Result<(), AccessError> {
        let addr = self.addr();
        let gone = self.copied.is_some() && self.node.inner.access.agents.kept.is_gone(Tag(addr));
        match gone {
            true => Err(AccessError::BadAddress { addr }),
            false => Ok(()),
        }
    }

    #[cold]
    fn enter_slowly(
        &self,
        access: Access,
        at_most: Duration,
    ) -> Result<Option<Inside<'_>>, LockError> {
        self.node.inner.access.relieve();
        let Some(pass) = self.wait(access, at_most)? else {
            return Ok(None);
        };
        // If the lease has run out while it waited, the rack may go on without this process, and
        // let others in. If the process goes on, the rack did not: until then it stays inside.
        if let Err(error) = self.node.confirm() {
            self.decline(access);
            return Err(error.into());
        }
        self.inside_alive(self.inside(access, pass), at_most)
    }

    /// A thread that was let in does not go on: it has seen nothing.
    pub(super) fn decline(&self, access: Access) {
        let out = locks(&self.node).step(&self.cell, |lock, fx| lock.decline(access, fx));
        self.send(out);
    }

    /// Enters, if that takes no packet and nobody is inside or waits.
    #[inline]
    pub fn try_enter(&self, access: Access) -> Result<Option<Inside<'_>>, LockError> {
        self.node.open()?;
        self.is_there()?;
        if self.cell.word.enter(access) {
            let inside = self.inside(access, self.cell.pass());
            return self.inside_alive(inside, Duration::ZERO);
        }
        let mut entered = Ok(None);
        let out = locks(&self.node).turn(&self.cell, |state, _| {
            entered = match state.lock.is_over() {
                true => Err(self.lost()),
                false => Ok(state.lock.try_enter(access)),
            };
        });
        out.finish();
        match entered?.map(Pass::from) {
            Some(pass) => self.inside_alive(self.inside(access, pass), Duration::ZERO),
            None => Ok(None),
        }
    }

    /// A thread has been let in.
    #[inline]
    pub(super) fn inside(&self, access: Access, pass: Pass) -> Inside<'_> {
        Inside {
            handle: self,
            access,
            pass,
        }
    }

    /// The same that another handle on this lock has let in.
    pub(super) fn inside_as(&self, other: Inside<'_>) -> Inside<'_> {
        let inside = self.inside(other.access, other.pass);
        std::mem::forget(other);
        inside
    }

    /// A thread that is inside finds its lock there, or another one, or has to look for what the
    /// lock protects.
    #[inline]
    pub(super) fn inside_alive<'a>(
        &'a self,
        inside: Inside<'a>,
        at_most: Duration,
    ) -> Result<Option<Inside<'a>>, LockError> {
        let alive = self.is_alive();
        if !self.has_record() {
            return match alive {
                true => Ok(Some(inside)),
                false => Err(self.refuse(inside)),
            };
        }
        if !alive || inside.pass.content != Content::Current {
            return self.look_for(inside, at_most);
        }
        if inside.access == Access::Write {
            self.begin_to_write(inside.pass.token);
        }
        Ok(Some(inside))
    }

    pub(super) fn lost(&self) -> LockError {
        let tag = self.cell.tag;
        AccessError::gone(tag, locks(&self.node).host(tag.home())).into()
    }

    fn wait(&self, access: Access, at_most: Duration) -> Result<Option<Pass>, LockError> {
        let seat = Arc::new(Seat::new());
        let mut awake = Awake::begin(SPIN);
        let out = locks(&self.node).step(&self.cell, |lock, fx| {
            lock.enter(seat.clone(), access, fx);
        });
        self.send(out);
        loop {
            match seat.called() {
                Called::Inside(pass) => return Ok(Some(pass)),
                Called::Over => return Err(self.lost()),
                Called::Waiting => {}
            }
            let waited = awake.waited();
            let end = self.ended();
            if end.is_some() || waited >= at_most {
                if self.give_up(&seat) {
                    return end.map_or(Ok(None), |error| Err(error.into()));
                }
            } else if !awake.look_again(waited) {
                std::thread::park_timeout(LOOK.min(at_most - waited));
                self.look(&seat);
            }
        }
    }

    /// Why nobody will come any more.
    pub(super) fn ended(&self) -> Option<RackError> {
        let inner = &self.node.inner;
        if inner.closed.load(Relaxed) {
            Some(RackError::Closed)
        } else if inner.access.standing.is_fenced() {
            Some(RackError::Fenced)
        } else {
            None
        }
    }

    /// After a sleep: what this thread waits for may have been lost.
    fn look(&self, seat: &Seat) {
        if seat.called() == Called::Waiting {
            let out = locks(&self.node).again(&self.cell);
            self.send(out);
        }
    }

    /// False: it has been let in, or sent away.
    pub(super) fn give_up(&self, seat: &Arc<Seat>) -> bool {
        let mut gave = false;
        let out = locks(&self.node).step(&self.cell, |lock, fx| {
            gave = lock.give_up(|other| Arc::ptr_eq(other, seat), fx);
        });
        self.send(out);
        gave
    }

    pub(super) fn send(&self, out: Outbox) {
        if !out.has_packets() {
            return out.finish();
        }
        match self.node.inner.access.requesters.borrow() {
            Ok(slot) => locks(&self.node).send(out, slot.net(), &mut Nobody),
            // Without a socket they are lost, and sent again later.
            Err(_) => out.finish(),
        }
    }

    /// Leaves.
    #[inline]
    pub fn leave(&self, access: Access) {
        if access == Access::Write && self.survives() {
            self.keep();
        }
        self.go(access);
    }

    /// Whether a majority has what it protects, or had when it came to rest.
    #[inline]
    fn has_record(&self) -> bool {
        self.copied.is_some() && (self.is_page || self.life != Life::NONE)
    }

    /// Whether a majority has each write under it.
    #[inline]
    pub(super) fn survives(&self) -> bool {
        self.copied == Some(Survives::Writes) && self.has_record()
    }

    /// Leaves it as it was found.
    #[inline]
    pub(super) fn go(&self, access: Access) {
        if !self.cell.word.leave(access) {
            self.leave_slowly(access);
        }
    }

    #[cold]
    fn leave_slowly(&self, access: Access) {
        let out = locks(&self.node).turn(&self.cell, |state, out| {
            if access == Access::Write {
                state.watchers.changed();
            }
            state.act(&self.cell, Body::None, out, |lock, fx| {
                lock.leave(access, fx)
            });
        });
        self.send(out);
    }
}

impl<'a> Inside<'a> {
    /// The lock.
    #[inline]
    pub(super) fn handle(&self) -> &'a Handle {
        self.handle
    }

    /// The thread stays inside without this: whoever has what it is told has
    /// [`Handle::leave`] to call.
    #[inline]
    pub(super) fn pass_on(self) -> Content {
        let content = self.pass.content;
        std::mem::forget(self);
        content
    }

    /// Leaves, and has seen nothing.
    pub(super) fn decline(self) {
        let (handle, access) = (self.handle, self.access);
        std::mem::forget(self);
        if !handle.cell.word.leave(access) {
            let out = locks(&handle.node).step(&handle.cell, |lock, fx| lock.decline(access, fx));
            handle.send(out);
        }
    }

    /// Leaves, with what it protects as it is.
    pub(super) fn leave_as_it_is(self) {
        let (handle, access) = (self.handle, self.access);
        std::mem::forget(self);
        handle.go(access);
    }

    pub(super) fn access(&self) -> Access {
        self.access
    }

    /// What is found inside is this.
    pub(super) fn tell(&mut self, content: Content) {
        self.pass.content = content;
    }

    /// The fencing token.
    pub fn token(&self) -> u64 {
        self.pass.token
    }

    /// What is found inside.
    pub fn content(&self) -> Content {
        self.pass.content
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.handle.leave(self.access);
    }
}

pub(super) fn locks(node: &Node) -> &Locks {
    &node.inner.access.agents.locks
}
