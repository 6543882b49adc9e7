//! What stands in for `crates/rackmem/src/bytes/table.rs`: no kernel shares the checker's atomics.

use std::ops::Deref;

/// Rows.
pub(crate) struct Table<T>(Box<[T]>);

impl<T> Table<T> {
    /// These.
    pub fn new(rows: impl Iterator<Item = T>) -> Self {
        Table(rows.collect())
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}
