//! Freeing a lock, and making the next one in its place ([`Life`] says by which rules).
//!
//! Who frees a lock enters it to write, ends its life, leaves, and asks the home to take the lock (`Yield` with that life) until the
//! home says that it knows. The home puts the place to those in which the next locks of its threads are made. A node that dies before the
//! home knows leaves a lock that lives on, or a place that is not used again until some handle finds the lock freed: that node
//! then tells the home.

use super::cell::Cell;
use super::descriptor::{self, Name, lock_at, memory_of};
use super::handle::{Handle, Inside, locks};
use super::leaving::{PAUSES, ask};
use super::outbox::Outbox;
use super::table::Locks;
use crate::backoff::Backoff;
use crate::error::{Error, Result};
use crate::node::Node;
use crate::node::region;
use rackmem_proto::gcp::{Access, Life};
use rackmem_proto::wire::Tag;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Who makes a lock waits so long for a place that a thread with an old handle has just entered, and then takes another.
pub(super) const FOR_A_PLACE: Duration = Duration::from_millis(20);
/// Places that it tries before it asks for memory.
pub(super) const TRIES: usize = 4;
/// Who asks whether a lock with a name has been freed waits so long for whoever is inside, which nobody is for long if it has.
const FOR_A_LOOK: Duration = Duration::from_secs(1);

/// Where locks were that this home has made, by bytes of memory: at most as many as the node knows locks.
#[derive(Default)]
pub(crate) struct Places(Mutex<Vacant>);

#[derive(Default)]
struct Vacant {
    /// The first that was freed is used first.
    rooms: BTreeMap<u32, VecDeque<u64>>,
    /// All of these, and those in which a lock is being made.
    known: BTreeSet<u64>,
}

impl Places {
    fn vacant(&self) -> MutexGuard<'_, Vacant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.vacant().rooms.values().map(VecDeque::len).sum()
    }

    /// The home has heard of the end of a life: if another one may begin there, the place is one of these, once. Says whether it is new.
    fn offer(&self, cell: &Cell) -> bool {
        let room = 1 << cell.room.load(Relaxed);
        let mut vacant = self.vacant();
        let life = cell.life();
        let new =
            room != 1 && life != Life::NONE && life.is_vacant() && vacant.known.insert(cell.tag.0);
        if new {
            vacant.rooms.entry(room).or_default().push_back(cell.tag.0);
        }
        new
    }

    /// One of so many bytes, for who makes a lock there.
    pub fn take(&self, room: usize) -> Option<u64> {
        let mut vacant = self.vacant();
        vacant.rooms.get_mut(&(room as u32))?.pop_front()
    }

    /// It has been taken, and no lock was made there.
    pub fn put_back(&self, room: usize, addr: u64) {
        let mut vacant = self.vacant();
        vacant.known.insert(addr);
        vacant.rooms.entry(room as u32).or_default().push_back(addr);
    }

    /// A lock has been made there.
    pub(super) fn made(&self, addr: u64) {
        self.vacant().known.remove(&addr);
    }
}

/// Locks whose life threads of this node have ended and which are not yet at home: as many as the process has threads.
#[derive(Default)]
pub(super) struct Ends(Mutex<BTreeMap<Tag, Life>>);

impl Ends {
    fn map(&self) -> MutexGuard<'_, BTreeMap<Tag, Life>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn await_end(&self, tag: Tag) {
        self.map().entry(tag).or_default();
    }

    /// Its home has it.
    pub fn known(&self, tag: Tag, ended: Life) {
        if let Some(known) = self.map().get_mut(&tag) {
            *known = ended.max(*known);
        }
    }

    fn is_known(&self, tag: Tag, ended: Life) -> bool {
        self.map().get(&tag).is_some_and(|known| *known >= ended)
    }

    fn forget(&self, tag: Tag) {
        self.map().remove(&tag);
    }
}

impl Locks {
    /// The home has heard of the end of a life. Others need not keep anything of that lock.
    pub(super) fn offer(&self, cell: &Arc<Cell>) -> Outbox {
        match self.places.offer(cell) {
            true => self.tell_home(cell),
            false => Outbox::default(),
        }
    }
}

impl Handle {
    /// Makes what is inside another lock's, or no lock's.
    fn end(&self, life: Life) {
        self.cell.content.renew(1);
        self.set_life(life);
        self.cell.told_len.store(0, Relaxed);
    }

