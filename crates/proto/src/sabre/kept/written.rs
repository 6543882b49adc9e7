//! What a majority has of a transaction that writes objects of a region together: its record there.
//!
//! | where | | |
//! |---|---|---|
//! | the line behind all rows | 0 | the call: incarnation:32, node:16, slot:16 |
//! | | 8 | that call's number; 0: none |
//! | | 16 | objects:32, bytes of what follows:32 |
//! | | 24 | bit 0: which stretch has what does not fit here; bit 1: *open*, it does not say whether it has taken effect; bits 8–15: how many regions it writes, 0 if only this one |
//! | | 32… | an object of each of those regions, the lowest one first; the objects of this one, each with its new version; then their contents |
//! | behind it | | two stretches of lines, in turn |
//!
//! What does not fit into the first line is stored before it, in the stretch that the last record
//! does not use: so that one stays whole until the first line names another.

use super::super::layout::{MAX_BYTES, Meta};
use super::super::transaction::{Entry, MAX_OBJECTS, decode};
use super::record::{Call, Head, RECORD, who_of, who_to, words};
use crate::wire::{Contract, Tag};
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of regions, objects and contents at most. A region of several has fewer objects than its
/// transaction, and an object takes more than a region.
const MOST: u32 = MAX_BYTES;
/// Bytes of a stretch.
const STRETCH: u64 = MOST as u64;
/// Bytes that name a region.
const NAME: usize = 8;
/// A record does not say whether it has taken effect.
const OPEN: u64 = 2;
/// Bits that a record has.
const KNOWN: u64 = 0xff << 8 | OPEN | 1;

/// Bytes of all that a region has behind its rows, in lines of so many.
pub(super) const fn bytes_of_records(line: u32) -> u64 {
    line as u64 + 2 * STRETCH.next_multiple_of(line as u64)
}

/// Lines of a stretch.
pub(super) fn lines_of_stretch(line: u32) -> u32 {
    STRETCH.div_ceil(line.max(1).into()) as u32
}

/// What a majority is to have of a transaction, or has.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Record {
    pub call: Option<Call>,
    pub stretch: u32,
    /// The lowest region that it writes says whether it has taken effect.
    pub open: bool,
    regions: u32,
    objects: u32,
    len: u32,
    /// As far as it is here.
    bytes: Vec<u8>,
}

/// An object that a record writes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Change {
    pub tag: Tag,
    pub head: Head,
    pub content: Vec<u8>,
}

/// What a transaction writes in one region: objects with their new versions, and where in its call
/// the contents are.
pub(super) type Written = Vec<(Entry, Range<usize>)>;

impl Record {
    /// What a call writes in a region, of these regions if they are several.
    pub fn new(call: Call, regions: &[Tag], written: &Written, part: &[u8]) -> Self {
        let mut bytes = Vec::new();
        for tag in regions {
            bytes.extend(tag.0.to_be_bytes());
        }
        for (entry, _) in written {
            entry.encode(&mut bytes);
        }
        for (_, at) in written {
            bytes.extend(part.get(at.clone()).unwrap_or_default());
        }
        Record {
            call: Some(call),
            stretch: 0,
            open: false,
            regions: regions.len() as u32,
            objects: written.len() as u32,
            len: bytes.len() as u32,
            bytes,
        }
    }

    /// As its first line says it. One that nobody writes so says nothing.
    pub fn of(line: &[u8]) -> Self {
        let [who, number, counts, how] = words(line);
        let (objects, len) = ((counts >> 32) as u32, counts as u32);
        let regions = (how >> 8) as u8;
        let is_wrong = regions == 1 || usize::from(regions) > MAX_OBJECTS || how & !KNOWN != 0;
        if number == 0 || len > MOST || is_wrong {
            return Record::default();
        }
        let mut record = Record {
            call: Some(who_of(who, number)),
            stretch: how as u32 & 1,
            open: how & OPEN != 0,
            regions: regions.into(),
            objects,
            len,
            bytes: Vec::new(),
        };
        record.take(line.get(RECORD as usize..).unwrap_or_default());
        record
    }

    /// The next bytes of it.
    pub fn take(&mut self, bytes: &[u8]) {
        let missing = self.len as usize - self.bytes.len();
        self.bytes.extend(bytes.iter().take(missing));
    }

    /// Its first line, and what does not fit into that, in pieces of a line.
    pub fn lines(&self, line: u32) -> (Vec<u8>, impl Iterator<Item = &[u8]>) {
        let fits = self.bytes.len().min((line - RECORD) as usize);
        let (who, number) = self.call.map_or((0, 0), |call| who_to(&call));
        let counts = u64::from(self.objects) << 32 | u64::from(self.len);
        let open = if self.open { OPEN } else { 0 };
        let how = u64::from(self.regions) << 8 | open | u64::from(self.stretch);
        let mut first = Vec::with_capacity(line as usize);
        for word in [who, number, counts, how] {
            first.extend(word.to_be_bytes());
        }
        first.extend(&self.bytes[..fits]);
        first.resize(line as usize, 0);
        (first, self.bytes[fits..].chunks(line as usize))
    }

