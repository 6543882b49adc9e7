//! Blocks as a world keeps them: one word for each granule.
//!
//! The core never touches a block's bytes and only reckons with offsets and lengths.
//! So a granule of the largest block, 1 KiB, is represented by one word here, and whatever happens
//! to segments happens to words.

use crate::site::Form;
use rackmem_proto::CHUNK;
use rackmem_proto::abd::first_line;
use rackmem_proto::wire::{ATOMIC_LEN, AtomicOp, GRANULES, HomeId, MAX_BLOCK, NodeId, Record, Tag};
use std::rc::Rc;

/// Bytes of a block, as packets count them.
pub const BLOCK_BYTES: u32 = MAX_BLOCK as u32;
/// Words that stand for them.
pub const WORDS: usize = GRANULES as usize;
/// Bytes that a word stands for.
pub const GRANULE_BYTES: u32 = BLOCK_BYTES / GRANULES;
/// Independent counters in a block.
pub const COUNTERS: usize = 8;
/// Words from one counter to the next.
const STRIDE: usize = WORDS / COUNTERS;

/// A block's words.
pub type Block = Box<[u64]>;

impl Form for Block {
    type Body = Rc<[u64]>;

    fn zeroes() -> Self {
        vec![0; WORDS].into_boxed_slice()
    }

    fn put(&mut self, offset: u32, words: &Rc<[u64]>) {
        let at = (offset / GRANULE_BYTES) as usize;
        if let Some(part) = self.get_mut(at..at + words.len()) {
            part.copy_from_slice(words);
        }
    }

    fn operate(&mut self, body: &Rc<[u64]>) -> u64 {
        let words = body.iter().take(ATOMIC_LEN / 8);
        let bytes: Vec<u8> = words.flat_map(|word| word.to_be_bytes()).collect();
        let Some((op, nth)) = AtomicOp::from_bytes(&bytes) else {
            return 0;
        };
        let Some(word) = self.get_mut(nth as usize) else {
            return 0;
        };
        std::mem::replace(word, op.apply(*word))
    }

    fn len(words: &Rc<[u64]>) -> u32 {
        words.len() as u32 * GRANULE_BYTES
    }

    fn records(words: &Rc<[u64]>) -> Vec<Record> {
        super::fabric::records(words).collect()
    }

    fn words(words: &Rc<[u64]>) -> &[u64] {
        words
    }

    fn incarnation(tag: Tag) -> u32 {
        incarnation(tag)
    }
}

/// The words of a line.
pub fn of_line(bytes: &[u8]) -> Block {
    let words = bytes.chunks_exact(8);
    let word = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap_or_default());
    let mut block: Vec<u64> = words.map(word).collect();
    block.resize(WORDS, 0);
    block.into()
}

/// The line that words are.
pub fn to_line(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Where a counter is.
pub const fn word_of(counter: usize) -> usize {
    counter % COUNTERS * STRIDE
}

/// The counter that is there.
pub const fn counter_of(word: usize) -> usize {
    word / STRIDE
}

/// A block's counters.
pub fn counters(words: &[u64]) -> [u64; COUNTERS] {
    std::array::from_fn(|counter| words.get(word_of(counter)).copied().unwrap_or_default())
}

/// Bytes of addresses that one incarnation of a home has.
const INCARNATION: u64 = super::CHUNKS as u64 * CHUNK;

/// Blocks of a home that a group keeps.
pub const KEPT: u32 = 256;
/// Bytes of addresses that a region of such a home has.
pub const REGION: u64 = KEPT as u64 * BLOCK_BYTES as u64;
/// Bytes of a line, which has the words of a block.
pub const LINE: u32 = WORDS as u32 * 8;
/// Of four blocks of a world with copies, the first two are of a group whose memory survives at
/// rest, the third of one whose writes survive, and the last is a node's own.
const GROUPS: [Option<u16>; 4] = [Some(0), Some(0), Some(WRITES), None];
/// The group whose writes survive.
pub const WRITES: u16 = 1;

/// The group that keeps the world's block number `number`, where groups keep blocks.
pub fn group(number: u32) -> Option<u16> {
    GROUPS[number as usize % GROUPS.len()]
}

/// The tag of the world's block number `number` in the home that a group keeps.
pub fn kept(number: u32, group: u16) -> Tag {
    let home = HomeId::of_group(group).start();
    Tag(home.0 + u64::from(number % KEPT) * u64::from(BLOCK_BYTES))
}

/// The line of a block that a group keeps: each region of its home has the same.
pub fn line(tag: Tag) -> Option<Tag> {
    let (group, nth) = (
        tag.home().group()?,
        tag.offset() % REGION / u64::from(BLOCK_BYTES),
    );
    Some(Tag(first_line(group).0 + nth * u64::from(LINE)))
}

/// The home of the world's block number `number`: homes take turns.
pub fn home(number: u32, homes: u16) -> NodeId {
    (number % u32::from(homes)) as NodeId
}

/// The tag of the world's block number `number` in its home's `incarnation`.
pub fn tag(number: u32, homes: u16, incarnation: u32) -> Tag {
    let home = home(number, homes);
    let offset = u64::from(number / u32::from(homes)) * u64::from(BLOCK_BYTES);
    let base = u64::from(incarnation.saturating_sub(1)) * INCARNATION;
    Tag(u64::from(home) << 48 | base | offset)
}

/// Which incarnation of its home a tag belongs to.
pub fn incarnation(tag: Tag) -> u32 {
    (tag.offset() / INCARNATION) as u32 + 1
}

/// The number of a tag.
pub fn number(tag: Tag, homes: u16) -> u32 {
    if !tag.home().is_own() {
        return (tag.offset() % REGION / u64::from(BLOCK_BYTES)) as u32;
    }
    let offset = tag.offset() % INCARNATION;
    (offset / u64::from(BLOCK_BYTES)) as u32 * u32::from(homes) + u32::from(tag.home().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_tags_are_one_to_one() {
        assert!((0..40).all(|n| number(tag(n, 3, 1), 3) == n));
        assert!((0..40).all(|n| number(tag(n, 3, 4), 3) == n));
        assert!(tag(4, 3, 1).home().is_of(1));
        assert_eq!(incarnation(tag(4, 3, 1)), 1);
        assert_eq!(incarnation(tag(4, 3, 3)), 3);
        assert_ne!(tag(4, 3, 1), tag(4, 3, 2));
        let of_groups = (0..40).filter_map(|n| Some((n, kept(n, group(n)?))));
        assert!(of_groups.clone().all(|(n, tag)| number(tag, 3) == n));
        assert_eq!(of_groups.count(), 30);
    }

    #[test]
    fn segments_make_a_block() {
        let whole: Vec<u64> = (0..WORDS as u64).collect();
        let mut block = Block::zeroes();
        for (i, part) in whole.chunks(16).enumerate() {
            block.put(i as u32 * 16 * GRANULE_BYTES, &part.into());
        }
        assert_eq!(*block, *whole);
        block.put(BLOCK_BYTES, &[9].into());
        assert_eq!(*block, *whole);
    }
}
