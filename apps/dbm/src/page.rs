//! A page of records, as hash chains, leaves and inner pages of trees have them.
//!
//! | bytes | |
//! |---|---|
//! | 0..2 | how many records there are |
//! | 2..4 | levels below it, of a page of a tree |
//! | 4..8 | the next page of its chain, or the next one that is free; 0: none |
//! | 8..10 | bytes at the end of the page that records take, those that are gone included |
//! | 16.. | where each record begins, two bytes each, in the order of the records |
//! | ..4096 | records: the length of the key, the length of the value, the key, the value |
//!
//! A page of zeros is an empty one.

use crate::error::{DbmError, Result};
use std::cmp::Ordering;
use std::ops::Range;

/// Bytes of a page: a block of coherent memory, unless the configuration says otherwise.
pub const PAGE: usize = 4096;
/// Bytes of a key at most.
pub const MAX_KEY: usize = 256;
/// Bytes of a value at most. Three of the longest records fit into a page, so that the halves of
/// a page that is divided always do.
pub const MAX_VALUE: usize = 1024;
/// Bytes of a value in an inner page: a page's number.
pub const CHILD: usize = 4;

const HEAD: usize = 16;
const SLOT: usize = 2;
const LENGTHS: usize = 4;
const BROKEN: DbmError = DbmError::Broken {
    what: "a page has records that cannot be",
};

/// A key and its value, out of a page.
pub type Record = (Box<[u8]>, Box<[u8]>);

/// A page, in memory of this thread.
#[derive(Clone)]
pub struct Page {
    bytes: Box<[u8; PAGE]>,
}

impl Page {
    /// An empty one.
    pub fn new(level: u16) -> Page {
        let mut page = Page {
            bytes: Box::new([0; PAGE]),
        };
        page.set_half(2, level);
        page
    }

