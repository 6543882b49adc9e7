//! Places in which locks were, and locks whose life this node has ended.

use super::cell::Cell;
use super::outbox::Outbox;
use super::table::Locks;
use rackmem_fabric::Whole;
use rackmem_proto::gcp::Life;
use rackmem_proto::wire::Tag;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};

/// Where locks were that this home has made, by bytes of memory:
/// at most as many as the node knows locks.
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
        self.0.lock().whole()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.vacant().rooms.values().map(VecDeque::len).sum()
    }

    /// The home has heard of the end of a life: if another one may begin there, the place is one of
    /// these, once. Says whether it is new.
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
    pub(crate) fn made(&self, addr: u64) {
        self.vacant().known.remove(&addr);
    }
}

/// Locks whose life threads of this node have ended and which are not yet at home:
/// as many as the process has threads.
#[derive(Default)]
pub(crate) struct Ends(Mutex<BTreeMap<Tag, Life>>);

impl Ends {
    fn map(&self) -> MutexGuard<'_, BTreeMap<Tag, Life>> {
        self.0.lock().whole()
    }

    pub fn await_end(&self, tag: Tag) {
        self.map().entry(tag).or_default();
    }

    /// Its home has it.
    pub fn known(&self, tag: Tag, ended: Life) {
        if let Some(known) = self.map().get_mut(&tag) {
            *known = ended.max(*known);
        }
    }

    pub fn is_known(&self, tag: Tag, ended: Life) -> bool {
        self.map().get(&tag).is_some_and(|known| *known >= ended)
    }

    pub fn forget(&self, tag: Tag) {
        self.map().remove(&tag);
    }
}

impl Locks {
    /// The home has heard of the end of a life. Others need not keep anything of that lock.
    pub(crate) fn offer(&self, cell: &Arc<Cell>) -> Outbox {
        match self.places.offer(cell) {
            true => self.tell_home(cell),
            false => Outbox::default(),
        }
    }
}
