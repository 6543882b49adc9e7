//! A node forgets locks that are home, and of which it keeps nothing any more.
//!
//! The home says that a lock is home (`YieldAck`): to a node that leaves, and to all when the
//! home's program says that they are not going to want it soon. A node drops what the lock protects
//! at once ([`rackmem_proto::gcp::Event::Drop`]), and the rest when its program lets go of the
//! lock. The home itself forgets a lock of an array whose page is as nobody has ever written it
//! ([`rackmem_proto::gcp::Rest`]). What has to be remembered until the epoch ends is in the
//! [`super::ledger`].

use super::cell::{Cell, State};
use super::outbox::Outbox;
use super::slab;
use super::table::{Locks, Origin};
use rackmem_fabric::Whole;
use rackmem_proto::gcp::Known;
use rackmem_proto::wire::{Copyset, MAX_NODES, NodeId, Tag};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Locks forgotten at a time from which on the allocator is asked to give memory back.
const MANY: usize = 128;

impl State {
    /// What to remember of it, if it may be forgotten.
    fn forgettable(&self, cell: &Cell) -> Option<Known> {
        let new = cell.implicit && cell.words().is_empty();
        let noted = self.kept || !self.watchers.is_empty();
        self.lock.forgettable(new).filter(|_| !noted)
    }
}

impl Locks {
    /// Tells the other nodes that a lock is home, if it is.
    pub(crate) fn tell_home(&self, cell: &Arc<Cell>) -> Outbox {
        let nodes = (0..MAX_NODES as NodeId).filter(|node| *node != self.me);
        let live = nodes
            .filter(|node| self.standing.live(*node))
            .fold(Copyset::EMPTY, Copyset::with);
        self.step(cell, |lock, fx| {
            let empty = cell.implicit && cell.words().is_empty();
            if empty && lock.is_home() && lock.whole().is_some() {
                self.idle.fetch_add(1, Relaxed);
            }
            lock.dismiss(live, fx);
        })
    }

    /// Makes a lock that has been forgotten known again, since a packet is about it: a late copy of
    /// a request may be served, and then others wait for this node.
    pub(crate) fn recall(&self, tag: Tag) -> Option<Arc<Cell>> {
        let ((len, implicit), _) = self.ledger().get(tag)?;
        let origin = match (implicit, self.arrays.has(tag)) {
            (true, true) => Origin::Array,
            (true, false) => Origin::Heard,
            (false, _) => Origin::Made,
        };
        self.open(tag, len as usize, origin).ok()
    }

    /// A lock has ended with its home.
    pub(crate) fn remove(&self, tag: Tag) {
        let mut cells = self.shard(tag).write().whole();
        if cells.remove(&tag).is_some() && !self.arrays.has(tag) {
            self.known.fetch_sub(1, Relaxed);
        }
    }

    /// Arrays in memory that is no more take no room.
    pub(crate) fn forget_arrays(&self, gone: Copyset) {
        let freed = self
            .arrays
            .forget(|tag| tag.home().dies_with(gone) && !self.is_current(tag));
        self.known.fetch_sub(freed, Relaxed);
    }

    /// See [`crate::Node::idle_locks`].
    pub fn idle_locks(&self) -> usize {
        self.idle.load(Relaxed)
    }

    /// Forgets locks that are home and of which nothing is kept, and that no handle of this process
    /// is for. Says how many.
    pub fn forget_idle(&self) -> usize {
        let mut forgotten = 0;
        self.idle.store(0, Relaxed);
        self.drop_settled();
        self.let_go();
        for shard in &self.shards {
            // Who finds a lock takes a handle, under the shard's lock.
            let mut cells = shard.write().whole();
            let (mut found, epoch) = (Vec::new(), self.standing.epoch());
            for (tag, cell) in cells.iter() {
                let known = self.look(cell, |state| state.forgettable(cell));
                match known {
                    Some(known) if Arc::strong_count(cell) == 1 => {
                        found.push((*tag, (cell.len() as u32, cell.implicit), known));
                    }
                    // Somebody who has let go of the lock, and has yet to find out,
                    // may have the handle.
                    Some(_) if self.look(cell, |state| !state.entered_since()) => {
                        self.idle.fetch_add(1, Relaxed);
                    }
                    _ => {}
                }
            }
            let mut ledger = self.ledger();
            let remembered = ledger.add(epoch, &found);
            self.remembered.store(ledger.bytes(), Relaxed);
            drop(ledger);
            for tag in &remembered {
                cells.remove(tag);
                if !self.arrays.has(*tag) {
                    self.known.fetch_sub(1, Relaxed);
                }
            }
            forgotten += remembered.len();
            if cells.len() < cells.capacity() / 4 {
                cells.shrink_to_fit();
            }
        }
        if forgotten >= MANY {
            trim();
        }
        forgotten
    }
}

/// Gives what has been freed back to the system.
fn trim() {
    slab::give_spare_back();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
