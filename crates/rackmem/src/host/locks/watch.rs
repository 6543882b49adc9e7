//! Threads that want to know when what a lock protects may have changed, without being inside.

use super::outbox::Outbox;
use super::seat::Seat;
use rackmem_proto::gcp::Right;
use std::sync::Arc;

/// Who is called. A watch begins inside, so nobody has written since what the thread has seen. A
/// lock that nobody watches has no memory for it.
#[derive(Default)]
pub(crate) struct Watchers(Option<Box<Watch>>);

#[derive(Default)]
struct Watch {
    seats: Vec<Arc<Seat>>,
    /// The right of the node, and its version, when the first began.
    has: Option<(u64, Right)>,
    /// A thread of this node has written.
    changed: bool,
}

impl Watchers {
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|watch| watch.seats.is_empty())
    }

    pub fn add(&mut self, seat: Arc<Seat>) {
        self.0.get_or_insert_default().seats.push(seat);
    }

    pub fn remove(&mut self, seat: &Arc<Seat>) {
        if let Some(watch) = &mut self.0 {
            watch.seats.retain(|other| !Arc::ptr_eq(other, seat));
        }
    }

    pub fn changed(&mut self) {
        if let Some(watch) = &mut self.0 {
            watch.changed = true;
        }
    }

    /// A turn has ended with this right: calls all if another node may have written,
    /// or a thread of this one has.
    pub fn look(&mut self, has: (u64, Right), out: &mut Outbox) {
        let Some(watch) = &mut self.0 else {
            return;
        };
        let same = *watch.has.get_or_insert(has) == has;
        let changed = std::mem::take(&mut watch.changed);
        if !same || changed {
            self.call(out);
        }
        if self.is_empty() {
            self.0 = None;
        }
    }

    /// Calls all.
    pub fn call(&mut self, out: &mut Outbox) {
        for seat in self.0.iter_mut().flat_map(|watch| watch.seats.drain(..)) {
            seat.send_away();
            out.wake(seat);
        }
    }
}
