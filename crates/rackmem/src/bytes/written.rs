//! Which parts of its blocks a program stores to, as far as samples tell: plain stores ask nobody.
//! Now and then the bytes of a page that comes for stores are kept, and compared with what there is
//! when another node takes it.

use super::pages::Pages;
use rackmem_fabric::Whole;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// Parts of a block that are told apart: a bit each.
const PARTS: usize = 64;
/// Pages whose bytes are kept at a time, of a mapping.
const KEPT: usize = 16;
/// One of so many pages that come is kept: no number of pages that come in turn is a part of it, so
/// that none is passed over for ever.
const EVERY: usize = 17;

/// See the module.
pub(super) struct Written {
    /// A word for each block.
    parts: Pages,
    came: AtomicUsize,
    kept: Mutex<Vec<(usize, Box<[u64]>)>>,
}

impl Written {
    pub fn new(blocks: usize) -> Written {
        Written {
            parts: Pages::new(blocks * 8),
            came: AtomicUsize::new(0),
            kept: Mutex::default(),
        }
    }

    /// The program may store to a page from now on, and nobody does yet. Whether it is to be told
    /// when another node takes it.
    pub fn opens(&self, nth: usize, block: &[AtomicU64]) -> bool {
        if !self.came.fetch_add(1, Relaxed).is_multiple_of(EVERY) {
            return false;
        }
        let bytes = block.iter().map(|word| word.load(Relaxed)).collect();
        let mut kept = self.kept.lock().whole();
        kept.retain(|page| page.0 != nth);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((nth, bytes));
        true
    }

    /// Nobody stores any more.
    #[cold]
    pub fn stopped(&self, nth: usize, block: &[AtomicU64]) {
        let mut kept = self.kept.lock().whole();
        let Some(at) = kept.iter().position(|page| page.0 == nth) else {
            // Others have taken its place.
            return;
        };
        let (_, before) = kept.remove(at);
        drop(kept);
        let parts = differing(&before, block);
        self.parts.words()[nth].fetch_or(parts, Relaxed);
    }

    /// Parts that have been stored to, as bits.
    pub fn parts(&self, nth: usize) -> u64 {
        self.parts.words()[nth].load(Relaxed)
    }
}

fn differing(before: &[u64], now: &[AtomicU64]) -> u64 {
    let words = before.len().div_ceil(PARTS).max(1);
    let parts = before.chunks(words).zip(now.chunks(words));
    let differs = |(before, now): (&[u64], &[AtomicU64])| {
        let mut pairs = before.iter().zip(now);
        pairs.any(|(before, now)| *before != now.load(Relaxed))
    };
    parts
        .enumerate()
        .filter(|(_, part)| differs(*part))
        .fold(0, |bits, (at, _)| bits | 1 << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Vec<AtomicU64> {
        (0..512).map(AtomicU64::new).collect()
    }

    #[test]
    fn a_part_is_a_sixty_fourth() {
        let (written, block) = (Written::new(3), block());
        assert!(written.opens(1, &block));
        for word in [0, 7, 8, 511] {
            block[word].fetch_add(1, Relaxed);
        }
        written.stopped(1, &block);
        assert_eq!(written.parts(1), 0b11 | 1 << 63);
        assert_eq!([written.parts(0), written.parts(2)], [0; 2]);
    }

    #[test]
    fn none_of_pages_in_turn_is_passed_over() {
        for pages in [1, 2, 4, 8, 16] {
            let (written, block) = (Written::new(pages), block());
            for at in 0..EVERY * pages {
                let nth = at % pages;
                let is_kept = written.opens(nth, &block);
                block[8 * nth].fetch_add(1, Relaxed);
                if is_kept {
                    written.stopped(nth, &block);
                }
            }
            let all = (0..pages).all(|nth| written.parts(nth) == 1 << nth);
            assert!(all, "{pages}");
        }
    }

    #[test]
    fn as_many_are_kept_as_it_says() {
        let (written, block) = (Written::new(100), block());
        for at in 0..100 * EVERY {
            written.opens(at / EVERY, &block);
        }
        assert_eq!(written.kept.lock().whole().len(), KEPT);
        block[0].fetch_add(1, Relaxed);
        (0..100).for_each(|nth| written.stopped(nth, &block));
        let told = (0..100).filter(|nth| written.parts(*nth) == 1);
        assert_eq!(told.count(), KEPT);
    }
}
