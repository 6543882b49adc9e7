//! Threads that want to know when what a lock protects may have changed, without being inside.

use super::outbox::Outbox;
use super::seat::Seat;
use rackmem_proto::gcp::Right;
use std::sync::Arc;

/// Who is called. A watch begins inside, so nobody has written since what the thread has seen.
#[derive(Default)]
pub(super) struct Watchers {
    seats: Vec<Arc<Seat>>,
    /// The right of the node, and its version, when the first began.
    has: Option<(u64, Right)>,
    /// A thread of this node has written.
    changed: bool,
}

impl Watchers {
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    pub fn add(&mut self, seat: Arc<Seat>) {
        self.seats.push(seat);
    }

    pub fn remove(&mut self, seat: &Arc<Seat>) {
        self.seats.retain(|other| !Arc::ptr_eq(other, seat));
    }

    pub fn changed(&mut self) {
        self.changed = true;
    }

    /// A turn has ended with this right: calls all if another node may have written, or a thread of this one has.
    pub fn look(&mut self, has: (u64, Right), out: &mut Outbox) {
        let same = *self.has.get_or_insert(has) == has;
        if !same || self.changed {
            self.call(out);
        }
        if self.seats.is_empty() {
            self.has = None;
        }
        self.changed = false;
    }

    /// Calls all.
    pub fn call(&mut self, out: &mut Outbox) {
        for seat in self.seats.drain(..) {
            seat.send_away();
            out.wake(seat);
        }
    }
}
