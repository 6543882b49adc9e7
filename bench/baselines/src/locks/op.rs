//! What machines hand out, and where.

use super::Access;
use rackmem_proto::wire::{MAX_NODES, MAX_REQUESTERS};

/// A word of a lock's memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct At {
    /// Which of the lock's blocks.
    pub block: u16,
    /// Which word of 64 bits in it.
    pub word: u8,
}

impl At {
    /// The first word of a block.
    pub(super) const fn block(block: u16) -> At {
        At { block, word: 0 }
    }

    /// Another word of the same block.
    pub(super) const fn word(self, word: u8) -> At {
        At { word, ..self }
    }
}

/// For how many a lock is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Nodes of the rack.
    pub nodes: u16,
    /// Threads of one node that may want the lock at one time.
    pub places: u16,
}

impl Shape {
    /// A shape, unless it is empty or larger than a rack.
    pub fn new(nodes: u16, places: u16) -> Option<Shape> {
        let fits = (1..=MAX_NODES).contains(&usize::from(nodes));
        let fits = fits && (1..=MAX_REQUESTERS).contains(&usize::from(places));
        fits.then_some(Shape { nodes, places })
    }

    /// Threads in all.
    pub const fn seats(self) -> u16 {
        self.nodes * self.places
    }

    /// Whether a thread may have this seat.
    pub const fn has(self, seat: ThreadPlace) -> bool {
        seat.node < self.nodes && seat.place < self.places
    }

    /// The number of a seat, from 0.
    pub(super) const fn number(self, seat: ThreadPlace) -> u16 {
        seat.node * self.places + seat.place
    }
}

/// Whose machine it is: a place at a node, that one thread has at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadPlace {
    /// The node.
    pub node: u16,
    /// Which of its places.
    pub place: u16,
}

/// Near whom a block should be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Home {
    /// At the lock's home, with what it protects.
    Lock,
    /// At the node whose threads wait on it.
    Node(u16),
}

/// What a machine waits for: the bits of a word under a mask to be, or not to be, a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Until {
    mask: u64,
    value: u64,
}

impl Until {
    /// The word to be this.
    pub(super) const fn is(value: u64) -> Until {
        Until::under(u64::MAX, value)
    }

    /// The bits under the mask to be those of the value.
    pub(super) const fn under(mask: u64, value: u64) -> Until {
        Until { mask, value }
    }

    /// Whether this word is what is waited for.
    #[inline]
    pub const fn met(self, word: u64) -> bool {
        word & self.mask == self.value & self.mask
    }
}

/// One operation. Its result is the word as it was before, where that is not said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Reads a word.
    Load(At),
    /// Writes a word. Without a result.
    Store(At, u64),
    /// Writes a word.
    Swap(At, u64),
    /// Writes `new` where `old` is.
    CompareSwap {
        /// The word.
        at: At,
        /// What has to be there.
        old: u64,
        /// What is there afterwards.
        new: u64,
    },
    /// Adds, wrapping around.
    Add(At, u64),
    /// Reads a word again and again until it is right. Its result is that word. The thread spins on
    /// its own cached copy: another transaction takes place only after a write to the
    /// block.
    Wait(At, Until),
    /// Waits a little before it tries again what others were quicker at, for the n-th time.
    /// Without a result.
    Pause(u32),
    /// Asks the lock's manager, again and again until there is an answer. Without a result.
    Ask(Request),
    /// Tells the lock's manager, and does not wait; somebody must tell it again until it is
    /// acknowledged. Without a result.
    Tell(Request),
}

/// What a manager is asked and told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    /// By whom.
    pub seat: ThreadPlace,
    /// For the how manieth time that it wants the lock; wraps around.
    pub turn: u64,
    /// What for; nothing: not any more.
    pub want: Option<Access>,
}

/// What a machine says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Execute this, and tell [`super::Machine::result`].
    Do(Op),
    /// The thread is inside.
    Inside,
    /// The thread is outside.
    Outside,
}
