//! A state's fingerprint, which does not tell versions apart that only differ in how far they have
//! counted.
//!
//! Roles compare versions, and look one ahead; so of all numbers in a state only their order
//! matters, and which follow each other directly. Without this, a node that asks again and again
//! makes a new state each time.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The first epoch of a rack here. Versions of the first two lie in 5 and 6 times 2^40,
/// tokens in 10 and 12 times: so a number says what it is.
pub const FIRST_EPOCH: u32 = 5;

/// Numbers from here on are versions or tokens.
const VERSIONS: u64 = (FIRST_EPOCH as u64) << 40;

/// Takes what a state is made of.
#[derive(Default)]
pub struct Canon {
    words: Vec<u64>,
    /// Where in `words` there are versions.
    versions: Vec<u32>,
}

impl Canon {
    /// 128 bits that stand for the state.
    pub fn print(mut self) -> u128 {
        let numbers = self.versions.iter().map(|at| (self.words[*at as usize], 0));
        let mut ranks: BTreeMap<u64, u64> = numbers.collect();
        let (mut last, mut rank) = (0, 0);
        for (number, place) in &mut ranks {
            rank += (number - last).min(2);
            (last, *place) = (*number, rank);
        }
        for at in &self.versions {
            let word = &mut self.words[*at as usize];
            *word = ranks[word] << 1 | 1 << 63;
        }
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            self.words.hash(&mut hasher);
            hasher.finish()
        };
        u128::from(half(0)) << 64 | u128::from(half(1))
    }
}

impl Hasher for Canon {
    fn write(&mut self, bytes: &[u8]) {
        self.words.extend(bytes.iter().map(|byte| u64::from(*byte)));
    }

    fn write_u8(&mut self, value: u8) {
        self.words.push(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.words.push(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.words.push(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        if value >= VERSIONS {
            self.versions.push(self.words.len() as u32);
        }
        self.words.push(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.words.push(value as u64);
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
