//! Threads of a node that wait for a lock, first come, first served. A lock for which nobody waits has no memory for them.

use super::seat::Seat;
use std::collections::VecDeque;
use std::sync::Arc;

/// See the module: as many as the process has threads.
#[derive(Default)]
#[expect(
    clippy::box_collection,
    reason = "a line that nobody stands in is one word, not four"
)]
pub(crate) struct Line(Option<Box<VecDeque<Arc<Seat>>>>);

impl Line {
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |line| line.len())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Seat>> {
        self.0.iter().flat_map(|line| line.iter())
    }

    pub fn front(&self) -> Option<&Arc<Seat>> {
        self.0.as_ref()?.front()
    }

    pub fn push_back(&mut self, seat: Arc<Seat>) {
        self.0.get_or_insert_default().push_back(seat);
    }

    pub fn pop_front(&mut self) -> Option<Arc<Seat>> {
        let seat = self.0.as_mut()?.pop_front();
        self.0.take_if(|line| line.is_empty());
        seat
    }

    /// Takes a thread out, wherever it is.
    pub fn remove(&mut self, seat: &Arc<Seat>) -> bool {
        let Some(line) = &mut self.0 else {
            return false;
        };
        let before = line.len();
        line.retain(|other| !Arc::ptr_eq(other, seat));
        let found = line.len() < before;
        self.0.take_if(|line| line.is_empty());
        found
    }

    /// All of them, who wait no longer.
    pub fn take(&mut self) -> impl Iterator<Item = Arc<Seat>> {
        self.0.take().into_iter().flat_map(|line| *line)
    }
}