    /// The one that `read` brings.
    ///
    /// # Errors
    /// Those of `read`; [`DbmError::Broken`].
    pub fn of(read: impl FnOnce(&mut [u8; PAGE]) -> Result<()>) -> Result<Page> {
        let mut page = Page::new(0);
        read(&mut page.bytes)?;
        let first = HEAD + page.count() * SLOT;
        let low = PAGE.checked_sub(usize::from(page.half(8)));
        let low = low.filter(|low| first <= *low).ok_or(BROKEN)?;
        for nth in 0..page.count() {
            let at = page.at(nth);
            if at < low || at + LENGTHS > PAGE || page.record(nth).end > PAGE {
                return Err(BROKEN);
            }
        }
        Ok(page)
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8; PAGE] {
        &self.bytes
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn set_half(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Records in it.
    pub fn count(&self) -> usize {
        self.half(0).into()
    }

    /// Levels below it.
    pub fn level(&self) -> u16 {
        self.half(2)
    }

    /// The next one of a list; 0: none.
    pub fn next(&self) -> u32 {
        child(&self.bytes[4..8]).unwrap_or(0)
    }

    /// Makes this the next one of a list.
    pub fn set_next(&mut self, page: u32) {
        self.bytes[4..8].copy_from_slice(&page.to_le_bytes());
    }

    fn at(&self, nth: usize) -> usize {
        self.half(HEAD + nth * SLOT).into()
    }

    /// The nth record with its lengths.
    fn record(&self, nth: usize) -> Range<usize> {
        let at = self.at(nth);
        let (key, value) = (self.half(at), self.half(at + 2));
        at..at + LENGTHS + usize::from(key) + usize::from(value)
    }

    /// The nth record, which there is.
    pub fn entry(&self, nth: usize) -> (&[u8], &[u8]) {
        let record = self.record(nth);
        let key = usize::from(self.half(record.start));
        self.bytes[record.start + LENGTHS..record.end].split_at(key)
    }

    /// The key of the nth record, which there is.
    pub fn key(&self, nth: usize) -> &[u8] {
        self.entry(nth).0
    }

    /// Of records in order: the first one whose key is this or a later one, and whether it is this.
    pub fn find(&self, key: &[u8]) -> (usize, bool) {
        let (mut low, mut high) = (0, self.count());
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

    /// Of an inner page: the record below which a key is, and the page there. The first record
    /// has whatever is before the second one; its key says nothing.
    ///
    /// # Errors
    /// [`DbmError::Broken`].
    pub fn below(&self, key: &[u8]) -> Result<(usize, u32)> {
        let (nth, is_it) = self.find(key);
        let slot = if is_it { nth } else { nth.saturating_sub(1) };
        self.child(slot).map(|page| (slot, page))
    }

    /// The page of the nth record of an inner page.
    ///
    /// # Errors
    /// [`DbmError::Broken`].
    pub fn child(&self, nth: usize) -> Result<u32> {
        if nth >= self.count() {
            return Err(BROKEN);
        }
        child(self.entry(nth).1).ok_or(BROKEN)
    }

    /// Bytes that records and their places take.
    fn taken(&self) -> usize {
        let records = (0..self.count()).map(|nth| self.record(nth).len());
        HEAD + self.count() * SLOT + records.sum::<usize>()
    }

    /// Whether a record of these lengths still fits.
    pub fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        self.taken() + SLOT + LENGTHS + key.len() + value.len() <= PAGE
    }

    /// Puts a record before the nth one. `false`, and nothing has changed, if it does not fit.
    pub fn insert(&mut self, nth: usize, key: &[u8], value: &[u8]) -> bool {
        if !self.fits(key, value) {
            return false;
        }
        let (count, need) = (self.count(), LENGTHS + key.len() + value.len());
        if HEAD + (count + 1) * SLOT + usize::from(self.half(8)) + need > PAGE {
            self.close_gaps();
        }
        let taken = usize::from(self.half(8)) + need;
        let at = PAGE - taken;
        self.set_half(8, taken as u16);
        self.set_half(at, key.len() as u16);
        self.set_half(at + 2, value.len() as u16);
        self.bytes[at + LENGTHS..][..key.len()].copy_from_slice(key);
        self.bytes[at + LENGTHS + key.len()..][..value.len()].copy_from_slice(value);
        let slot = HEAD + nth * SLOT;
        self.bytes
            .copy_within(slot..HEAD + count * SLOT, slot + SLOT);
        self.set_half(slot, at as u16);
        self.set_half(0, (count + 1) as u16);
        true
    }

    /// Removes the nth record, which there is.
    pub fn remove(&mut self, nth: usize) {
        let (count, slot) = (self.count(), HEAD + nth * SLOT);
        self.bytes
            .copy_within(slot + SLOT..HEAD + count * SLOT, slot);
        self.set_half(0, (count - 1) as u16);
        if count == 1 {
            self.set_half(8, 0);
        }
    }

    /// Overwrites the value of the nth record, which there is. `false`, and nothing has changed, if
    /// it has another length.
    pub fn overwrite(&mut self, nth: usize, value: &[u8]) -> bool {
        let end = self.record(nth).end;
        let is_as_long = self.entry(nth).1.len() == value.len();
        if is_as_long {
            self.bytes[end - value.len()..end].copy_from_slice(value);
        }
        is_as_long
    }

    fn close_gaps(&mut self) {
        let mut whole = Page::new(self.level());
        whole.set_next(self.next());
        for nth in 0..self.count() {
            let (key, value) = self.entry(nth);
            // What was in one page is in another one.
            whole.insert(nth, key, value);
        }
        *self = whole;
    }

    /// Copies of its records.
    pub fn records(&self) -> Vec<Record> {
        let copy = |nth| {
            let (key, value) = self.entry(nth);
            (key.into(), value.into())
        };
        (0..self.count()).map(copy).collect()
    }

    /// A page of this level with these records, which fit.
    ///
    /// # Errors
    /// [`DbmError::Broken`], if they do not.
    pub fn with(level: u16, records: &[Record]) -> Result<Page> {
        let mut page = Page::new(level);
        for (nth, (key, value)) in records.iter().enumerate() {
            if !page.insert(nth, key, value) {
                return Err(BROKEN);
            }
        }
        Ok(page)
    }
}

/// Bytes that a record takes in a page.
pub fn weight((key, value): &Record) -> usize {
    SLOT + LENGTHS + key.len() + value.len()
}

/// The page's number in a record of an inner page.
fn child(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_le_bytes)
}
