//! Words that a program in the kernel of this host reads, as this process has mapped them.

use rackmem_fabric::shm::Lent;
use rackmem_proto::words::Words;
use std::sync::atomic::Ordering::{Acquire, Release};

/// They begin as zeros.
pub(crate) struct LentWords(pub Lent);

impl Words for LentWords {
    fn load(&self, word: usize) -> u64 {
        let word = self.0.words().get(word);
        word.map_or(0, |word| word.load(Acquire))
    }

    fn store(&mut self, word: usize, value: u64) {
        if let Some(word) = self.0.words().get(word) {
            word.store(value, Release);
        }
    }
}
