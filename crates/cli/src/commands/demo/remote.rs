//! Counting what an operation had to wait for beyond its own node.

use rackmem::{Node, Rack};

/// Coherence transactions that threads of these nodes have waited for so far: block misses,
/// upgrades, evictions and bulk reads, and lock acquisitions that the node could not grant alone.
/// A bucket of the store travels with its lock, so counting blocks alone would call nearly every
/// access to the store local.
pub fn transactions(rack: &Rack) -> u64 {
    let locks = |node: &Node| node.lock_metrics().granted;
    let locks: u64 = rack.nodes().iter().map(locks).sum();
    rack.metrics().events().total() + locks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store;

    #[test]
    fn a_key_that_was_written_elsewhere_is_remote_once() {
        let rack = Rack::local(2).unwrap();
        let stores = [0, 1].map(|node| store::open(rack.node(node), 64).unwrap());
        stores[0].set(b"key", b"value").unwrap();
        let before = transactions(&rack);
        let mut value = Vec::new();
        assert!(stores[1].get(b"key", &mut value).unwrap());
        let first = transactions(&rack);
        assert!(
            first > before,
            "the bucket came from node 0, and was not counted"
        );
        assert!(stores[1].get(b"key", &mut value).unwrap());
        assert_eq!(transactions(&rack), first, "the bucket stays at node 1");
    }
}
