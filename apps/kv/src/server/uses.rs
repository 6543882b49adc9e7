//! When and how often a node's clients have used keys, for the policies that evict what was not
//! used for long (LRU), or seldom (LFU).
//!
//! A read must not write a record, so this is the node's own: a table, by the hash of the key, of
//! the last use of any key of that hash and of a counter of its uses. A key that only clients of
//! other nodes use is one that was never used here; keys that share a place count as used when one
//! of them is.
//!
//! The counter is one byte. The higher it is, the rarer a use adds to it, so that 255 stands for
//! millions; it falls with the time in which the key is not used.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::hash::hash;

/// Places, a power of two: 1 MiB of numbers, from the first use under such a policy on.
const PLACES: usize = 1 << 17;
/// Where a counter begins, so that a new key is not the first to go.
const FIRST: u8 = 5;
const MINUTE: u64 = 60_000;

/// How a counter goes up and down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    /// The higher, the more uses 255 stands for.
    pub factor: u64,
    /// Minutes without use for which one is taken off; 0: none is.
    pub decay: u64,
}

/// What is known of a key's uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    /// When it was used last, in ms since 1970; 0: never, at this node.
    pub last: u64,
    /// How often, as a counter that grows ever more slowly, at that time.
    pub count: u8,
}

impl Use {
    /// The counter by now.
    pub fn count_at(self, now: u64, counting: Counting) -> u8 {
        let minutes = (now / MINUTE).saturating_sub(self.last / MINUTE);
        let lost = minutes.checked_div(counting.decay).unwrap_or(0);
        self.count
            .saturating_sub(u8::try_from(lost).unwrap_or(u8::MAX))
    }

    /// After one more use at this time. `chance`: a random number from 0 to 1.
    fn after(self, now: u64, counting: Counting, chance: f64) -> Self {
        if self.last == 0 {
            let count = FIRST;
            return Self { last: now, count };
        }
        let count = self.count_at(now, counting);
        let above = u64::from(count.saturating_sub(FIRST));
        let odds = above.saturating_mul(counting.factor).saturating_add(1);
        let more = chance * (odds as f64) < 1.0;
        Self {
            last: now,
            count: count.saturating_add(u8::from(more)),
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Of each place the last use above its counter, which has a byte.
    table: OnceLock<Box<[AtomicU64]>>,
}

impl Uses {
    /// A key of a database is used at this time.
    pub fn note(&self, db: u8, key: &[u8], now: u64, counting: Counting) {
        let used = self.of(db, key).after(now, counting, fastrand::f64());
        self.set(db, key, used);
    }

    /// A key was used as is said here.
    pub fn set(&self, db: u8, key: &[u8], used: Use) {
        let table = self
            .table
            .get_or_init(|| (0..PLACES).map(|_| AtomicU64::new(0)).collect());
        // Of two threads one may not be counted.
        table[place(db, key)].store(used.last << 8 | u64::from(used.count), Relaxed);
    }

    /// Its uses so far.
    pub fn of(&self, db: u8, key: &[u8]) -> Use {
        let table = self.table.get();
        let word = table.map_or(0, |table| table[place(db, key)].load(Relaxed));
        Use {
            last: word >> 8,
            count: word as u8,
        }
    }
}

fn place(db: u8, key: &[u8]) -> usize {
    hash(u64::from(db), key) as usize & (PLACES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTING: Counting = Counting {
        factor: 10,
        decay: 1,
    };

    #[test]
    fn the_last_use_counts() {
        let uses = Uses::default();
        assert_eq!(uses.of(0, b"a"), Use::default());
        for (db, key, now) in [(0, b"a", 1), (0, b"b", 2), (1, b"a", 3)] {
            uses.note(db, key, now, COUNTING);
            assert_eq!(uses.of(db, key).last, now);
        }
        uses.note(0, b"a", 4, COUNTING);
        assert!(uses.of(0, b"b").last < uses.of(0, b"a").last);
        assert_eq!(uses.of(0, b"never"), Use::default());
    }

    #[test]
    fn a_counter_grows_ever_more_slowly_and_falls_without_use() {
        let now = 100 * MINUTE;
        let first = Use::default().after(now, COUNTING, 0.99);
        assert_eq!(first.count, FIRST);
        let second = first.after(now, COUNTING, 0.99);
        assert_eq!(second.count, FIRST + 1);
        // One in eleven adds from here on.
        assert_eq!(second.after(now, COUNTING, 0.1).count, FIRST + 1);
        assert_eq!(second.after(now, COUNTING, 0.09).count, FIRST + 2);
        let often = (0..10_000).fold(first, |used, i| {
            used.after(now, COUNTING, f64::from(i % 100) / 100.0)
        });
        assert!((20..=255).contains(&often.count), "{often:?}");
        assert_eq!(second.count_at(now + 3 * MINUTE, COUNTING), 3);
        assert_eq!(second.count_at(now + 300 * MINUTE, COUNTING), 0);
        let never = Counting {
            decay: 0,
            ..COUNTING
        };
        assert_eq!(second.count_at(now + 300 * MINUTE, never), 6);
    }
}
