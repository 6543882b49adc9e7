//! Blocks that the switch decides about once more, in words that a program in the kernel of their
//! home's host reads while the home stores: where each lies.
//!
//! ```text
//! front   one slab: block size, sets, node, epoch, bytes of a block in a packet; of each node:
//!         address, MAC, incarnation
//! slabs   of 64 KiB: sets of one block each in four places, as many as fit
//!         a place: version (odd: being written), name (the block's address and 1; 0: none);
//!         the block
//! ```
//!
//! A block has a place while its entry is the switch's ([`HomeAgent::is_away`]): then home is asked
//! for its bytes, and for nothing else, and nobody writes home's memory in place. Each place is
//! written by one thread at a time, which has the block's section and what shards share beside it,
//! and each store is seen after those before it. A version only ever rises, so whoever finds one
//! even version at two looks knows that name and bytes were these all the time. What the words say
//! is never the home's own knowledge: a block without a place is asked for by packets to the agent.
//!
//! [`HomeAgent::is_away`]: super::HomeAgent::is_away

mod rule;

pub use rule::{TwinPassed, TwinView, acknowledge, answer, concerns, segments};

use crate::wire::{MAX_NODES, NodeId, Tag};
use crate::words::Words;

/// Bytes of a slab, and of what is in front.
pub const TWIN_SLAB: u64 = 1 << 16;
/// Words of a slab.
const SLAB_WORDS: usize = TWIN_SLAB as usize / 8;
/// The longest block that is here: of longer ones a slab has no room for a set.
pub const TWIN_BLOCK: u32 = 8192;
/// Places that a block can have: those of its set.
pub const WAYS: usize = 4;
/// Bytes before a block: a line of a processor's cache.
const UNIT: usize = 64;

/// Words in front.
const BLOCK: usize = 0;
const SETS: usize = 1;
const NODE: usize = 2;
const EPOCH: usize = 3;
const SEGMENT: usize = 4;
const ADDRESSES: usize = MAX_NODES;
const MACS: usize = 2 * MAX_NODES;
const INCARNATIONS: usize = 3 * MAX_NODES;
/// The same: block size, sets, node, epoch, segment; addresses, MACs and incarnations of nodes.
pub const FRONT: [usize; 8] = [
    BLOCK,
    SETS,
    NODE,
    EPOCH,
    SEGMENT,
    ADDRESSES,
    MACS,
    INCARNATIONS,
];

/// Words of a place.
const VERSION: usize = 0;
const NAME: usize = 1;
/// The same: version, name.
pub const PLACE: [usize; 2] = [VERSION, NAME];
/// Spreads addresses over sets.
pub const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// How many blocks have places, and how many could.
#[derive(Clone, Copy, Debug, Default)]
pub struct Twins {
    block: u32,
    sets: usize,
    shown: usize,
}

/// Bytes of a block with what is before it.
const fn stride(block: u32) -> usize {
    UNIT + block as usize
}

/// Sets of a slab.
const fn each(block: u32) -> usize {
    TWIN_SLAB as usize / stride(block) / WAYS
}

/// What a block's place is called while it is there.
const fn name(tag: Tag) -> u64 {
    tag.0 | 1
}

/// The first word of the nth place of a set.
const fn place_at(block: u32, set: usize, way: usize) -> usize {
    let (slab, within) = (set / each(block), set % each(block));
    (1 + slab) * SLAB_WORDS + (within * WAYS + way) * stride(block) / 8
}

/// The set of a block.
const fn set_of(tag: Tag, sets: usize) -> usize {
    ((tag.0 >> 8).wrapping_mul(SPREAD) >> 32) as u32 as usize % sets
}

impl Twins {
    /// Of blocks of so many bytes, a power of two, in so many slabs: none has a place.
    pub const fn new(block: u32, slabs: usize) -> Self {
        let fits = block <= TWIN_BLOCK && block as usize >= UNIT;
        Twins {
            block,
            sets: if fits { slabs * each(block) } else { 0 },
            shown: 0,
        }
    }