    /// Bytes of it that are here; none if that is all of it.
    pub fn missing_from(&self) -> Option<usize> {
        let here = self.bytes.len();
        (here < self.len as usize).then_some(here)
    }

    /// Whether it writes objects of several regions.
    pub fn is_of_several(&self) -> bool {
        self.regions > 0
    }

    /// Whether it says the same as another one of these objects, wherever that lies.
    pub fn is_like(&self, other: &Record) -> bool {
        let said = |it: &Record| (it.call, it.regions, it.objects, it.open);
        said(self) == said(other) && self.bytes == other.bytes
    }

    /// Where the objects begin that it says.
    fn front(&self) -> usize {
        self.regions as usize * NAME
    }

    /// An object of each region that it writes, the lowest one first; none if it writes one only,
    /// or if what it says is nonsense.
    pub fn regions(&self) -> Vec<Tag> {
        let names = self.bytes.get(..self.front()).unwrap_or_default();
        let tags = names.as_chunks::<NAME>().0.iter();
        let tags: Vec<Tag> = tags.map(|name| Tag(u64::from_be_bytes(*name))).collect();
        let is_object = |tag: &Tag| tag.is_under(Contract::Object) && tag.home().group().is_some();
        let rises = tags.is_sorted_by(|one, next| one.home() < next.home());
        match rises && tags.iter().all(is_object) {
            true => tags,
            false => Vec::new(),
        }
    }

    /// The objects of its region that it writes.
    pub fn changes(&self, class: u8) -> Vec<Change> {
        let bytes = self.bytes.get(self.front()..).unwrap_or_default();
        let entries = decode(bytes, self.objects).unwrap_or_default();
        let change = |(entry, at): (Entry, Range<usize>)| Change {
            tag: entry.object.tag,
            head: Head {
                version: entry.expected & !1,
                meta: Meta {
                    generation: entry.object.generation,
                    class,
                    live: true,
                    len: entry.len as u16,
                },
                last: self.call,
            },
            content: bytes.get(at).unwrap_or_default().to_vec(),
        };
        entries.into_iter().map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::operation::Ref;
    use super::*;
    use crate::wire::{HomeId, RequesterId};

    const CALL: Call = Call {
        who: RequesterId { node: 3, slot: 9 },
        incarnation: 2,
        number: 11,
    };

    fn tag(home: HomeId) -> Tag {
        home.start().under(Contract::Object)
    }

    fn record(regions: &[Tag]) -> Record {
        let (tag, generation) = (tag(HomeId::of_group(1)), 4);
        let entry = Entry {
            object: Ref { tag, generation },
            expected: 6,
            len: 3,
        };
        Record::new(CALL, regions, &alloc::vec![(entry, 1..4)], b"?abc?")
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let [low, high] = [0, 1].map(|group| tag(HomeId::of_group(group)));
        for (regions, open, stretch) in [(&[][..], false, 0), (&[low, high], true, 1)] {
            let written = Record {
                open,
                stretch,
                ..record(regions)
            };
            let (first, rest) = written.lines(64);
            let mut read = Record::of(&first);
            rest.for_each(|bytes| read.take(bytes));
            assert_eq!((&read, read.missing_from()), (&written, None));
            assert_eq!(read.regions(), regions);
            let [change] = &read.changes(2)[..] else {
                panic!("one object is written");
            };
            assert_eq!((change.head.version, &change.content[..]), (6, &b"abc"[..]));
        }
        // As keepers wrote it that knew of one region only.
        let (first, _) = record(&[]).lines(64);
        assert_eq!(first[24..32], [0; 8]);
    }

    #[test]
    fn what_no_keeper_writes_says_nothing() {
        let (first, _) = record(&[]).lines(64);
        // One region of several, and bits that there are not.
        for (byte, bits) in [(30, 1), (31, 4), (30, 65), (24, 1)] {
            let mut line = first.clone();
            line[byte] ^= bits;
            assert_eq!(Record::of(&line), Record::default(), "{byte}");
        }
        let [low, high] = [0, 1].map(|group| tag(HomeId::of_group(group)));
        let coherent = HomeId::of_group(2).start();
        for regions in [
            [high, low],
            [low, low],
            [tag(HomeId::of(1)), low],
            [low, coherent],
        ] {
            assert_eq!(record(&regions).regions(), []);
        }
    }
}
