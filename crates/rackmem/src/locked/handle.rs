//! What every kind of lock is: a lock of this node, and the way in and out.

use super::cell::{Cell, Waiting};
use super::descriptor::{self, Descriptor};
use super::outbox::Outbox;
use super::seat::{Called, Content, Pass, Seat};
use super::table::{Locks, Origin};
use crate::error::{Error, Result};
use crate::node::Node;
use rackmem_fabric::Nobody;
use rackmem_proto::gcp::{Access, MAX_LOCKED};
use rackmem_proto::wire::Tag;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long a thread that waits stays awake, giving the processor away between looks.
const AWAKE: Duration = Duration::from_micros(50);
/// How often a thread that sleeps looks whether it waits for something that was lost, or for a rack that is closed.
const LOOK: Duration = Duration::from_millis(5);

/// A lock, as one node sees it.
#[derive(Clone)]
pub(super) struct Handle {
    node: Node,
    cell: Arc<Cell>,
}

/// A thread is inside until this is dropped.
pub(super) struct Inside<'a> {
    handle: &'a Handle,
    access: Access,
    pass: Pass,
}

impl Handle {
    /// A new lock, whose home is this node.
    pub fn create(node: &Node, what: Descriptor, fill: impl FnOnce(&[AtomicU64])) -> Result<Self> {
        check(node, &what)?;
        let len = descriptor::size(what.regions.len());
        let addr = node.alloc_bytes(len)?;
        let made = Handle::make(node, addr, &what, fill);
        if let Err(Error::TooManyLocks { .. } | Error::BadRange { .. }) = &made {
            // No lock has ever been there.
            node.free_bytes(addr, len)?;
        }
        made
    }

    fn make(
        node: &Node,
        addr: u64,
        what: &Descriptor,
        fill: impl FnOnce(&[AtomicU64]),
    ) -> Result<Self> {
        let cell = locks(node).open(Tag(addr), what.len, |cell| fill(cell.words()))?;
        let node = node.clone();
        let handle = Handle { node, cell };
        what.write(&handle.node, addr)?;
        Ok(handle)
    }

    /// A lock that exists.
    pub fn attach(node: &Node, addr: u64, wanted: &Descriptor) -> Result<Self> {
        Handle::known(node, addr, &Descriptor::read(node, addr)?, wanted)
    }

    /// Any lock of this kind that exists, and what it is.
    pub fn attach_any(
        node: &Node,
        addr: u64,
        kind: descriptor::Kind,
    ) -> Result<(Self, Descriptor)> {
        let found = Descriptor::read(node, addr)?;
        let handle = Handle::known(
            node,
            addr,
            &found,
            &Descriptor {
                kind,
                ..found.clone()
            },
        )?;
        Ok((handle, found))
    }

    fn known(node: &Node, addr: u64, found: &Descriptor, wanted: &Descriptor) -> Result<Self> {
        if (found.kind, found.len) != (wanted.kind, wanted.len) {
            return Err(Error::NoLock { addr });
        }
        let cell = locks(node).open(Tag(addr), found.len, |_| ())?;
        let node = node.clone();
        Ok(Handle { node, cell })
    }

    /// A lock that nobody makes: one of an array for which there is room.
    pub fn implicit(node: &Node, tag: Tag, len: usize) -> Result<Self> {
        let cell = locks(node).open_as(tag, len, Origin::Array, |_| ())?;
        let node = node.clone();
        Ok(Handle { node, cell })
    }

    /// The lock of this name, made by whoever asks first, with its home there.
    pub fn named(
        node: &Node,
        name: &str,
        what: Descriptor,
        fill: impl FnOnce(&[AtomicU64]),
    ) -> Result<Self> {
        check(node, &what)?;
        let region = node.region(name, descriptor::size(0), what.type_hash())?;
        Handle::at(node, region, &what, fill)
    }

    /// The same; if it has died with its home, whoever asks first makes it anew.
    pub fn renewed(
        node: &Node,
        name: &str,
        what: Descriptor,
        fill: impl FnOnce(&[AtomicU64]),
    ) -> Result<Self> {
        check(node, &what)?;
        let region = node.renewed_region(name, descriptor::size(0), what.type_hash())?;
        Handle::at(node, region, &what, fill)
    }

    fn at(
        node: &Node,
        (addr, mine): (u64, bool),
        what: &Descriptor,
        fill: impl FnOnce(&[AtomicU64]),
    ) -> Result<Self> {
        if mine {
            return Handle::make(node, addr, what, fill);
        }
        Handle::known(node, addr, &Descriptor::await_at(node, addr)?, what)
    }

    /// Tells other nodes that it is home, if it is.
    pub fn tell_home(&self) {
        self.send(locks(&self.node).tell_home(&self.cell));
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
        locks(&self.node).look(&self.cell, |state| state.waiting(&self.cell))
    }

    /// Has a thread that is inside called when what it protects may have changed.
    pub fn watch(&self, seat: &Arc<Seat>) {
        let out = locks(&self.node).turn(&self.cell, |state, _| state.watchers.add(seat.clone()));
        out.finish();
    }

