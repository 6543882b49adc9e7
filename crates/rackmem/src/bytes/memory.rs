//! A node's part of the global memory: chunks that appear when they are first touched, and whose
//! pages go back to the system when they are made zeros.

use super::pages::Pages;
use rackmem_fabric::Whole;
use rackmem_proto::CHUNK;
use rackmem_proto::abd::GROUPS;
use rackmem_proto::flowcc::KeptBlocks;
use rackmem_proto::wire::{Contract, Tag};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock};

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
    kept: Box<[KeptMemory]>,
}

/// Sizes of a home that a group keeps: powers of two from this one on.
const SMALLEST: u32 = 16;
const SIZES: usize = (u64::BITS - SMALLEST) as usize;

/// Of a home that a group keeps. A region that has the group's number next has memory of another
/// size, perhaps, and whoever looks at that of the last one must find that it is there: so each
/// size is mapped once, and stays. Its pages are with the system while nothing uses it.
struct KeptMemory {
    laid: Mutex<KeptBlocks>,
    sizes: [OnceLock<Pages>; SIZES],
}

impl KeptMemory {
    fn new() -> Self {
        KeptMemory {
            laid: Mutex::default(),
            sizes: [const { OnceLock::new() }; SIZES],
        }
    }

    fn size(bytes: u64) -> usize {
        let log = bytes.max(1).next_power_of_two().ilog2();
        log.saturating_sub(SMALLEST) as usize
    }

    fn pages(&self, laid: &KeptBlocks) -> Option<&Pages> {
        self.sizes.get(KeptMemory::size(laid.bytes))?.get()
    }

    fn discard(&self, laid: &KeptBlocks) {
        let pages = self.pages(laid).filter(|_| laid.bytes > 0);
        if let Some(pages) = pages {
            pages.discard(0..laid.bytes as usize);
        }
    }
}

impl GlobalMemory {
    /// Room for `chunks` chunks of blocks of `block` bytes.
    pub fn new(block: usize, chunks: u32, incarnation: u32) -> Self {
        GlobalMemory {
            block,
            base: u64::from(incarnation.saturating_sub(1)) * u64::from(chunks),
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
            kept: (0..GROUPS).map(|_| KeptMemory::new()).collect(),
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
        let kept = self.kept.get(usize::from(tag.home().group()?))?;
        let laid = *kept.laid.lock().whole();
        let at = usize::try_from(laid.at(tag)?).ok()? / 8;
        kept.pages(&laid)?.words().get(at..at + self.block / 8)
    }

    /// Has room for what a group keeps from here on, which appears when it is touched. What a
    /// region had that had its number goes back to the system. Whoever calls has the lock of these
    /// homes, as whoever writes there.
    pub fn lay_out(&self, group: u16, blocks: KeptBlocks) {
        let Some(kept) = self.kept.get(usize::from(group)) else {
            return;
        };
        let size = KeptMemory::size(blocks.bytes);
        if let Some(pages) = kept.sizes.get(size).filter(|_| blocks.bytes > 0) {
            pages.get_or_init(|| Pages::new(1 << (size as u32 + SMALLEST)));
        }
        let last = std::mem::replace(&mut *kept.laid.lock().whole(), blocks);
        if last != blocks {
            kept.discard(&last);
        }
    }

    /// This node serves no home that a group keeps: its pages go back to the system.
    pub fn discard_kept(&self) {
        for kept in &self.kept {
            let laid = *kept.laid.lock().whole();
            kept.discard(&laid);
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
