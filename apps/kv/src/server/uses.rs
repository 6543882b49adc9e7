//! In which order a node's clients have used keys, for the policies that evict what was not used
//! for long.
//!
//! A read must not write a record, so the order is this node's own: a table of numbers, by the hash
//! of the key, of the last use of any key of that hash. A key that only clients of other nodes use
//! is one that was never used here; keys that share a place count as used when one of them is.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::hash::hash;

/// Places, a power of two: 1 MiB of numbers, from the first use under such a policy on.
const PLACES: usize = 1 << 17;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    table: OnceLock<Box<[AtomicU64]>>,
    /// Uses so far.
    count: AtomicU64,
}

impl Uses {
    /// A key of a database is used.
    pub fn note(&self, db: u8, key: &[u8]) {
        let table = self
            .table
            .get_or_init(|| (0..PLACES).map(|_| AtomicU64::new(0)).collect());
        let now = self.count.fetch_add(1, Relaxed) + 1;
        table[place(db, key)].store(now, Relaxed);
    }

    /// When it was used last: a higher number is later, 0 never.
    pub fn last(&self, db: u8, key: &[u8]) -> u64 {
        let table = self.table.get();
        table.map_or(0, |table| table[place(db, key)].load(Relaxed))
    }
}

fn place(db: u8, key: &[u8]) -> usize {
    hash(u64::from(db), key) as usize & (PLACES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_use_counts() {
        let uses = Uses::default();
        assert_eq!(uses.last(0, b"a"), 0);
        uses.note(0, b"a");
        uses.note(0, b"b");
        uses.note(1, b"a");
        assert!(uses.last(0, b"a") < uses.last(0, b"b"));
        assert!(uses.last(0, b"b") < uses.last(1, b"a"));
        uses.note(0, b"a");
        assert!(uses.last(0, b"b") < uses.last(0, b"a"));
        assert_eq!(uses.last(0, b"never"), 0);
    }
}
