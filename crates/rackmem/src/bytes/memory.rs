//! A node's part of the global memory: chunks that appear when they are first touched, and whose
//! pages go back to the system when they are made zeros.

use super::pages::Pages;
use rackmem_proto::CHUNK;
use rackmem_proto::abd::GROUPS;
use rackmem_proto::wire::{Contract, Tag};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// Words of zeros that cost nothing until they are touched.
pub(crate) fn zeroed_words(count: usize) -> Box<[AtomicU64]> {
    // SAFETY: all-zero bytes are a valid `AtomicU64`, which has the layout of `u64`.
    unsafe { Box::<[AtomicU64]>::new_zeroed_slice(count).assume_init() }
}

/// What the home agent keeps. Bytes here are only touched under a granted event of their block,
/// so two writers never meet; words are atomic because the language cannot know that.
pub(crate) struct GlobalMemory {
    block: usize,
    /// Number of the first chunk: earlier incarnations of the node had those below.
    base: u64,
    chunks: Box<[OnceLock<Pages>]>,
    /// Of homes that groups keep, by group: for the node that serves them.
    kept: [OnceLock<Pages>; GROUPS],
}

impl GlobalMemory {
    /// Room for `chunks` chunks of blocks of `block` bytes.
    pub fn new(block: usize, chunks: u32, incarnation: u32) -> Self {
        GlobalMemory {
            block,
            base: u64::from(incarnation.saturating_sub(1)) * u64::from(chunks),
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
            kept: [const { OnceLock::new() }; GROUPS],
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
        if !tag.home().is_own() {
            return self.block_of_group(tag);
        }
        let chunk = (tag.offset() / CHUNK).checked_sub(self.base)?;
        let chunk = self.chunks.get(chunk as usize)?;
        let words = chunk.get_or_init(|| Pages::new(CHUNK as usize)).words();
        let at = (tag.offset() % CHUNK) as usize / 8;
        words.get(at..at + self.block / 8)
    }

    #[cold]
    fn block_of_group(&self, tag: Tag) -> Option<&[AtomicU64]> {
        let pages = self.kept.get(usize::from(tag.home().group()?))?.get()?;
        let at = usize::try_from(tag.offset()).ok()? / 8;
        pages.words().get(at..at + self.block / 8)
    }

    /// Has room for the home that a group keeps, of so many bytes, which appear when they are
    /// touched.
    pub fn lay_out(&self, group: u16, bytes: usize) {
        if let Some(kept) = self.kept.get(usize::from(group)) {
            kept.get_or_init(|| Pages::new(bytes));
        }
    }

    /// This node serves no home that a group keeps: its pages go back to the system.
    pub fn discard_kept(&self) {
        for pages in self.kept.iter().filter_map(OnceLock::get) {
            pages.discard(0..pages.words().len() * 8);
        }
    }

    /// Makes so many bytes zeros from an address on, a multiple of eight. Whoever calls knows that
    /// no cache has anything of their blocks. Says whether all of them are memory.
    pub fn wipe(&self, from: Tag, len: u64) -> bool {
        self.each(from, len, Pages::zero)
    }

    /// The same, of memory that nobody is about to use: its pages go back to the system.
    pub fn discard(&self, from: Tag, len: u64) -> bool {
        self.each(from, len, Pages::discard)
    }

    fn each(&self, from: Tag, len: u64, act: impl Fn(&Pages, Range<usize>)) -> bool {
        if !from.home().is_own() {
            return false;
        }
        let (mut at, end) = (from.offset(), from.offset() + len);
        while at < end {
            let chunk = (at / CHUNK).checked_sub(self.base);
            let Some(chunk) = chunk.and_then(|nth| self.chunks.get(nth as usize)) else {
                return false;
            };
            let to = end.min((at / CHUNK + 1) * CHUNK);
            let begin = at % CHUNK;
            // What was never touched is zeros.
            if let Some(pages) = chunk.get() {
                act(pages, begin as usize..(begin + to - at) as usize);
            }
            at = to;
        }
        true
    }
}
