//! How hot blocks are: counts of one period, in a table that never grows (§5.2.2).

use crate::wire::{Record, Tag};
use alloc::vec::Vec;

/// Counts by block. A table of fixed size: two blocks that fall on one row wear each other down,
/// and the hotter one stays, so what is hot by far is always found.
#[derive(Clone, Debug, Hash)]
pub struct Heat {
    rows: Vec<Record>,
    capacity: usize,
}

impl Heat {
    /// Room for about so many blocks; memory is taken when the first is counted.
    pub fn new(capacity: u32) -> Self {
        Heat {
            rows: Vec::new(),
            capacity: (capacity.max(1) as usize).next_power_of_two(),
        }
    }

    /// Room for about so many blocks from here on; what was counted is forgotten if that is not so
    /// already.
    pub fn make_room(&mut self, capacity: u32) {
        let wanted = Heat::new(capacity);
        if wanted.capacity != self.capacity {
            *self = wanted;
        }
    }

    /// Counts `n` more for a block.
    #[inline]
    pub fn add(&mut self, tag: Tag, n: u32) {
        if self.rows.is_empty() {
            self.rows = alloc::vec![Record::default(); self.capacity];
        }
        let at = crate::switch::set_of(tag, self.capacity);
        let row = &mut self.rows[at];
        let n = u64::from(n);
        if row.tag == tag || row.word == 0 {
            row.tag = tag;
            row.word += n;
        } else if row.word > n {
            row.word -= n;
        } else {
            *row = Record {
                tag,
                word: n - row.word,
            };
        }
    }

    /// Ends the period: the hottest `top` blocks of at least `least`, hottest first.
    /// Counting starts over.
    pub fn end_period(&mut self, top: usize, least: u32) -> Vec<Record> {
        let least = u64::from(least.max(1));
        let hot = self.rows.iter().filter(|row| row.word >= least);
        let mut hot: Vec<Record> = hot.copied().collect();
        self.rows.iter_mut().for_each(|row| row.word = 0);
        // By tag among equals, so that the outcome does not depend on where the rows lie.
        hot.sort_unstable_by_key(|row| (core::cmp::Reverse(row.word), row.tag));
        hot.truncate(top);
        hot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_come_first_and_the_cold_stay() {
        let mut heat = Heat::new(64);
        for (tag, n) in [(0x1000, 3), (0x2000, 9), (0x3000, 1), (0x1000, 2)] {
            heat.add(Tag(tag), n);
        }
        let hot = heat.end_period(10, 2);
        let pairs: Vec<_> = hot.iter().map(|row| (row.tag.0, row.word)).collect();
        assert_eq!(pairs, [(0x2000, 9), (0x1000, 5)]);
        assert!(heat.end_period(10, 1).is_empty());
    }

    #[test]
    fn a_full_table_keeps_what_is_hot() {
        let mut heat = Heat::new(1);
        for round in 0..100 {
            heat.add(Tag(0x1000), 3);
            heat.add(Tag(0x1000 * (round + 2)), 1);
        }
        let hot = heat.end_period(1, 1);
        assert_eq!(hot[0].tag, Tag(0x1000));
    }
}
