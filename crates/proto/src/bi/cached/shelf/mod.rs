//! A home's items once more, in words that a program in the kernel of its host reads while the
//! home writes them: where each lies, and who has room.
//!
//! ```text
//! front   one slab: a row of a line for each region, at its number modulo ROWS
//!         name (its number and one; 0: none), writes, bytes | items << 32, first slab
//! slabs   of 64 KiB: items of one region each, as many as fit, of whole lines
//!         an item: version (twice the write that it is of; odd: being written), 0, bytes
//! ```
//!
//! All of it is written by one thread at a time, which has the home's section, and each store is
//! seen after those before it. What the words say is never the home's own knowledge: a region
//! without room here is read by packets to the agent.

mod rule;

pub use rule::{ShelfHome, ShelfPassed, answer, concerns};

use super::Stock;
pub use super::stock::STEP as SHELF_STEP;
use crate::wire::{OWN_LEN, Tag};
use crate::words::Words;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Bytes of a slab, and of what is in front.
pub const SHELF_SLAB: u64 = 1 << 16;
/// Words of a slab.
const SLAB_WORDS: usize = SHELF_SLAB as usize / 8;
/// Regions that there is a row for.
pub const SHELF_ROWS: u64 = 1024;
/// Bytes of a line, and of a region's row.
const LINE: usize = 64;
/// Words of an item before its bytes: as many as a packet has of its own, which come to lie there.
const HEADER_WORDS: usize = OWN_LEN / 8;

/// Words of a row.
const NAME: usize = 0;
const WRITES: usize = 1;
const SHAPE: usize = 2;
const FIRST: usize = 3;
/// The same: name, writes, shape, first slab.
pub const ROW: [usize; 4] = [NAME, WRITES, SHAPE, FIRST];

/// What a packet has changed of a home's regions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Changed {
    /// The region.
    pub region: Tag,
    /// Its item; none: there is such a region from now on, or is no more.
    pub item: Option<u32>,
}

/// Which of a home's regions are there, and in which slabs.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    /// Which slabs are given.
    given: Vec<bool>,
    /// By the region's number, what it has.
    regions: BTreeMap<u64, Placed>,
}

/// Where a region's items are.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// Bytes of an item.
    bytes: u32,
    first: usize,
    slabs: usize,
}

/// Lines of an item of so many bytes, with what is before them.
const fn lines(bytes: u32) -> usize {
    (HEADER_WORDS * 8 + bytes as usize).div_ceil(LINE)
}

/// Items of so many bytes in a slab.
const fn each(bytes: u32) -> usize {
    SHELF_SLAB as usize / (lines(bytes) * LINE)
}

/// The row of the region of this number.
const fn row(number: u64) -> usize {
    (number % SHELF_ROWS) as usize * LINE / 8
}

/// The first word of an item of a region that begins with this slab.
const fn item_at(first: usize, bytes: u32, item: u32) -> usize {
    let (slab, nth) = (item as usize / each(bytes), item as usize % each(bytes));
    (1 + first + slab) * SLAB_WORDS + nth * lines(bytes) * LINE / 8
}

impl Shelf {
    /// With so many slabs, all zeros, and a front of zeros.
    pub fn new(slabs: usize) -> Self {
        Shelf {
            given: alloc::vec![false; slabs],
            regions: BTreeMap::new(),
        }
    }

    /// Words that so many slabs and what is in front have.
    pub const fn words(slabs: usize) -> usize {
        (1 + slabs) * SLAB_WORDS
    }

    /// Regions that are here.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    /// The home has changed this, and nobody has been told yet.
    pub fn follow(&mut self, stock: &Stock, changed: Changed, words: &mut impl Words) {
        let Some(number) = stock.name(changed.region) else {
            return;
        };
        match (changed.item, stock.shape(changed.region)) {
            (Some(item), Some((.., writes))) => {
                let value = stock.value(changed.region, item);
                self.write(number, (item, value), writes, words);
            }
            (None, Some((bytes, items, _))) => self.place(number, (bytes, items), words),
            (_, None) => self.remove(number, words),
        }
    }

    /// Room for a region that nobody has written to, if there is some.
    fn place(&mut self, number: u64, (bytes, items): (u32, u32), words: &mut impl Words) {
        // The row may still be that of an older region.
        let free = words.load(row(number) + NAME) == 0;
        let slabs = (items as usize).div_ceil(each(bytes)).max(1);
        let mut windows = self.given.windows(slabs);
        let found = windows.position(|window| !window.contains(&true));
        let Some(first) = found.filter(|_| free) else {
            return;
        };
        self.given[first..first + slabs].fill(true);
        let placed = Placed {
            bytes,
            first,
            slabs,
        };
        self.regions.insert(number, placed);
        // An earlier region's items.
        for word in (1 + first) * SLAB_WORDS..(1 + first + slabs) * SLAB_WORDS {
            words.store(word, 0);
        }
        let row = row(number);
        words.store(row + WRITES, 0);
        words.store(row + SHAPE, u64::from(bytes) | u64::from(items) << 32);
        words.store(row + FIRST, first as u64);
        words.store(row + NAME, number + 1);
    }

    /// An item is this by the last write of the region.
    fn write(
        &mut self,
        number: u64,
        (item, value): (u32, &[u8]),
        writes: u64,
        words: &mut impl Words,
    ) {
        let Some(placed) = self.regions.get(&number) else {
            return;
        };
        let at = item_at(placed.first, placed.bytes, item);
        words.store(at, 2 * writes - 1);
        for (nth, eight) in value.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            words.store(at + HEADER_WORDS + nth, u64::from_ne_bytes(word));
        }
        // While no look at the item is believed: whoever finds the item whole finds a number that
        // the region had while the item was so.
        words.store(row(number) + WRITES, writes);
        words.store(at, 2 * writes);
    }

    /// Its name goes before anything else of it.
    fn remove(&mut self, number: u64, words: &mut impl Words) {
        if let Some(placed) = self.regions.remove(&number) {
            words.store(row(number) + NAME, 0);
            self.given[placed.first..placed.first + placed.slabs].fill(false);
        }
    }
}

/// Which region's row it is, and how many bytes behind its name: none of an address that no region
/// has.
const fn number_of(offset: u64, base: u64) -> Option<u64> {
    match offset.checked_sub(base) {
        Some(within) if within.is_multiple_of(SHELF_STEP) => Some(within / SHELF_STEP),
        _ => None,
    }
}
