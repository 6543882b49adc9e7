//! What stands in for `crates/rackmem/src/bytes/pages.rs`: the checker's atomics are no plain
//! words.

use crate::sync::AtomicU64;

/// Words of zeros.
pub(crate) struct Pages(Box<[AtomicU64]>);

impl Pages {
    /// So many bytes of them.
    pub fn new(len: usize) -> Self {
        Pages((0..len / 8).map(|_| AtomicU64::new(0)).collect())
    }

    pub fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}
