//! Where a search has been.
//!
//! Of two configurations that differ only in which of the uncertain operations they have used up,
//! the one that has used fewer can go on to everything that the other can: so once it was visited,
//! the other need not be. Without this, every subset of the operations of unknown outcome would be
//! a way of its own.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

type Build = BuildHasherDefault<Mixed>;

/// Uncertain operations that are compared as sets; of those beyond, only the same ones are equal.
pub(super) const COMPARED: usize = 128;

/// Sets kept of one configuration: beyond these, looking through them costs more than it saves.
const MOST_SETS: usize = 64;

/// Configurations visited.
#[derive(Default)]
pub(super) struct Seen {
    /// Those without uncertain operations in them.
    plain: HashSet<u128, Build>,
    /// The first set of uncertain operations seen with a configuration.
    first: HashMap<u128, u128, Build>,
    /// Further sets, none of which contains another.
    further: HashMap<u128, Vec<u128>, Build>,
    visits: usize,
}

impl Seen {
    /// How many have been visited.
    pub fn len(&self) -> usize {
        self.visits
    }

    /// Visits a configuration, known by a random number, with these uncertain operations used up.
    /// False if nothing new can come of it.
    pub fn visit(&mut self, configuration: u128, used: u128) -> bool {
        if self.plain.contains(&configuration) {
            return false;
        }
        self.visits += 1;
        if used == 0 {
            self.plain.insert(configuration);
            return true;
        }
        let contains = |smaller: u128| smaller & used == smaller;
        match self.first.get(&configuration) {
            None => {
                self.first.insert(configuration, used);
                return true;
            }
            Some(&first) if contains(first) => {}
            Some(_) => {
                let sets = self.further.entry(configuration).or_default();
                if !sets.iter().any(|&set| contains(set)) {
                    sets.retain(|&set| set & used != used);
                    if sets.len() < MOST_SETS {
                        sets.push(used);
                    }
                    return true;
                }
            }
        }
        self.visits -= 1;
        false
    }
}

/// Hashes what is random already: takes half of it.
#[derive(Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, number: u128) {
        self.0 = number as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_used_more_need_not_be_visited() {
        let mut seen = Seen::default();
        assert!(seen.visit(7, 0b0110));
        assert!(!seen.visit(7, 0b0110) && !seen.visit(7, 0b1110));
        assert!(seen.visit(7, 0b1001), "neither contains the other");
        assert!(!seen.visit(7, 0b1101) && !seen.visit(7, 0b0111));
        assert!(seen.visit(7, 0b0010), "fewer than before");
        assert!(seen.visit(8, 0b0110), "another configuration");
        assert!(seen.visit(7, 0));
        assert!(!seen.visit(7, 0) && !seen.visit(7, 0b0001));
        assert_eq!(seen.len(), 5);
    }
}
