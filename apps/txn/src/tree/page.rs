//! A page of an index: entries in the order of their keys.
//!
//! | bytes | |
//! |---|---|
//! | 0..2 | how many entries there are |
//! | 2..4 | how many levels are below it |
//! | 4..8 | of the root: pages that have ever been used, itself included |
//! | 8..12 | of the root: the first page that is free; of a free page: the next one |
//! | 16.. | entries: a key, and a value or the number of a page |

use crate::access::{Halt, broken};
use std::cmp::Ordering;
use std::ops::Range;

/// Bytes of a page: with its version it is within one block of 4 KiB, and as an object, whose
/// header takes 16 bytes, it takes 4 KiB.
pub const PAGE: usize = 4096 - 16;
const HEAD: usize = 16;
/// Bytes of a page's number.
const CHILD: usize = 4;

/// What an index has in its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes of a key. Keys are compared by their bytes.
    pub key: usize,
    /// Bytes of a value.
    pub value: usize,
}

impl Shape {
    fn entry(self, level: u16) -> usize {
        self.key + if level == 0 { self.value } else { CHILD }
    }

    /// Entries of a page at so many levels above the leaves, at most.
    pub fn most(self, level: u16) -> usize {
        (PAGE - HEAD) / self.entry(level)
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|it| it.try_into().ok());
    word.map_or(0, u32::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> u16 {
    let word = bytes.get(at..at + 2).and_then(|it| it.try_into().ok());
    word.map_or(0, u16::from_le_bytes)
}

/// A page that is looked at.
#[derive(Clone, Copy)]
pub struct View<'a> {
    bytes: &'a [u8],
    shape: Shape,
    /// Levels below it.
    pub level: u16,
    /// Its entries.
    pub count: usize,
}

impl<'a> View<'a> {
    /// The page that these bytes are.
    pub fn of(bytes: &'a [u8], shape: Shape) -> Result<View<'a>, Halt> {
        let (count, level) = (usize::from(half(bytes, 0)), half(bytes, 2));
        if bytes.len() != PAGE || count > shape.most(level) {
            return Err(broken("a page of an index is none"));
        }
        Ok(View {
            bytes,
            shape,
            level,
            count,
        })
    }

    pub fn is_full(&self) -> bool {
        self.count == self.shape.most(self.level)
    }

    fn range(&self, nth: usize) -> Range<usize> {
        let entry = self.shape.entry(self.level);
        let at = HEAD + nth * entry;
        at..at + entry
    }

    /// The key of the nth entry, and what it has. `nth` is below the count.
    pub fn entry(&self, nth: usize) -> (&'a [u8], &'a [u8]) {
        self.bytes[self.range(nth)].split_at(self.shape.key)
    }

    pub fn key(&self, nth: usize) -> &'a [u8] {
        self.entry(nth).0
    }

    /// The first entry whose key is this or a later one, and whether it is this.
    pub fn find(&self, key: &[u8]) -> (usize, bool) {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            match self.key(middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return (middle, true),
                Ordering::Greater => high = middle,
            }
        }
        (low, false)
    }

    /// Of an inner page: the entry below which a key is, and the page there. What is before the
    /// first key is below the first entry.
    pub fn below(&self, key: &[u8]) -> Result<(usize, u32), Halt> {
        let (nth, is_it) = self.find(key);
        let slot = if is_it { nth } else { nth.saturating_sub(1) };
        if slot >= self.count {
            return Err(broken("an inner page of an index is empty"));
        }
        Ok((slot, number(self.entry(slot).1, 0)))
    }
}

/// A page that is changed.
pub struct Edit<'a> {
    bytes: &'a mut [u8],
    shape: Shape,
}

impl<'a> Edit<'a> {
    /// The page that these bytes are.
    pub fn of(bytes: &'a mut [u8], shape: Shape) -> Result<Edit<'a>, Halt> {
        View::of(bytes, shape)?;
        Ok(Edit { bytes, shape })
    }

    fn view(&self) -> View<'_> {
        View {
            bytes: self.bytes,
            shape: self.shape,
            level: half(self.bytes, 2),
            count: usize::from(half(self.bytes, 0)),
        }
    }

    fn set_count(&mut self, count: usize) {
        self.bytes[..2].copy_from_slice(&(count as u16).to_le_bytes());
    }

    pub fn set_level(&mut self, level: u16) {
        self.bytes[2..4].copy_from_slice(&level.to_le_bytes());
    }

    /// Pages that have ever been used.
    pub fn used(&self) -> u32 {
        number(self.bytes, 4).max(1)
    }

    pub fn set_used(&mut self, pages: u32) {
        self.bytes[4..8].copy_from_slice(&pages.to_le_bytes());
    }

    pub fn free(&self) -> u32 {
        number(self.bytes, 8)
    }

    pub fn set_free(&mut self, page: u32) {
        self.bytes[8..12].copy_from_slice(&page.to_le_bytes());
    }

    /// Puts an entry before the nth; the page is not full.
    pub fn insert(&mut self, nth: usize, key: &[u8], rest: &[u8]) -> Result<(), Halt> {
        let view = self.view();
        let (count, range) = (view.count, view.range(nth));
        let end = view.range(count).start;
        let fits = key.len() + rest.len() == range.len() && key.len() == self.shape.key;
        if view.is_full() || nth > count || !fits {
            return Err(broken("an entry does not fit into its page"));
        }
        self.bytes.copy_within(range.start..end, range.end);
        self.bytes[range.start..range.start + key.len()].copy_from_slice(key);
        self.bytes[range.start + key.len()..range.end].copy_from_slice(rest);
        self.set_count(count + 1);
        Ok(())
    }

    /// The same, of an inner page.
    pub fn insert_page(&mut self, nth: usize, key: &[u8], page: u32) -> Result<(), Halt> {
        self.insert(nth, key, &page.to_le_bytes())
    }

    /// The value of the nth entry, which there is.
    pub fn value(&mut self, nth: usize) -> &mut [u8] {
        let range = self.view().range(nth);
        &mut self.bytes[range.start + self.shape.key..range.end]
    }

    /// Removes the nth entry, which there is; how many are left.
    pub fn remove(&mut self, nth: usize) -> usize {
        let view = self.view();
        let (count, range) = (view.count, view.range(nth));
        let end = view.range(count).start;
        self.bytes.copy_within(range.end..end, range.start);
        self.set_count(count - 1);
        count - 1
    }

    /// Removes all entries from the nth on: their bytes.
    pub fn cut(&mut self, nth: usize) -> Vec<u8> {
        let view = self.view();
        let range = view.range(nth).start..view.range(view.count).start;
        let rest = self.bytes[range].to_vec();
        self.set_count(nth);
        rest
    }

    /// An empty page becomes one of this level with these entries.
    pub fn fill(&mut self, level: u16, entries: &[u8]) {
        self.set_level(level);
        self.bytes[HEAD..HEAD + entries.len()].copy_from_slice(entries);
        self.set_count(entries.len() / self.shape.entry(level));
    }
}
