//! What checkers ask: which objects change when a majority has a line.

use super::written::{Change, Record};
use super::{KeptObjects, Region};
use crate::wire::Tag;
use alloc::vec::Vec;

impl KeptObjects {
    /// By object, what a majority has in effect once it has this line: what a record says that
    /// begins there, or itself. Of several regions the highest one's record is the last to say that
    /// a transaction has taken effect. `other`: other lines.
    pub fn lines_of<'a>(
        &self,
        line: Tag,
        value: &[u8],
        other: impl Fn(Tag) -> Option<&'a [u8]>,
    ) -> Vec<(Tag, Vec<u8>)> {
        let group = line.home().0;
        let Some(region) = self.regions.0.get(&group) else {
            return Vec::new();
        };
        let nth = (line.offset() / u64::from(region.line.max(1))) as u32;
        if nth < region.places {
            return alloc::vec![(region.tag(group, nth), value.to_vec())];
        }
        if line != region.record_line(group, 0) {
            return Vec::new();
        }
        let Some(record) = region.record_with(group, value, &other) else {
            return Vec::new();
        };
        let regions = record.regions();
        let mut groups = regions.iter().filter_map(|tag| tag.home().group());
        if record.open || groups.next_back().is_some_and(|last| last != group) {
            return Vec::new();
        }
        let mut lines = Vec::new();
        for of in groups {
            let Some(region) = self.regions.0.get(&of) else {
                continue;
            };
            let first = other(region.record_line(of, 0));
            let lower = first.and_then(|first| region.record_with(of, first, &other));
            if let Some(lower) = lower.filter(|lower| lower.call == record.call) {
                lines.extend(region.lines_in(&lower));
            }
        }
        lines.extend(region.lines_in(&record));
        lines
    }
}

impl Region {
    /// The record that begins with this line.
    fn record_with<'a>(
        &self,
        group: u16,
        first: &[u8],
        other: &impl Fn(Tag) -> Option<&'a [u8]>,
    ) -> Option<Record> {
        let mut record = Record::of(first);
        while let Some(line) = self.next_of(group, &record) {
            record.take(other(line)?);
        }
        Some(record)
    }

    /// The lines of the objects that it writes.
    fn lines_in(&self, record: &Record) -> impl Iterator<Item = (Tag, Vec<u8>)> {
        let changes = record.changes(self.class).into_iter();
        changes.map(|Change { tag, head, content }| (tag, head.line(self.line, &content)))
    }
}
