//! Pages that a program has pinned: who may not be taken for now, and until when.

use rackmem_proto::pages::Right;
use std::collections::HashMap;

/// How long a page is kept from other nodes at most, from the first pin on, in nanoseconds.
pub(crate) const PIN_MOST: u64 = 1_000_000_000;

/// Pages of a mapping that are pinned at a time, at most. Of a small cache half may be.
pub(crate) const PINS: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pin {
    /// Pins of those who load only, and of those who store.
    loads: u32,
    stores: u32,
    until: u64,
}

impl Pin {
    fn count(&mut self, stores: bool) -> &mut u32 {
        match stores {
            true => &mut self.stores,
            false => &mut self.loads,
        }
    }

    fn keeps(&self) -> Right {
        match (self.loads, self.stores) {
            (0, 0) => Right::Hidden,
            (_, 0) => Right::Load,
            _ => Right::Store,
        }
    }
}

/// Of a mapping, by page.
#[derive(Default)]
pub(crate) struct Pins(HashMap<usize, Pin>);

impl Pins {
    /// One more pin of a page. Pins that come later last as long as the first one: others have
    /// waited since then. `None`: there are as many pages as there can be.
    pub fn add(&mut self, page: usize, stores: bool, now: u64, most: usize) -> Option<Right> {
        if !self.0.contains_key(&page) && self.0.len() >= most {
            return None;
        }
        let pin = self.0.entry(page).or_insert(Pin {
            loads: 0,
            stores: 0,
            until: now + PIN_MOST,
        });
        *pin.count(stores) += 1;
        Some(pin.keeps())
    }

    /// One less; which right is to be kept from then on. One that is not there has ended.
    pub fn remove(&mut self, page: usize, stores: bool) -> Right {
        let Some(pin) = self.0.get_mut(&page) else {
            return Right::Hidden;
        };
        let count = pin.count(stores);
        *count = count.saturating_sub(1);
        let keeps = pin.keeps();
        if keeps == Right::Hidden {
            self.0.remove(&page);
        }
        keeps
    }

    /// Whether a page is kept still. One whose time is over is pinned no more.
    pub fn is_kept(&mut self, page: usize, now: u64) -> bool {
        let kept = self.0.get(&page).is_some_and(|pin| now < pin.until);
        if !kept {
            self.0.remove(&page);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_pin_counts_and_the_first_says_until_when() {
        let mut pins = Pins::default();
        assert_eq!(pins.add(7, false, 100, 1), Some(Right::Load));
        assert_eq!(pins.add(8, false, 100, 1), None);
        assert_eq!(pins.add(7, true, 500, 1), Some(Right::Store));
        assert_eq!(pins.remove(7, true), Right::Load);
        assert!(pins.is_kept(7, 99 + PIN_MOST));
        assert!(!pins.is_kept(7, 100 + PIN_MOST));
        assert_eq!(pins.remove(7, false), Right::Hidden);
        assert_eq!(pins.add(8, true, 0, 1), Some(Right::Store));
        assert_eq!(pins.remove(8, true), Right::Hidden);
        assert_eq!(pins.remove(8, true), Right::Hidden);
    }
}
