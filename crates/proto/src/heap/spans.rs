//! Free runs of blocks, each as long as its neighbours allow.

use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Range;

/// See the module. Positions and lengths count blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Spans {
    by_start: BTreeMap<u64, u64>,
    /// The same as (length, start): the shortest run that fits comes first,
    /// and of these the lowest.
    by_len: BTreeSet<(u64, u64)>,
    /// Behind the last block.
    end: u64,
}

impl Spans {
    /// All of so many blocks.
    pub fn new(blocks: u64) -> Self {
        let mut spans = Spans {
            by_start: BTreeMap::new(),
            by_len: BTreeSet::new(),
            end: blocks,
        };
        if blocks != 0 {
            spans.insert(0, blocks);
        }
        spans
    }

    fn insert(&mut self, start: u64, len: u64) {
        self.by_start.insert(start, len);
        self.by_len.insert((len, start));
    }

    fn remove(&mut self, start: u64, len: u64) {
        self.by_start.remove(&start);
        self.by_len.remove(&(len, start));
    }

    /// Takes `len` blocks out of the shortest run that has as many.
    ///
    /// They are its first. Only a large part of all memory is taken from the far end of a run that
    /// ends the memory: what is copied from one place to a larger one then moves between the two
    /// ends, and can grow to half of the memory.
    pub fn take(&mut self, len: u64) -> Option<u64> {
        let (have, start) = *self.by_len.range((len, 0)..).next()?;
        let large = len >= self.end / LARGE && start != 0 && start + have == self.end;
        self.remove(start, have);
        if have == len {
            return Some(start);
        }
        if large {
            self.insert(start, have - len);
            return Some(start + have - len);
        }
        self.insert(start + len, have - len);
        Some(start)
    }

    /// Takes the first `len` blocks of all, if they are free.
    pub fn take_first(&mut self, len: u64) -> Option<u64> {
        let (&start, &have) = self.by_start.iter().find(|(_, have)| **have >= len)?;
        self.remove(start, have);
        if have > len {
            self.insert(start + len, have - len);
        }
        Some(start)
    }

    /// Takes the first free run of `len` blocks that begins at a multiple of `align`.
    pub fn take_aligned(&mut self, len: u64, align: u64) -> Option<u64> {
        let mut free = self.by_start.iter().map(|(start, have)| (*start, *have));
        let (start, have, at) = free.find_map(|(start, have)| {
            let at = start.next_multiple_of(align);
            (at + len <= start + have).then_some((start, have, at))
        })?;
        self.remove(start, have);
        for (from, to) in [(start, at), (at + len, start + have)] {
            if from < to {
                self.insert(from, to - from);
            }
        }
        Some(at)
    }

    /// The first free blocks within a range, as a run.
    pub fn first_within(&self, range: Range<u64>) -> Option<Range<u64>> {
        let before = self.by_start.range(..=range.start).next_back();
        let before = before.filter(|(start, len)| **start + **len > range.start);
        let run = before.or_else(|| self.by_start.range(range.clone()).next());
        let (start, len) = run?;
        let found = range.start.max(*start)..range.end.min(start + len);
        (!found.is_empty()).then_some(found)
    }

    /// Gives blocks back, which join their neighbours.
    pub fn give(&mut self, start: u64, len: u64) {
        let (mut from, mut to) = (start, start + len);
        if let Some((&before, &have)) = self.by_start.range(..start).next_back()
            && before + have == start
        {
            self.remove(before, have);
            from = before;
        }
        if let Some(&behind) = self.by_start.get(&to) {
            self.remove(to, behind);
            to += behind;
        }
        self.insert(from, to - from);
    }

    /// Blocks of the longest run.
    pub fn longest(&self) -> u64 {
        self.by_len.last().map_or(0, |(len, _)| *len)
    }
}

/// A run of blocks is large when it has this part of all memory: an eighth.
const LARGE: u64 = 8;