    /// Words that so many slabs and what is in front have.
    pub const fn words(slabs: usize) -> usize {
        (1 + slabs) * SLAB_WORDS
    }

    /// Blocks that have places.
    pub const fn shown(&self) -> usize {
        self.shown
    }

    /// Whether any block could have one.
    pub const fn has_room(&self) -> bool {
        self.sets > 0
    }

    /// Of this node, which sends blocks in packets of so many of their bytes, in a rack of nodes
    /// with these addresses, as they lie in a packet.
    pub fn begin(
        &self,
        (node, segment): (NodeId, u32),
        addresses: impl Iterator<Item = u64>,
        words: &mut impl Words,
    ) {
        words.store(BLOCK, self.block.into());
        words.store(SETS, self.sets as u64);
        words.store(NODE, node.into());
        words.store(SEGMENT, segment.into());
        for (nth, address) in addresses.take(MAX_NODES).enumerate() {
            words.store(ADDRESSES + nth, address);
        }
    }

    /// The node serves in this epoch, in which nodes live these lives.
    pub fn open(&self, epoch: u32, incarnations: &[u32], words: &mut impl Words) {
        for (nth, life) in incarnations.iter().take(MAX_NODES).enumerate() {
            words.store(INCARNATIONS + nth, (*life).into());
        }
        words.store(EPOCH, epoch.into());
    }

    /// It serves in none.
    pub fn close(&self, words: &mut impl Words) {
        words.store(EPOCH, 0);
    }

    /// The place of a block, if it has one.
    fn find(&self, tag: Tag, words: &impl Words) -> Option<usize> {
        self.place(tag, name(tag), words)
    }

    /// The first place of a block's set that is called so.
    fn place(&self, tag: Tag, called: u64, words: &impl Words) -> Option<usize> {
        if self.sets == 0 {
            return None;
        }
        let set = set_of(tag, self.sets);
        let mut places = (0..WAYS).map(|way| place_at(self.block, set, way));
        places.find(|at| words.load(at + NAME) == called)
    }

    /// The switch decides about this block from now on: it has a place, with these bytes, if there
    /// is room in its set.
    pub fn show(&mut self, tag: Tag, block: impl Iterator<Item = u64>, words: &mut impl Words) {
        if self.find(tag, words).is_some() {
            return;
        }
        if let Some(at) = self.place(tag, 0, words) {
            self.shown += 1;
            change(at, name(tag), block, words);
        }
    }

    /// Home's memory has these bytes of a block: so has its place, if there is one.
    pub fn write(&self, tag: Tag, block: impl Iterator<Item = u64>, words: &mut impl Words) {
        if let Some(at) = self.find(tag, words) {
            change(at, name(tag), block, words);
        }
    }

    /// The switch does not decide about this block any more.
    pub fn hide(&mut self, tag: Tag, words: &mut impl Words) {
        if let Some(at) = self.find(tag, words) {
            self.shown -= 1;
            change(at, 0, core::iter::empty(), words);
        }
    }

    /// It decides about none: the epoch is over.
    pub fn hide_all(&mut self, words: &mut impl Words) {
        for set in 0..self.sets {
            for way in 0..WAYS {
                if self.shown == 0 {
                    return;
                }
                let at = place_at(self.block, set, way);
                if words.load(at + NAME) != 0 {
                    self.shown -= 1;
                    change(at, 0, core::iter::empty(), words);
                }
            }
        }
    }
}

/// Everything that a place is said to be, between two versions.
fn change(at: usize, called: u64, block: impl Iterator<Item = u64>, words: &mut impl Words) {
    let version = words.load(at + VERSION);
    words.store(at + VERSION, version | 1);
    words.store(at + NAME, called);
    for (nth, word) in block.enumerate() {
        words.store(at + UNIT / 8 + nth, word);
    }
    words.store(at + VERSION, (version | 1).wrapping_add(1));
}
