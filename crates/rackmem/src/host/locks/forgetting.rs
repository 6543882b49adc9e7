//! A node forgets locks that are home, and of which it keeps nothing any more.
//!
//! The home says that a lock is home (`YieldAck`): to a node that leaves, and to all when the home's program says that they are not
//! going to want it soon. A node drops what the lock protects at once ([`rackmem_proto::gcp::Event::Drop`]), and the rest when
//! its program lets go of the lock. Until the epoch ends it remembers what it gave up last: a late packet says nothing.

use super::cell::{Cell, State};
use super::outbox::Outbox;
use super::table::{Locks, Origin};
use rackmem_proto::wire::{Copyset, MAX_NODES, NodeId, Tag};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

/// What is remembered of a lock that has been forgotten.
#[derive(Clone, Copy)]
pub(crate) struct Forgotten {
    /// What the node gave up last.
    pub floor: u64,
    /// Bytes that the lock protects.
    len: u32,
    implicit: bool,
}

/// Locks forgotten at a time from which on the allocator is asked to give memory back.
const MANY: usize = 1024;

impl State {
    /// What to remember of it, if it may be forgotten.
    fn forgettable(&self, cell: &Cell) -> Option<Forgotten> {
        let floor = self.lock.forgettable()?;
        let noted = self.pace.kept || !self.watchers.is_empty();
        (!noted).then(|| Forgotten {
            floor,
            len: cell.len() as u32,
            implicit: cell.implicit,
        })
    }
}

impl Locks {
    /// Tells the other nodes that a lock is home, if it is.
    pub(crate) fn tell_home(&self, cell: &Arc<Cell>) -> Outbox {
        let nodes = (0..MAX_NODES as NodeId).filter(|node| self.standing.live(*node));
        let live = nodes.fold(Copyset::EMPTY, Copyset::with);
        self.step(cell, |lock, fx| lock.dismiss(live, fx))
    }

    /// Makes a lock that has been forgotten known again, since a packet is about it: a late copy of a request may be served, and then
    /// others wait for this node.
    pub(crate) fn recall(&self, tag: Tag) -> Option<Arc<Cell>> {
        let known = self.floors().get(&tag).copied()?;
        let origin = match (known.implicit, self.arrays.has(tag)) {
            (true, true) => Origin::Array,
            (true, false) => Origin::Heard,
            (false, _) => Origin::Made,
        };
        self.open(tag, known.len as usize, origin).ok()
    }

    /// A lock has ended with its home.
    pub(crate) fn remove(&self, tag: Tag) {
        let mut cells = self
            .shard(tag)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if cells.remove(&tag).is_some() && !self.arrays.has(tag) {
            self.known.fetch_sub(1, Relaxed);
        }
    }

    /// Arrays in memory that is no more take no room.
    pub(crate) fn forget_arrays(&self, gone: Copyset) {
        let freed = self
            .arrays
            .forget(|tag| gone.contains(tag.home()) && !self.is_current(tag));
        self.known.fetch_sub(freed, Relaxed);
    }

    /// See [`crate::Node::idle_locks`].
    pub fn idle_locks(&self) -> usize {
        self.idle.load(Relaxed)
    }

    /// Forgets locks of other nodes that are home, and that no handle of this process is for. Says how many.
    pub fn forget_idle(&self) -> usize {
        let mut forgotten = 0;
        self.idle.store(0, Relaxed);
        self.drop_settled();
        for shard in &self.shards {
            let mut cells = shard.write().unwrap_or_else(PoisonError::into_inner);
            let before = cells.len();
            cells.retain(|tag, cell| {
                // Who finds a lock takes a handle, under the shard's lock.
                if tag.home() == self.me || Arc::strong_count(cell) > 1 {
                    return true;
                }
                let Some(known) = self.look(cell, |state| state.forgettable(cell)) else {
                    return true;
                };
                self.floors().insert(*tag, known);
                if !self.arrays.has(*tag) {
                    self.known.fetch_sub(1, Relaxed);
                }
                false
            });
            forgotten += before - cells.len();
            if cells.len() < before / 2 {
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
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
