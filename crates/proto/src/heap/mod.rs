//! The memory of one home: what of it is given out.
//!
//! The home alone keeps these books ([decision
//! 11](../../../docs/decisions/0011-memory-returns-to-its-home.md)). Memory consists of blocks. An
//! object of more than half a block is a run of whole blocks ([`spans`]); smaller ones share a
//! block with others of their size ([`slab`]). What is given back joins its neighbours: a block
//! without objects is free for any size, and runs of blocks that touch are one run. Giving back
//! what is not given out, or not with this size, is refused and changes nothing.
//!
//! Memory that has been given out is *used*, and stays so when it comes back, until its host says
//! that it is zeros again ([`Heap::cleaned`]). What is given out that is not used needs no zeroing.
//!
//! At most one empty block a size stays cut up for the next object of that size; it counts as free,
//! and is used for others when nothing else is left.

mod backing;
pub mod marks;
pub mod slab;
pub mod spans;

pub use self::backing::Backing;

use self::marks::Marks;
use self::slab::Slab;
use self::spans::Spans;
use crate::wire::Tag;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of the smallest object.
pub const MIN_OBJECT: u64 = 16;
/// Objects that one request for memory is given at most.
pub const MAX_OBJECTS: u32 = 32;
/// Bytes that one request for several small objects is given at most.
pub const BATCH: u64 = 16 << 10;

/// Bytes of an object of `len` bytes: close to it, and never less.
/// None where that is beyond every memory.
///
/// Small sizes are powers of two and three steps between; above half a block they are whole blocks.
pub fn class(len: u64, block: u64) -> Option<u64> {
    let len = len.max(MIN_OBJECT);
    if len <= block / 2 {
        let power = 1 << (63 - len.leading_zeros());
        let class = len.next_multiple_of((power / 4).max(8));
        if class <= block / 2 {
            return Some(class);
        }
    }
    len.checked_next_multiple_of(block)
        .filter(|class| *class < Tag::SPACE)
}

/// How many objects of this size a request is given at most.
pub fn batch(class: u64) -> u32 {
    (BATCH / class).clamp(1, u64::from(MAX_OBJECTS)) as u32
}

/// Objects that have been given out together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// Where the first begins, from the beginning of memory.
    pub first: u64,
    /// Bit n: the object n times its size behind that is given out. Bit 0 always is.
    pub objects: u32,
    /// Blocks that were free before.
    pub fresh: Range<u64>,
    /// None of it has been given out before, since it was zeros.
    pub zeros: bool,
}

/// Nothing of this size that begins there is given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAllocated;

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Heap {
    /// Bytes of a block.
    block: u64,
    blocks: u64,
    free: Spans,
    /// Objects of whole blocks that are given out: the first block, and how many.
    runs: BTreeMap<u64, u64>,
    slabs: BTreeMap<u64, Slab>,
    /// Slabs by their objects' size that have a free one.
    partial: BTreeMap<u64, BTreeSet<u64>>,
    /// Of these the one that is empty, with its objects' size.
    empty: Vec<(u64, u64)>,
    /// Bytes of all objects that are given out.
    live: u64,
    /// Blocks that may hold written data: what has been given out of them,
    /// or could be in a slab.
    used: Marks,
}

impl Heap {
    /// Memory of so many blocks of `block` bytes each, all of it free.
    pub fn new(block: u64, blocks: u64) -> Self {
        Heap {
            block,
            blocks,
            free: Spans::new(blocks),
            runs: BTreeMap::new(),
            slabs: BTreeMap::new(),
            partial: BTreeMap::new(),
            empty: Vec::new(),
            live: 0,
            used: Marks::default(),
        }
    }

    /// Bytes of blocks that are used, free or not.
    pub fn used(&self) -> u64 {
        self.used.count() * self.block
    }

    /// The first run of free blocks that are used, from a block on, and not longer than `most`.
    pub fn used_from(&self, from: u64, most: u64) -> Option<Range<u64>> {
        let mut at = from;
        loop {
            let used = self.used.first_from(at)?;
            match self.free.first_within(used.clone()) {
                Some(run) => return Some(run.start..run.end.min(run.start + most)),
                None => at = used.end,
            }
        }
    }

    /// These blocks are zeros, as far as they are free: the caller has cleared them since
    /// they were.
    pub fn cleaned(&mut self, run: Range<u64>) {
        let mut at = run.start;
        while let Some(free) = self.free.first_within(at..run.end) {
            at = free.end;
            self.used.remove(free);
        }
    }

    /// Bytes of memory.
    pub fn size(&self) -> u64 {
        self.blocks * self.block
    }

    /// Bytes of the objects that are given out.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Bytes of the longest run of free blocks.
    pub fn longest(&mut self) -> u64 {
        let _ = self.reclaim();
        self.free.longest() * self.block
    }

