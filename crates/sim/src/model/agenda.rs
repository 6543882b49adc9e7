//! What happens when: the queue of a discrete-event simulation.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occurrence {
    /// A packet's first bit reaches the switch.
    AtSwitch(u32),
    /// A packet is whole at its receiver.
    Arrival(u32),
    /// One of a node's agents has done the work on what it took last.
    Served {
        /// Of which node.
        node: u16,
        /// Which agent.
        server: u16,
    },
    /// An application thread has done what it was busy with.
    Step(u16),
    /// A period of the migration has passed.
    Period,
}

struct Entry {
    at: u64,
    order: u64,
    what: Occurrence,
}

impl Ord for Entry {
    /// The earliest is the greatest; of two at one time, the one that was entered first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

/// The queue, and the time. Its length is bounded by the packets in flight and one entry a thread
/// and agent.
#[derive(Default)]
pub struct Agenda {
    entries: BinaryHeap<Entry>,
    now: u64,
    order: u64,
}

impl Agenda {
    /// Virtual nanoseconds since the beginning.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Enters what happens at a time, which is not before now.
    pub fn enter(&mut self, at: u64, what: Occurrence) {
        self.order += 1;
        let (at, order) = (at.max(self.now), self.order);
        self.entries.push(Entry { at, order, what });
    }

    /// Goes on to what happens next.
    pub fn next(&mut self) -> Option<Occurrence> {
        let Entry { at, what, .. } = self.entries.pop()?;
        self.now = at;
        Some(what)
    }

    /// How much has been entered so far.
    pub fn entered(&self) -> u64 {
        self.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_forward_and_ties_keep_their_order() {
        let mut agenda = Agenda::default();
        for (at, thread) in [(30, 0), (10, 1), (30, 2), (20, 3)] {
            agenda.enter(at, Occurrence::Step(thread));
        }
        let mut seen = Vec::new();
        while let Some(Occurrence::Step(thread)) = agenda.next() {
            seen.push((agenda.now(), thread));
        }
        assert_eq!(seen, [(10, 1), (20, 3), (30, 0), (30, 2)]);
        agenda.enter(5, Occurrence::AtSwitch(0));
        agenda.next();
        assert_eq!(agenda.now(), 30);
    }
}
