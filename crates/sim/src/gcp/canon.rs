//! A state's fingerprint, which does not tell versions apart that only differ in how far they have
//! counted.
//!
//! Roles compare versions, and look one ahead; so of all numbers in a state only their order
//! matters, and which follow each other directly. Without this, a node that asks again and again
//! makes a new state each time.

use crate::print::Print;
use std::cell::Cell;
use std::hash::Hasher;

/// The first epoch of a rack here. Versions of the first two lie in 5 and 6 times 2^40,
/// tokens in 10 and 12 times: so a number says what it is.
pub const FIRST_EPOCH: u32 = 5;

/// Numbers from here on are versions or tokens.
const VERSIONS: u64 = (FIRST_EPOCH as u64) << 40;

/// What a state is made of.
#[derive(Default)]
struct Room {
    words: Vec<u64>,
    /// Where in `words` there are versions.
    versions: Vec<u32>,
    /// Each version that there is, and its rank.
    ranks: Vec<(u64, u64)>,
}

/// Takes what a state is made of.
pub struct Canon(Room);

thread_local! {
    /// Memory of the last one: there is one a move.
    static ROOM: Cell<Room> = const { Cell::new(Room {
        words: Vec::new(),
        versions: Vec::new(),
        ranks: Vec::new(),
    }) };
}

impl Default for Canon {
    fn default() -> Self {
        Canon(ROOM.take())
    }
}

impl Canon {
    /// 128 bits that stand for the state.
    pub fn print(mut self) -> u128 {
        let Room {
            words,
            versions,
            ranks,
        } = &mut self.0;
        ranks.extend(versions.iter().map(|at| (words[*at as usize], 0)));
        ranks.sort_unstable();
        ranks.dedup();
        let (mut last, mut above) = (0, 0);
        for (number, rank) in ranks.iter_mut() {
            above += (*number - last).min(2);
            (last, *rank) = (*number, above);
        }
        for at in versions.iter() {
            let word = &mut words[*at as usize];
            let nth = ranks.partition_point(|(number, _)| number < word);
            *word = ranks[nth].1 << 1 | 1 << 63;
        }
        let mut print = Print::default();
        print.write_words(words);
        words.clear();
        versions.clear();
        ranks.clear();
        ROOM.set(self.0);
        print.whole()
    }
}

impl Hasher for Canon {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let rest = rest.iter().map(|byte| u64::from(*byte));
        self.0.words.extend(words.chain(rest));
    }

    fn write_u8(&mut self, value: u8) {
        self.0.words.push(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.0.words.push(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.0.words.push(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        if value >= VERSIONS {
            self.0.versions.push(self.0.words.len() as u32);
        }
        self.0.words.push(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.0.words.push(value as u64);
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hash;

    fn print(numbers: &[u64]) -> u128 {
        let mut canon = Canon::default();
        numbers.iter().for_each(|n| (VERSIONS + n).hash(&mut canon));
        canon.print()
    }

    #[test]
    fn only_order_and_succession_count() {
        assert_eq!(print(&[3, 4, 9]), print(&[13, 14, 29]));
        assert_ne!(print(&[3, 4, 9]), print(&[3, 5, 9]));
        assert_ne!(print(&[3, 4, 9]), print(&[4, 3, 9]));
        assert_ne!(print(&[3, 3]), print(&[3, 4]));
    }
}
