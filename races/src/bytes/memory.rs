//! What stands in for `crates/rackmem/src/bytes/memory.rs`: the checker's atomics are no plain words.

use crate::sync::AtomicU64;

/// Words of zeros.
pub(crate) fn zeroed_words(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}
