//! For how many locks a node has made room.

use crate::error::LockError;
use rackmem_fabric::Whole;
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Bytes of memory from one lock of an array to the next.
pub(crate) const STRIDE: usize = 16;

/// The arrays for whose locks there is room at a node: where each begins,
/// and how many locks it has.
#[derive(Default)]
pub(crate) struct Arrays(Mutex<BTreeMap<u64, usize>>);

impl Arrays {
    fn map(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.0.lock().whole()
    }

    /// Makes room for an array, once, with `claim`.
    pub fn add(
        &self,
        first: Tag,
        count: usize,
        claim: impl FnOnce(usize) -> Result<(), LockError>,
    ) -> Result<(), LockError> {
        let mut map = self.map();
        let have = map.get(&first.0).copied().unwrap_or(0);
        if have < count {
            claim(count - have)?;
            map.insert(first.0, count);
        }
        Ok(())
    }

    /// Whether a lock is of one of them.
    pub fn has(&self, tag: Tag) -> bool {
        let map = self.map();
        let before = map.range(..=tag.0).next_back();
        before.is_some_and(|(first, count)| tag.0 - first < (count * STRIDE) as u64)
    }

    /// Forgets those; says how many locks they had.
    pub fn forget(&self, gone: impl Fn(Tag) -> bool) -> usize {
        let (mut map, mut locks) = (self.map(), 0);
        map.retain(|first, count| {
            let goes = gone(Tag(*first));
            locks += usize::from(goes) * *count;
            !goes
        });
        locks
    }
}