    /// Frees the lock, whoever has made it; `before` is what its user does as the last one inside.
    pub fn free(&self, before: impl FnOnce(&Inside<'_>) -> Result<()>) -> Result<()> {
        let addr = self.addr();
        let patience = self.node.inner.access.patience;
        let inside = self.enter(Access::Write, patience)?;
        let inside = inside.ok_or(Error::Busy { addr })?;
        before(&inside)?;
        let ended = match self.is_named() {
            true => self.life.closed(),
            false => self.life.freed(),
        };
        self.end(ended);
        drop(inside);
        self.await_home(ended)?;
        match self.is_named() {
            true => self.take_name_away(),
            false => Ok(()),
        }
    }

    /// The lock has been freed, and its home knows. Its name goes before its place is used again.
    pub(super) fn take_name_away(&self) -> Result<()> {
        let (addr, freed) = (self.addr(), self.life.freed());
        let place = self.place();
        let inside = place.enter(Access::Write, self.node.inner.access.patience)?;
        let inside = inside.ok_or(Error::Busy { addr })?;
        // Several may do it. What is at the place later may have the same name.
        if self.cell.life() == self.life.closed() {
            region::vacate(&self.node, addr, &|name| Name::of(name) == self.name)?;
            self.end(freed);
        }
        drop(inside);
        self.await_home(freed)
    }

    /// Whether a lock with a name is not one any more. Then the name does not lead there any more.
    pub fn is_gone(&self) -> Result<bool> {
        match self.enter(Access::Read, FOR_A_LOOK) {
            Err(Error::LockFreed { .. }) => self.take_name_away().map(|()| true),
            other => other.map(|_| false),
        }
    }

    /// Waits until the home has what the lock protects as of the end of this life, or of something later.
    fn await_home(&self, ended: Life) -> Result<()> {
        let (locks, home) = (locks(&self.node), self.cell.tag.home());
        if home == locks.me {
            self.send(locks.offer(&self.cell));
            return Ok(());
        }
        let mut backoff = Backoff::new(self.node.inner.access.patience);
        let (mut again, mut pause) = (Instant::now(), PAUSES[0]);
        loop {
            let now = Instant::now();
            if now >= again {
                // Another thread of this node may have ended a later life, and been told.
                locks.ends.await_end(self.cell.tag);
                ask(&self.node, &[&self.cell], Some(ended));
                (again, pause) = (now + pause, (pause * 2).min(PAUSES[1]));
            }
            let why = if locks.ends.is_known(self.cell.tag, ended) {
                None
            } else if locks.look(&self.cell, |state| state.over) {
                Some(Error::NodeLost { node: home })
            } else if let Some(error) = self.ended() {
                Some(error)
            } else if !backoff.wait() {
                Some(Error::Timeout { node: home })
            } else {
                continue;
            };
            locks.ends.forget(self.cell.tag);
            return why.map_or(Ok(()), Err);
        }
    }

    /// A thread finds inside that this is not the lock that it has a handle on.
    #[cold]
    pub(super) fn refuse(&self, inside: Inside<'_>) -> Error {
        let (addr, found) = (self.addr(), self.cell.life());
        inside.decline();
        if found.is_vacant() && found != Life::NONE {
            // Its home may not know: who has freed it may have died.
            let locks = locks(&self.node);
            match self.cell.tag.home() == locks.me {
                true => self.send(locks.offer(&self.cell)),
                false => ask(&self.node, &[&self.cell], Some(found)),
            }
        }
        match found {
            Life::NONE => Error::NoLock { addr },
            _ => Error::LockFreed { addr },
        }
    }
}

/// Memory for a lock: where one was before, or new.
pub(crate) fn place(node: &Node, room: usize) -> Result<u64> {
    match locks(node).places.take(room) {
        Some(addr) => Ok(addr),
        None => node.alloc_bytes(room).map(lock_at),
    }
}

/// No lock was made there.
pub(crate) fn give_place_back(node: &Node, room: usize, addr: u64) -> Result<()> {
    let locks = locks(node);
    match locks.find(Tag(addr)) {
        // It is somebody's.
        Some(cell) if cell.life().is_live() => locks.places.made(addr),
        // To other nodes it is a lock's for ever.
        Some(_) => locks.places.put_back(room, addr),
        None => node.free_bytes(memory_of(addr), room)?,
    }
    Ok(())
}

/// Bytes of memory at the address of a lock with a name.
pub(crate) fn room() -> usize {
    descriptor::room(0)
}
