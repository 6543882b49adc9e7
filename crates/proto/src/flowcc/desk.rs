//! Words that a node shares with the kernel of its host, where that answers for its cache agent
//! ([`super::in_kernel`]): where each lies, in words of eight bytes. What packets have in the
//! network's order (addresses, ports, MACs) lies there as its bytes came; all else is the
//! processor's.

use crate::wire::{MAX_NODES, MAX_REQUESTERS, RequesterId, Seq};

/// The epoch in which the kernel answers; zero: in none.
pub const EPOCH: usize = 0;
/// Runs of the program that are between their look at the epoch and their end.
pub const INSIDE: usize = 1;
/// The node.
pub const NODE: usize = 2;
/// The address of its agent: four bytes, and two of its port.
pub const AGENT: usize = 3;
/// Sets of the cache, less one.
pub const SET_MASK: usize = 4;
/// Bytes of a block, where the kernel has the cache's blocks; zero: it has none.
pub const BLOCK: usize = 5;
/// Bytes of a block that a packet carries.
pub const SEGMENT: usize = 6;
/// The incarnation of each node in the epoch.
pub const INCARNATIONS: usize = 8;
/// The address of each node: four bytes.
pub const ADDRESSES: usize = INCARNATIONS + MAX_NODES;
/// The MAC of each node, six bytes; zero: not heard of yet.
pub const MACS: usize = ADDRESSES + MAX_NODES;
/// The port of each node's agent: two bytes.
pub const PORTS: usize = MACS + MAX_NODES;
/// Of orders to invalidate copies: what was answered, and what passed, by the reason
/// ([`super::in_kernel::Passed`]).
pub const COUNTS: usize = PORTS + MAX_NODES;
/// How many counts there are.
pub const COUNTED: usize = 8;
/// The same of readers' misses, and what passed because there was no memory for an answer.
pub const GIVEN: usize = COUNTS + COUNTED;
/// Of each requester, and each parity, the largest number that the agent has executed.
pub const ROWS: usize = COUNTS + 3 * COUNTED;
/// All words.
pub const WORDS: usize = ROWS + 2 * RequesterId::COUNT;

/// Bytes of a slab of the cache's blocks, as the kernel has them: whole blocks, entry by entry.
pub const CACHE_SLAB: u64 = 64 << 10;

/// Where the number of a request's row is.
pub fn row(requester: RequesterId, seq: Seq) -> usize {
    let (node, slot) = (usize::from(requester.node), usize::from(requester.slot));
    let at = node % MAX_NODES * MAX_REQUESTERS + slot % MAX_REQUESTERS;
    ROWS + 2 * at + seq.parity()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_requester_has_two_rows_of_its_own() {
        let all = (0..MAX_NODES as u16).flat_map(|node| {
            let slots = 0..MAX_REQUESTERS as u16;
            slots.flat_map(move |slot| {
                let who = RequesterId { node, slot };
                [row(who, Seq(4)), row(who, Seq(5))]
            })
        });
        assert!(all.eq(ROWS..WORDS));
    }
}
