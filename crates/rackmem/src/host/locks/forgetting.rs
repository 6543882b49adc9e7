//! A node forgets locks that are home, and of which it keeps nothing any more.
//!
//! The home says that a lock is home (`YieldAck`): to a node that leaves, and to all when the home's program says that they are not
//! going to want it soon. A node drops what the lock protects at once ([`rackmem_proto::gcp::Event::Drop`]), and the rest when
//! its program lets go of the lock. Until the epoch ends it remembers what it gave up last: a late packet says nothing.

use super::cell::{Cell, State};
use super::outbox::{Outbox, Payload};
use super::table::{Locks, Origin};
use rackmem_proto::gcp::{Keeping, with_version};
use rackmem_proto::wire::{
    Dest, GlobalStatus, Header, Kind, MAX_NODES, NodeId, RequesterId, Seq, Tag,
};
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
        let noted = self.pace.kept || self.over;
        let lock = self.blade.lock(cell.tag)?;
        let idle = lock.keeping() == Keeping::Nothing && !self.awaited();
        (idle && !noted).then(|| Forgotten {
            floor: lock.floor(),
            len: cell.len() as u32,
            implicit: cell.implicit,
        })
    }
}

impl Locks {
    /// Tells the other nodes that a lock is home, if it is.
    pub(crate) fn tell_home(&self, cell: &Arc<Cell>) -> Outbox {
        let mut out = Outbox::default();
        let whole = self.look(cell, |state| state.lock_whole(cell));
        let Some(version) = whole.filter(|_| cell.tag.home() == self.me) else {
            return out;
        };
        let others = (0..MAX_NODES as NodeId).filter(|node| *node != self.me);
        for node in others.filter(|node| self.standing.live(*node)) {
            let to = RequesterId { node, slot: 0 };
            let epoch = self.standing.epoch();
            let mut header = Header::request(Kind::YieldAck, epoch, cell.tag, to, Seq(0));
            header.sender = self.me;
            header.status = GlobalStatus::Modified;
            out.packet(
                Dest::Agent(node),
                with_version(header, version),
                Payload::None,
            );
        }
        out
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