    /// Sleeps until then, or as long as this; the watch is over.
    pub fn await_change(&self, seat: &Arc<Seat>, at_most: Duration) -> Result<()> {
        let began = Instant::now();
        let mut ended = None;
        while seat.called() == Called::Waiting && ended.is_none() {
            match began.elapsed() {
                waited if waited >= at_most => break,
                waited if waited < AWAKE => std::thread::yield_now(),
                waited => std::thread::park_timeout(LOOK.min(at_most - waited)),
            }
            ended = self.ended();
        }
        locks(&self.node).look(&self.cell, |state| state.watchers.remove(seat));
        ended.map_or(Ok(()), Err)
    }

    /// What it protects.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.cell.words()
    }

    /// Makes room for so many bytes of what it protects, for the writer inside.
    #[cold]
    pub fn grow(&self, len: usize) {
        self.cell.content.grow(len.div_ceil(8));
    }

    /// Keeps no more than so many bytes, for the writer inside.
    pub fn trim(&self, len: usize) {
        self.cell.content.trim(len.div_ceil(8));
    }

    /// Bytes that it protects.
    #[inline]
    pub fn len(&self) -> usize {
        self.cell.len()
    }

    /// Enters, waiting no longer than this.
    #[inline]
    pub fn enter(&self, access: Access, at_most: Duration) -> Result<Option<Inside<'_>>> {
        self.node.open()?;
        if self.cell.word.enter(access) {
            return Ok(Some(self.inside(access, self.cell.pass())));
        }
        self.enter_slowly(access, at_most)
    }

    #[cold]
    fn enter_slowly(&self, access: Access, at_most: Duration) -> Result<Option<Inside<'_>>> {
        let Some(pass) = self.wait(access, at_most)? else {
            return Ok(None);
        };
        // If the lease has run out while it waited, the rack may go on without this process, and let others in. If the process goes
        // on, the rack did not: until then it stays inside.
        if let Err(error) = self.node.confirm() {
            let out = locks(&self.node).turn(&self.cell, |state, out| {
                if !state.over {
                    state.decline(&self.cell, access, out);
                }
            });
            self.send(out);
            return Err(error);
        }
        Ok(Some(self.inside(access, pass)))
    }

    /// Enters, if that takes no packet and nobody is inside or waits.
    #[inline]
    pub fn try_enter(&self, access: Access) -> Result<Option<Inside<'_>>> {
        self.node.open()?;
        if self.cell.word.enter(access) {
            return Ok(Some(self.inside(access, self.cell.pass())));
        }
        let mut entered = Ok(None);
        let out = locks(&self.node).turn(&self.cell, |state, _| {
            entered = match state.over {
                true => Err(self.lost()),
                false => Ok(state.try_enter(&self.cell, access)),
            };
        });
        out.finish();
        Ok(entered?.map(|entered| self.inside(access, entered.into())))
    }

    #[inline]
    fn inside(&self, access: Access, pass: Pass) -> Inside<'_> {
        Inside {
            handle: self,
            access,
            pass,
        }
    }

    fn lost(&self) -> Error {
        let node = self.cell.tag.home();
        Error::NodeLost { node }
    }

    fn wait(&self, access: Access, at_most: Duration) -> Result<Option<Pass>> {
        let seat = Arc::new(Seat::new(access));
        let began = Instant::now();
        let out = locks(&self.node).turn(&self.cell, |state, out| match state.over {
            true => seat.send_away(),
            false => state.enter(&self.cell, seat.clone(), out),
        });
        self.send(out);
        loop {
            match seat.called() {
                Called::Inside(pass) => return Ok(Some(pass)),
                Called::Over => return Err(self.lost()),
                Called::Waiting => {}
            }
            let waited = began.elapsed();
            let end = self.ended();
            if end.is_some() || waited >= at_most {
                if self.give_up(&seat) {
                    return end.map_or(Ok(None), Err);
                }
            } else if waited < AWAKE {
                std::thread::yield_now();
            } else {
                std::thread::park_timeout(LOOK.min(at_most - waited));
                self.look(&seat);
            }
        }
    }

    /// Why nobody will come any more.
    fn ended(&self) -> Option<Error> {
        let inner = &self.node.inner;
        if inner.closed.load(Relaxed) {
            Some(Error::Closed)
        } else if inner.access.standing.is_fenced() {
            Some(Error::Fenced)
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
    fn give_up(&self, seat: &Arc<Seat>) -> bool {
        let mut gave = false;
        let out = locks(&self.node).turn(&self.cell, |state, out| {
            gave = state.give_up(&self.cell, seat, out);
        });
        self.send(out);
        gave
    }

    fn send(&self, out: Outbox) {
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
        if !self.cell.word.leave(access) {
            self.leave_slowly(access);
        }
    }

    #[cold]
    fn leave_slowly(&self, access: Access) {
        let out = locks(&self.node).turn(&self.cell, |state, out| {
            if !state.over {
                state.leave(&self.cell, access, out);
            }
        });
        self.send(out);
    }
}

impl<'a> Inside<'a> {
    /// The lock.
    #[inline]
    pub fn handle(&self) -> &'a Handle {
        self.handle
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

fn check(node: &Node, what: &Descriptor) -> Result<()> {
    node.open()?;
    if what.len > MAX_LOCKED as usize {
        return Err(Error::BadRange {
            addr: 0,
            len: what.len,
            block: MAX_LOCKED as usize,
        });
    }
    Ok(())
}
