//! A home's entries in parts that are served side by side.
//!
//! A part (*shard*) has the entries of some blocks, and all that is kept of events on them: to a
//! requester it is like a home of its own. What is one for all of a node's memory,
//! and so crosses shards:
//!
//! | what | where it is | and the others |
//! |---|---|---|
//! | what is given out, and the calls that ask for it (`Alloc`, `Free`) | in the first, [`Shards::BOOKS`] | make entries for new chunks before the answer leaves ([`News`]) |
//! | what chunks are (contract, backing) | in each | take it over with the same news |
//! | moves to the switch | each has some of the node's 64 slots, and of the paper's k | |
//! | a new epoch: freeze, settle, policy | each by itself | one after the other, none holding two |

use super::directory::ChunkKind;
use crate::wire::Tag;
use alloc::vec::Vec;
use core::ops::Range;

/// How a home's entries are divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shards {
    /// A power of two.
    count: u32,
    /// Which power of two a block's bytes are.
    log: u32,
    /// There is one more, of homes that groups keep.
    kept: bool,
}

impl Shards {
    /// The one that has the books of the home's memory.
    pub const BOOKS: usize = 0;
    /// At most so many.
    pub const MAX: u32 = 16;

    /// So many, as a power of two, of a home with blocks of so many bytes, a power of two.
    pub const fn new(count: u32, block: u32) -> Self {
        let count = if count > Self::MAX { Self::MAX } else { count };
        let count = if count == 0 { 1 } else { count };
        Shards {
            count: 1 << count.ilog2(),
            log: block.ilog2(),
            kept: false,
        }
    }

    /// All in one.
    pub const ONE: Shards = Shards {
        count: 1,
        log: 0,
        kept: false,
    };

    /// With one more section behind them, for all homes that groups keep and this node serves.
    #[must_use]
    pub const fn with_kept(self) -> Self {
        Shards { kept: true, ..self }
    }

    /// The section of homes that groups keep.
    pub const fn kept(self) -> Option<usize> {
        if self.kept { Some(self.count()) } else { None }
    }

    /// How many of the node's own memory.
    pub const fn count(self) -> usize {
        self.count as usize
    }

    /// Each of the node's own memory.
    pub const fn own(self) -> Range<usize> {
        0..self.count()
    }

    /// Each.
    pub const fn all(self) -> Range<usize> {
        0..self.count() + self.kept as usize
    }

    /// That of a block: neighbours are in different ones.
    #[inline]
    pub const fn of(self, tag: Tag) -> usize {
        if self.kept && !tag.home().is_own() {
            return self.count();
        }
        (tag.offset() >> self.log) as usize & (self.count as usize - 1)
    }
}

/// What the books have changed that other shards must know before the memory is used. It stays
/// in the books until they do, so a thread that allocates meanwhile passes it on, too.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct News {
    /// How many changes these are.
    pub(super) number: u64,
    /// What chunks are, from the first.
    pub(super) kinds: Vec<ChunkKind>,
    /// Blocks that are given out, by number from the beginning of memory:
    /// what was lost of them has no owner any more.
    pub(super) fresh: Vec<Range<u64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_in_different_shards_and_each_has_its_share() {
        let shards = Shards::new(5, 4096);
        assert_eq!(shards.count(), 4);
        let of = |block: u64| shards.of(Tag((3 << 48) | (block * 4096)));
        assert_eq!([of(0), of(1), of(2), of(3), of(4)], [0, 1, 2, 3, 0]);
        assert_eq!(Shards::ONE.of(Tag(77 * 256)), Shards::BOOKS);
        assert_eq!(Shards::new(0, 256).count(), 1);
        assert_eq!(Shards::new(1000, 256).count(), 16);
    }
}
