//! A home's items of bounded memory in memory that a program in the kernel reads.

use crate::bytes::lent::LentWords;
use rackmem_fabric::shm::Lent;
use rackmem_proto::bi::cached::Stock;
use rackmem_proto::bi::cached::shelf::{Changed, Shelf};

/// See the module.
pub(crate) struct LentShelf {
    shelf: Shelf,
    words: LentWords,
}

impl LentShelf {
    /// In memory of so many slabs and what is in front of them.
    pub fn new(slabs: usize, lent: Lent) -> Self {
        LentShelf {
            shelf: Shelf::new(slabs),
            words: LentWords(lent),
        }
    }

    /// The home has changed this. Whoever reads in the kernel finds it from now on, and so it is
    /// before anybody is told.
    pub fn follow(&mut self, stock: &Stock, changed: Changed) {
        self.shelf.follow(stock, changed, &mut self.words);
    }

    /// Regions that are here.
    pub fn regions(&self) -> usize {
        self.shelf.regions()
    }
}
