//! Locks of GCP in a world, on the nodes that have its blocks, and the threads that enter them.
//!
//! Each thread of the world has a [`Locker`] beside it: it enters locks, stays inside for a while,
//! during which the thread goes on with its operations, and leaves between two of them. What it
//! finds inside is judged ([`Judge`]): one writer or readers, the data of the last release, deaths
//! that are told, tokens that rise; and every locker ends.

mod judging;
mod locker;

pub use judging::{LockSeen, Locked};
pub use locker::Locker;

use super::block;
use super::config::Config;
use super::fabric::Occurrence;
use super::node::{Condition, WorldNode};
use super::random::Random;
use super::run::World;
use crate::site::{Cell, LockDeed};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::gcp::LockPlace;
use rackmem_proto::wire::{Contract, NodeId, Tag};

/// Words of what a lock protects that writers count up: when they enter, and when they leave.
const ENTERED: usize = 0;
const LEFT: usize = 3;

/// The tag of a world's lock in its home's incarnation.
pub fn tag(number: u32, homes: u16, incarnation: u32) -> Tag {
    block::tag(number, homes, incarnation).under(Contract::Locked)
}

/// The locks of a world as their threads see them.
pub struct Locking {
    pub lockers: Vec<Locker>,
    pub locked: Locked,
    /// Whether every lock is being read once more at the end.
    audits: bool,
}

impl Locking {
    pub fn new(seed: u64, config: &Config) -> Self {
        let mut random = Random::new(seed ^ 0x10cc);
        let threads = match config.has_locks() {
            true => usize::from(config.nodes) * usize::from(config.threads),
            false => 0,
        };
        let lockers = (0..threads).map(|index| Locker::new(index, config, random.fork()));
        Locking {
            lockers: lockers.collect(),
            locked: Locked::new(config.nodes),
            audits: false,
        }
    }

    /// Who still wants something, for a violation.
    pub fn describe(&self) -> String {
        let busy = self.lockers.iter().filter(|locker| !locker.idle());
        busy.map(|locker| format!("; {}", locker.describe()))
            .collect()
    }

    /// Whether every locker has nothing left to do.
    pub fn idle(&self) -> bool {
        self.lockers.iter().all(Locker::idle)
    }
}

impl World {
    /// A locker's turn.
    pub(super) fn locker(&mut self, index: usize) {
        let Some(locker) = self.locking.lockers.get_mut(index) else {
            return;
        };
        let id = locker.id.node;
        self.fabric.from = id;
        let between = self.threads[index].between();
        let node = &mut self.nodes[usize::from(id)];
        locker.advance(between, node, &mut self.fabric, &mut self.locking.locked);
        self.hear_of_locks(id);
    }

    /// What has happened to a node's locks.
    pub(super) fn hear_of_locks(&mut self, id: NodeId) {
        let per_node = usize::from(self.config.threads);
        let at = usize::from(id);
        for (tag, news) in std::mem::take(&mut self.nodes[at].news) {
            let locked = &mut self.locking.locked;
            let incarnation = self.nodes[at].view.incarnations[at];
            match news {
                LockDeed::Gained(data) => {
                    locked.gained(tag, (id, incarnation), data[LEFT]);
                }
                LockDeed::Settled => {
                    let (holder, of) = locked.tenure(tag);
                    let there = &self.nodes[usize::from(holder)];
                    let lives = there.standing == Condition::Up
                        && self.view.incarnation(holder) == Some(of);
                    if self.nodes[at].standing == Condition::Up {
                        locked.settled(tag, !lives);
                    }
                }
                LockDeed::Inside(slot, entered, _, data) => {
                    let found = [data[ENTERED], data[LEFT]];
                    let locker = &mut self.locking.lockers[at * per_node + usize::from(slot)];
                    let node = &mut self.nodes[at];
                    let found =
                        locker.let_in(tag, (entered, found), node, &mut self.fabric, locked);
                    if let Err(complaint) = found {
                        self.complaint.get_or_insert(complaint);
                    }
                }
                LockDeed::Gone(slot) => {
                    let locker = &mut self.locking.lockers[at * per_node + usize::from(slot)];
                    locker.gone(tag, &mut self.fabric);
                    locked.seen.gone += 1;
                }
                LockDeed::Dropped => {}
            }
        }
    }