    /// The first free bytes, as whole blocks, that never come back: to free them is an error.
    pub fn reserve(&mut self, bytes: u64) -> Option<u64> {
        let blocks = bytes.div_ceil(self.block);
        let start = (blocks != 0).then(|| self.free.take_first(blocks))??;
        self.live += blocks * self.block;
        Some(start * self.block)
    }

    /// The same, from a multiple of `align` bytes on.
    pub fn reserve_aligned(&mut self, bytes: u64, align: u64) -> Option<u64> {
        let (blocks, align) = (bytes.div_ceil(self.block), align / self.block);
        if blocks == 0 || align == 0 {
            return None;
        }
        let start = self.free.take_aligned(blocks, align)?;
        self.live += blocks * self.block;
        Some(start * self.block)
    }

    /// Gives out objects of `len` bytes: at least one, and at most as many.
    pub fn alloc(&mut self, len: u64, most: u32) -> Option<Given> {
        let class = class(len, self.block).filter(|class| *class <= self.size())?;
        let most = most.clamp(1, MAX_OBJECTS);
        let given = match class > self.block / 2 {
            true => self.alloc_runs(class / self.block, most),
            false => self.alloc_small(class, most),
        };
        if let Some(given) = &given {
            self.live += class * u64::from(given.objects.count_ones());
        }
        given
    }

    fn alloc_runs(&mut self, blocks: u64, most: u32) -> Option<Given> {
        let mut count = u64::from(most);
        let start = loop {
            match self.free.take(blocks * count) {
                Some(start) => break start,
                None if count > 1 => count /= 2,
                None => {
                    self.reclaim()?;
                }
            }
        };
        for nth in 0..count {
            self.runs.insert(start + nth * blocks, blocks);
        }
        let fresh = start..start + blocks * count;
        let zeros = self.used.add(fresh.clone());
        Some(Given {
            first: start * self.block,
            objects: u32::MAX >> (u32::BITS - count as u32),
            fresh,
            zeros,
        })
    }

    fn alloc_small(&mut self, class: u64, most: u32) -> Option<Given> {
        let known = self.partial.get(&class).and_then(BTreeSet::first).copied();
        let at = match known {
            Some(at) => at,
            None => {
                let at = match self.free.take(1) {
                    Some(at) => at,
                    None => {
                        self.reclaim()?;
                        self.free.take(1)?
                    }
                };
                let zeros = self.used.add(at..at + 1);
                self.slabs.insert(at, Slab::new(self.block, class, zeros));
                self.partial.entry(class).or_default().insert(at);
                at
            }
        };
        let slab = self.slabs.get_mut(&at)?;
        if slab.is_empty() && known.is_some() {
            self.empty.retain(|(of, _)| *of != class);
        }
        let (number, objects, zeros) = slab.take(most)?;
        if slab.is_full() {
            self.no_longer_partial(class, at);
        }
        Some(Given {
            first: at * self.block + u64::from(number) * class,
            objects,
            fresh: if known.is_none() { at..at + 1 } else { at..at },
            zeros,
        })
    }

    fn no_longer_partial(&mut self, class: u64, at: u64) {
        if let Some(slabs) = self.partial.get_mut(&class) {
            slabs.remove(&at);
            if slabs.is_empty() {
                self.partial.remove(&class);
            }
        }
    }

    /// Makes empty blocks that are still cut up free for any size. Nothing when there are none.
    fn reclaim(&mut self) -> Option<()> {
        let some = !self.empty.is_empty();
        while let Some((class, at)) = self.empty.pop() {
            self.drop_slab(class, at);
        }
        some.then_some(())
    }

    fn drop_slab(&mut self, class: u64, at: u64) {
        self.no_longer_partial(class, at);
        self.slabs.remove(&at);
        self.free.give(at, 1);
    }

    /// Takes back the object of `len` bytes that begins `first` bytes behind the beginning of
    /// memory.
    pub fn free(&mut self, first: u64, len: u64) -> Result<(), NotAllocated> {
        let class = class(len, self.block).ok_or(NotAllocated)?;
        let at = first / self.block;
        if class > self.block / 2 {
            let blocks = class / self.block;
            if !first.is_multiple_of(self.block) || self.runs.get(&at) != Some(&blocks) {
                return Err(NotAllocated);
            }
            self.runs.remove(&at);
            self.free.give(at, blocks);
        } else {
            let slab = self.slabs.get_mut(&at).filter(|slab| slab.class == class);
            let slab = slab.ok_or(NotAllocated)?;
            let was_full = slab.is_full();
            if !slab.give(first % self.block) {
                return Err(NotAllocated);
            }
            let is_empty = slab.is_empty();
            if was_full {
                self.partial.entry(class).or_default().insert(at);
            }
            if is_empty {
                match self.empty.iter_mut().find(|(of, _)| *of == class) {
                    Some((_, other)) => {
                        let other = core::mem::replace(other, at);
                        self.drop_slab(class, other);
                    }
                    None => self.empty.push((class, at)),
                }
            }
        }
        self.live -= class;
        Ok(())
    }
}
