//! A node's part of the global memory: chunks that appear when they are first touched.

use rackmem_proto::CHUNK;
use rackmem_proto::wire::{Contract, Tag};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// Words of zeros that cost nothing until they are touched.
pub(crate) fn zeroed_words(count: usize) -> Box<[AtomicU64]> {
    // SAFETY: all-zero bytes are a valid `AtomicU64`, which has the layout of `u64`.
    unsafe { Box::<[AtomicU64]>::new_zeroed_slice(count).assume_init() }
}

/// What the home agent keeps. Bytes here are only touched under a granted event of their block, so two
/// writers never meet; words are atomic because the language cannot know that.
pub(crate) struct GlobalMemory {
    block: usize,
    /// Number of the first chunk: earlier incarnations of the node had those below.
    base: u64,
    chunks: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl GlobalMemory {
    /// Room for `chunks` chunks of blocks of `block` bytes.
    pub fn new(block: usize, chunks: u32, incarnation: u32) -> Self {
        GlobalMemory {
            block,
            base: u64::from(incarnation.saturating_sub(1)) * u64::from(chunks),
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The offset at which it begins.
    pub fn first(&self) -> u64 {
        self.base * CHUNK
    }

    /// The words of a block; `None` outside the memory.
    #[inline]
    pub fn block(&self, tag: Tag) -> Option<&[AtomicU64]> {
        if !tag.is_under(Contract::Coherent) {
            return None;
        }
        let chunk = (tag.offset() / CHUNK).checked_sub(self.base)?;
        let chunk = self.chunks.get(chunk as usize)?;
        let words = chunk.get_or_init(|| zeroed_words((CHUNK / 8) as usize));
        let at = (tag.offset() % CHUNK) as usize / 8;
        words.get(at..at + self.block / 8)
    }
}
