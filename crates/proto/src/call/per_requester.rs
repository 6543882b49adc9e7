//! A table with a row for each requester of the rack, as long as the requesters that have shown up
//! make it.
//!
//! Racks are mostly smaller than the wire allows, and explorers copy roles for every state they
//! visit. At most
//! [`RequesterId::COUNT`] rows, whatever packets say.

use crate::wire::{MAX_NODES, MAX_REQUESTERS, NodeId, RequesterId};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// Rows by node, then by slot; one that is not there yet is the default.
#[derive(Clone, Debug, Default)]
pub struct PerRequester<T> {
    nodes: Vec<Vec<T>>,
}

impl<T: Clone + Default> PerRequester<T> {
    /// The row of a requester.
    #[inline]
    pub fn row(&mut self, requester: RequesterId) -> &mut T {
        let (node, slot) = (
            requester.node as usize % MAX_NODES,
            requester.slot as usize % MAX_REQUESTERS,
        );
        if self.nodes.get(node).is_none_or(|rows| rows.len() <= slot) {
            self.lengthen(node, slot);
        }
        &mut self.nodes[node][slot]
    }

    /// The row of a requester, if it is there.
    pub fn get(&self, requester: RequesterId) -> Option<&T> {
        let (node, slot) = (
            requester.node as usize % MAX_NODES,
            requester.slot as usize % MAX_REQUESTERS,
        );
        self.nodes.get(node)?.get(slot)
    }

    /// The rows of a node's requesters, as far as they are there.
    pub fn of_node(&self, node: NodeId) -> impl Iterator<Item = (RequesterId, &T)> {
        let rows = self.nodes.get(usize::from(node)).into_iter().flatten();
        rows.enumerate().map(move |(slot, row)| {
            let slot = slot as u16;
            (RequesterId { node, slot }, row)
        })
    }

    #[cold]
    fn lengthen(&mut self, node: usize, slot: usize) {
        if self.nodes.len() <= node {
            self.nodes.resize_with(node + 1, Vec::new);
        }
        self.nodes[node].resize(slot + 1, T::default());
    }
}

impl<T: Default + PartialEq + Hash> PerRequester<T> {
    /// The rows that say something; those that have never been written are like those that are not
    /// there.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        let unwritten = T::default();
        for (node, rows) in self.nodes.iter().enumerate() {
            for (slot, row) in rows.iter().enumerate().filter(|row| *row.1 != unwritten) {
                into.write_usize(node * MAX_REQUESTERS + slot + 1);
                row.hash(into);
            }
        }
        into.write_usize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: RequesterId = RequesterId { node: 0, slot: 1 };
    const FAR: RequesterId = RequesterId {
        node: MAX_NODES as u16 - 1,
        slot: MAX_REQUESTERS as u16 - 1,
    };

    #[test]
    fn a_row_is_there_when_it_is_asked_for_and_stays() {
        let mut table = PerRequester::<u32>::default();
        *table.row(FAR) = 7;
        *table.row(NEAR) = 5;
        assert_eq!((*table.row(NEAR), *table.row(FAR)), (5, 7));
        assert_eq!(*table.row(RequesterId { node: 9, slot: 9 }), 0);
    }

    #[test]
    fn a_number_beyond_the_rack_makes_no_table_beyond_it() {
        let mut table = PerRequester::<u8>::default();
        let beyond = RequesterId {
            node: u16::MAX,
            slot: u16::MAX,
        };
        *table.row(beyond) = 1;
        assert_eq!(table.nodes.len(), MAX_NODES);
        assert!(table.nodes.iter().all(|rows| rows.len() <= MAX_REQUESTERS));
    }
}
