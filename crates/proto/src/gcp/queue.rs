//! The wait queue of a lock, which lives at the queue holder (§4.2.2).
//!
//! In the order of the directory's numbers, so every node is served in the order in which the
//! directory heard of it, whichever node holds the queue and however requests and queues arrive.
//! One entry a node: the queue is for nodes, threads of one node take turns inside it.

use super::Access;
use crate::wire::{MAX_NODES, NodeId, Record, Tag};
use alloc::vec::Vec;

/// The waiting nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Waiter {
    /// The directory's number of its request.
    pub version: u64,
    /// Which node.
    pub node: NodeId,
    /// What for.
    pub access: Access,
}

/// Waiting nodes, at most one entry each.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Queue(Vec<Waiter>);

impl Queue {
    /// Takes note of a node. Of two requests of one node the earlier place counts,
    /// and the stronger wish.
    pub fn add(&mut self, mut waiter: Waiter) {
        if waiter.node as usize >= MAX_NODES {
            return;
        }
        if let Some(at) = self.0.iter().position(|w| w.node == waiter.node) {
            let known = self.0.remove(at);
            waiter.version = waiter.version.min(known.version);
            waiter.access = waiter.access.max(known.access);
        }
        let at = self.0.partition_point(|w| w.version < waiter.version);
        self.0.insert(at, waiter);
    }

    /// Drops what was asked up to `version`: another holder has heard of it, or will again.
    pub fn forget(&mut self, version: u64) {
        self.0.retain(|w| w.version > version);
    }

    /// Drops whom the directory cannot have numbered: its number is `current`.
    pub fn believe(&mut self, current: u64) {
        self.0.retain(|w| w.version <= current);
    }

    /// The waiting nodes, the next one first.
    pub fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.0.iter()
    }

    /// Whether there are no waiters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many wait: never more than a rack has nodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Splits off whom the next release serves: the readers at the front and the first writer
    /// (Algorithm 1, lines 8–13).
    pub fn next(&self) -> (Vec<Waiter>, Option<Waiter>, Queue) {
        let readers = self.0.iter().take_while(|w| w.access == Access::Read);
        let readers: Vec<Waiter> = readers.copied().collect();
        let mut rest = self.0[readers.len()..].iter().copied();
        let writer = rest.next();
        (readers, writer, Queue(rest.collect()))
    }

    /// As the body of a packet: who in a record's tag, the number in its word.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.0.iter().map(|w| Record {
            tag: Tag(u64::from(w.node) << 1 | u64::from(w.access == Access::Write)),
            word: w.version,
        })
    }

    /// From a record of such a body.
    pub fn waiter(record: &Record) -> Waiter {
        Waiter {
            version: record.word,
            node: (record.tag.0 >> 1) as NodeId,
            access: match record.tag.0 & 1 {
                0 => Access::Read,
                _ => Access::Write,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(version: u64, node: NodeId, access: Access) -> Waiter {
        Waiter {
            version,
            node,
            access,
        }
    }

    #[test]
    fn the_order_is_the_directorys() {
        let mut queue = Queue::default();
        for (version, node) in [(7, 3), (4, 1), (9, 2), (8, 1), (3, 2)] {
            queue.add(waiter(version, node, Access::Read));
        }
        let order: Vec<_> = queue.iter().map(|w| (w.version, w.node)).collect();
        assert_eq!(order, [(3, 2), (4, 1), (7, 3)]);
    }

    #[test]
    fn readers_go_together_up_to_the_next_writer() {
        let mut queue = Queue::default();
        let (r, w) = (Access::Read, Access::Write);
        for (version, access) in [(1, r), (2, r), (3, w), (4, r)] {
            queue.add(waiter(version, version as NodeId, access));
        }
        let (readers, writer, rest) = queue.next();
        assert_eq!(readers.len(), 2);
        assert_eq!(writer.map(|w| w.node), Some(3));
        assert_eq!(rest.len(), 1);
    }

    #[test]
    fn a_queue_survives_the_wire() {
        let mut queue = Queue::default();
        queue.add(waiter(u64::MAX, 31, Access::Write));
        queue.add(waiter(5, 0, Access::Read));
        let mut back = Queue::default();
        for record in queue.records() {
            back.add(Queue::waiter(&record));
        }
        assert_eq!(back, queue);
    }
}
