//! The one memory that does one operation at a time, which the rack must be indistinguishable from.
//!
//! A store or load of a world happens at one instant between an operation's beginning and its end. If every
//! load sees exactly what this memory holds at that instant, the instants are linearization points.

use super::block::{COUNTERS, counters, word_of};

/// Threads that hold a block's lock for their own purposes.
#[derive(Clone, Copy, Default)]
struct Holders {
    readers: u32,
    writers: u32,
}

impl Holders {
    fn side(&mut self, shared: bool) -> &mut u32 {
        if shared {
            &mut self.readers
        } else {
            &mut self.writers
        }
    }
}

/// What every block must look like.
pub struct Oracle {
    blocks: Vec<[u64; COUNTERS]>,
    holders: Vec<Holders>,
    stores: u64,
}

impl Oracle {
    /// Blocks of zeroes.
    pub fn new(blocks: u32) -> Self {
        Oracle {
            blocks: vec![[0; COUNTERS]; blocks as usize],
            holders: vec![Holders::default(); blocks as usize],
            stores: 0,
        }
    }

    /// Whether a copy is current.
    pub fn agrees(&self, block: u32, words: &[u64]) -> bool {
        self.expected(block) == counters(words)
    }

    /// What a block must hold now.
    pub fn expected(&self, block: u32) -> [u64; COUNTERS] {
        self.blocks[block as usize]
    }

    /// Writes the next value without a look at the old one.
    pub fn write(&mut self, block: u32, counter: usize, words: &mut [u64]) {
        self.stores += 1;
        let next = &mut self.blocks[block as usize][counter % COUNTERS];
        *next += 1;
        words[word_of(counter)] = *next;
    }

    /// Increments what the copy says.
    pub fn add(&mut self, block: u32, counter: usize, words: &mut [u64]) {
        self.stores += 1;
        self.blocks[block as usize][counter % COUNTERS] += 1;
        words[word_of(counter)] += 1;
    }

    /// A thread holds a block's lock from now on. False if it must not, because of another.
    pub fn hold(&mut self, block: u32, shared: bool) -> bool {
        let holders = &mut self.holders[block as usize];
        let alone = holders.writers == 0 && (shared || holders.readers == 0);
        *holders.side(shared) += 1;
        alone
    }

    /// It lets go.
    pub fn let_go(&mut self, block: u32, shared: bool) {
        *self.holders[block as usize].side(shared) -= 1;
    }

    /// Stores so far, which is what all counters sum up to.
    pub fn stores(&self) -> u64 {
        self.stores
    }
}