    /// A node stops: so do the threads that hold its locks.
    pub(super) fn lockers_die(&mut self, id: NodeId, standing: Condition) {
        let node = &self.nodes[usize::from(id)];
        let seen = &mut self.locking.locked.seen;
        let owned = node.locks.cells.iter().filter(|(_, cell)| cell.owned());
        let mut owned = owned.map(|(tag, _)| *tag);
        let mut cached = node.cache.tags().filter_map(|tag| {
            let (status, _) = node.cache.copy(tag)?;
            (status == LocalStatus::Modified).then_some(tag)
        });
        let (lock, block) = (owned.next(), cached.next());
        seen.owners_of_both_died += u64::from(lock.is_some() && block.is_some());
        let abroad = |tag: Tag| !tag.home().is_of(id);
        let elsewhere = lock.into_iter().chain(owned).any(abroad)
            || block.into_iter().chain(cached).any(abroad);
        let is_home = !node.blocks.is_empty();
        seen.homes_that_owned_died += u64::from(elsewhere && is_home);
        let threads = self.threads_of(id);
        if let Some(lockers) = self.locking.lockers.get_mut(threads) {
            let inside = lockers.iter().any(Locker::is_inside);
            let fenced = standing == Condition::Fenced;
            self.locking.locked.seen.fenced_inside += u64::from(inside && fenced);
            lockers
                .iter_mut()
                .for_each(|l| l.die(&mut self.locking.locked));
        }
    }

    /// A node begins to leave the rack, or does not leave after all.
    pub(super) fn lockers_retire(&mut self, id: NodeId, leaves: bool) {
        self.nodes[usize::from(id)].locks.leaving = leaves;
        for index in self.threads_of(id) {
            if let Some(locker) = self.locking.lockers.get_mut(index) {
                locker.retire(leaves);
                self.fabric.schedule(0, Occurrence::Lock(index));
            }
        }
    }

    /// Whether a node that leaves has left its locks.
    pub(super) fn lockers_left(&self, id: NodeId) -> bool {
        let lockers = self.locking.lockers.get(self.threads_of(id));
        let idle = lockers.is_none_or(|lockers| lockers.iter().all(Locker::idle));
        let mut cells = self.nodes[usize::from(id)].locks.cells.values();
        let needed =
            |cell: &Cell<_>| !cell.lock.is_home() && cell.lock.forgettable(false).is_none();
        idle && !cells.any(|cell| needed(cell))
    }

    /// It has started again.
    pub(super) fn lockers_born(&mut self, id: NodeId) {
        let threads = self.threads_of(id);
        for index in threads {
            if let Some(locker) = self.locking.lockers.get_mut(index) {
                locker.born_again();
                self.fabric.schedule(0, Occurrence::Lock(index));
            }
        }
    }

    /// The switch dies.
    pub(super) fn note_switch_death(&mut self) {
        let up = || self.nodes.iter().filter(|n| n.standing == Condition::Up);
        let moves = up().any(|node| node.moves().next().is_some());
        let waits = self.locking.lockers.iter().any(Locker::waits);
        let cells = up().flat_map(|node| node.locks.cells.values());
        let mut places = cells.filter_map(|cell| Some(cell.lock.entry()?.1));
        let places = waits || places.any(|place| place == LockPlace::Placing);
        let seen = &mut self.locking.locked.seen;
        seen.switches_died_moving_both += u64::from(moves && places);
    }

    /// A member goes into another epoch, perhaps before it has gone on in the last one.
    pub(super) fn note_epoch(&mut self, id: NodeId, was_in_service: bool) {
        let threads = self.threads_of(id);
        let Some(lockers) = self.locking.lockers.get(threads) else {
            return;
        };
        let inside = lockers.iter().any(Locker::is_inside);
        let waits = lockers.iter().any(Locker::waits);
        let seen = &mut self.locking.locked.seen;
        seen.inside_over_epochs += u64::from(inside);
        seen.close_epochs += u64::from(!was_in_service && (inside || waits));
    }

    /// Every lock is read once more by a thread of every node. `false`: that has been done.
    pub(super) fn audit_locks(&mut self) -> bool {
        if self.locking.lockers.is_empty() || std::mem::replace(&mut self.locking.audits, true) {
            return false;
        }
        for id in self.view.live.iter() {
            let index = self.threads_of(id).start;
            self.locking.lockers[index].audit();
            self.fabric.schedule(0, Occurrence::Lock(index));
        }
        true
    }
}

impl WorldNode {
    /// The tags of a world's locks that are at home here.
    pub fn own_locks(id: NodeId, config: &Config, incarnation: u32) -> Vec<Tag> {
        let homes = config.homes();
        let numbers = 0..config.locks;
        let tags = numbers.map(|number| tag(number, homes, incarnation));
        tags.filter(|tag| tag.home().is_of(id)).collect()
    }
}
