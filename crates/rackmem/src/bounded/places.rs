//! Places for copies of items, which threads look at without a lock.
//!
//! Whether a copy is kept is [`HeldItem`]'s to say, under a lock a place. Its bytes are beside it,
//! with a version in front that is odd while they change: a reader whose two looks at the version
//! differ has seen nothing.

use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU64, Mutex, fence};
use rackmem_proto::bi::cached::HeldItem;

/// A version of words that are a copy. Each change adds [`STEP`]; the lowest bit is for who
/// changes.
const THERE: u64 = 2;
const CHANGES: u64 = 1;
const STEP: u64 = 4;

/// See the module.
pub(crate) struct Places {
    held: Box<[Mutex<HeldItem<()>>]>,
    /// Version and words of each.
    words: Box<[AtomicU64]>,
    each: usize,
}

impl Places {
    /// For so many items of so many words, none of which is here.
    pub fn new(count: usize, words: usize) -> Self {
        let each = words + 1;
        Places {
            held: (0..count).map(|_| Mutex::default()).collect(),
            words: (0..count * each).map(|_| AtomicU64::new(0)).collect(),
            each,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// The copy, word by word: `word` may be given words of several, and what it has made of them
    /// is of one if this says so.
    #[inline]
    pub fn read(&self, index: usize, mut word: impl FnMut(usize, u64)) -> bool {
        let first = index * self.each;
        let Some([version, words @ ..]) = self.words.get(first..first + self.each) else {
            return false;
        };
        let before = version.load(Acquire);
        if before & (THERE | CHANGES) != THERE {
            return false;
        }
        for (at, from) in words.iter().enumerate() {
            word(at, from.load(Relaxed));
        }
        // No load of a word is after the second look.
        fence(Acquire);
        version.load(Relaxed) == before
    }

    /// Changes what is held of an item, and its words with it. What `change` says; nothing where
    /// there is no such item.
    pub fn change<R>(
        &self,
        index: usize,
        change: impl FnOnce(&mut HeldItem<()>) -> (R, bool),
        word: impl Fn(usize) -> u64,
    ) -> Option<R> {
        let held = self.held.get(index)?;
        let mut held = match held.lock() {
            Ok(held) => held,
            Err(broken) => broken.into_inner(),
        };
        let was = held.get().is_some();
        let (result, new) = change(&mut held);
        let there = held.get().is_some();
        if new || was != there {
            let [version, words @ ..] = &self.words[index * self.each..][..self.each] else {
                return Some(result);
            };
            let before = version.load(Relaxed);
            version.store(before | CHANGES, Relaxed);
            // Who sees one of the words that follow sees that they change.
            fence(Release);
            if there {
                for (at, to) in words.iter().enumerate() {
                    to.store(word(at), Relaxed);
                }
            }
            let there = if there { THERE } else { 0 };
            let after = (before & !(THERE | CHANGES)).wrapping_add(STEP) | there;
            version.store(after, Release);
        }
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(places: &Places, index: usize) -> Option<[u64; 2]> {
        let mut seen = [0; 2];
        places
            .read(index, |at, word| seen[at] = word)
            .then_some(seen)
    }

    fn put(places: &Places, index: usize, number: u64, value: u64) -> Option<bool> {
        let change = |held: &mut HeldItem<()>| {
            let kept = held.put((), number, 0, None);
            (kept, kept)
        };
        places.change(index, change, |at| value + at as u64)
    }

    #[test]
    fn a_copy_is_read_as_long_as_it_is_held() {
        let places = Places::new(3, 2);
        assert_eq!((places.len(), read(&places, 1)), (3, None));
        assert_eq!(put(&places, 1, 4, 10), Some(true));
        assert_eq!(read(&places, 1), Some([10, 11]));
        assert_eq!(put(&places, 1, 3, 20), Some(false));
        assert_eq!(read(&places, 1), Some([10, 11]));
        assert_eq!((read(&places, 0), read(&places, 2)), (None, None));
        let drops = |held: &mut HeldItem<()>| (held.hear(5), false);
        assert_eq!(places.change(1, drops, |_| 0), Some(true));
        assert_eq!(read(&places, 1), None);
        assert_eq!((put(&places, 3, 9, 1), read(&places, 3)), (None, None));
    }

    #[test]
    fn what_changes_while_it_is_read_is_not_read() {
        let places = Places::new(1, 2);
        put(&places, 0, 1, 10);
        let torn = places.read(0, |at, _| {
            if at == 0 {
                put(&places, 0, 2, 20);
            }
        });
        assert!(!torn);
        assert_eq!(read(&places, 0), Some([20, 21]));
    }
}
