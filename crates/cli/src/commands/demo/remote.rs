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
    fn a_lock_that_comes_from_another_node_counts() {
        let rack = Rack::local(2).unwrap();
        let stores = [0, 1].map(|node| store::open(rack.node(node), 64).unwrap());
        let mut value = Vec::new();
        let blocks = || rack.metrics().events().total();
        // Afterwards both nodes have all blocks that the store uses, and only the bucket travels.
        stores[0].set(b"key", b"value").unwrap();
        assert!(stores[1].get(b"key", &mut value).unwrap());
        stores[0].set(b"key", b"other").unwrap();
        let before = (transactions(&rack), blocks());
        assert!(stores[1].get(b"key", &mut value).unwrap());
        assert_eq!(transactions(&rack), before.0 + 1);
        assert_eq!(
            blocks(),
            before.1,
            "by blocks alone it would have been local"
        );
        assert!(stores[1].get(b"key", &mut value).unwrap());
        assert_eq!(transactions(&rack), before.0 + 1, "it stays");
    }
}
