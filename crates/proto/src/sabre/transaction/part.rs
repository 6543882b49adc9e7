//! What a transaction writes at one home, as it travels: 24 bytes for each object, then their
//! contents, one behind the other.

use super::super::operation::Ref;
use super::{MAX_CONTENT, MAX_OBJECTS};
use crate::wire::{HomeId, Tag};
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes in front for each object.
pub(in super::super) const ENTRY: usize = 24;
/// Bytes of a part at most.
pub(super) const MAX_PART: u32 = (MAX_OBJECTS * ENTRY + MAX_CONTENT) as u32;

/// An object that is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// The object.
    pub object: Ref,
    /// The version that it was read under; 0 if it was not read.
    pub expected: u64,
    /// Bytes of its new content; [`NOT_WRITTEN`] if it was only read.
    pub len: u32,
}

/// The length of an object that is not written: a home only locks it, and a keeper only validates
/// it. In a home's part, one of another home says who decides.
pub const NOT_WRITTEN: u32 = u32::MAX;

impl Entry {
    /// Whether it is written.
    pub fn is_written(&self) -> bool {
        self.len != NOT_WRITTEN
    }

    /// As it travels.
    pub(in super::super) fn encode(&self, into: &mut Vec<u8>) {
        into.extend(self.object.tag.0.to_be_bytes());
        into.extend(self.expected.to_be_bytes());
        into.extend(self.object.generation.to_be_bytes());
        into.extend(self.len.to_be_bytes());
    }
}

/// A part as its coordinator counts it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PartOf {
    /// Its first object.
    pub first: Tag,
    /// Objects.
    pub objects: u32,
    /// Bytes, those in front included.
    pub bytes: u32,
}

impl PartOf {
    /// Whose objects they are.
    pub fn home(&self) -> HomeId {
        self.first.home()
    }
}

/// The parts of a transaction, in the order of homes, with their bytes.
#[derive(Clone, Default, Debug)]
pub struct Parts {
    /// What each is.
    pub of: Vec<PartOf>,
    /// The bytes of each.
    pub bytes: Vec<Vec<u8>>,
}

impl Parts {
    /// All of it for one keeper, of objects in the order of addresses; the first one that is
    /// written says which.
    pub(super) fn push_kept<'a>(
        &mut self,
        all: impl Iterator<Item = (Entry, &'a [u8])> + Clone,
    ) -> Option<PartOf> {
        let mut bytes = Vec::new();
        all.clone().for_each(|(entry, _)| entry.encode(&mut bytes));
        let objects = (bytes.len() / ENTRY) as u32;
        let mut written = all.filter(|(entry, _)| entry.is_written()).peekable();
        let first = written.peek()?.0.object.tag;
        written.for_each(|(_, content)| bytes.extend(content));
        let part = PartOf {
            first,
            objects,
            bytes: bytes.len() as u32,
        };
        self.bytes.push(bytes);
        Some(part)
    }

    /// Of these objects and contents, in the order of addresses. A home that is to write gets the
    /// `deciders` as well: behind its own objects, since groups' homes are behind all others.
    pub fn new<'a>(
        used: impl Iterator<Item = (Entry, &'a [u8])> + Clone,
        deciders: &[Entry],
    ) -> Self {
        let mut parts = Parts::default();
        let mut writes = Vec::new();
        for (entry, _) in used.clone() {
            let tag = entry.object.tag;
            if parts.of.last().is_none_or(|part| part.home() != tag.home()) {
                parts.of.push(PartOf {
                    first: tag,
                    objects: 0,
                    bytes: 0,
                });
                parts.bytes.push(Vec::new());
                writes.push(false);
            }
            if let Some(writes) = writes.last_mut() {
                *writes |= entry.is_written();
            }
            let (part, bytes) = (parts.of.last_mut(), parts.bytes.last_mut());
            let (Some(part), Some(bytes)) = (part, bytes) else {
                continue;
            };
            part.objects += 1;
            entry.encode(bytes);
        }
        let all = parts.of.iter_mut().zip(&mut parts.bytes).zip(writes);
        for ((part, bytes), _) in all.filter(|(_, writes)| *writes) {
            part.objects += deciders.len() as u32;
            deciders.iter().for_each(|entry| entry.encode(bytes));
        }
        for (entry, content) in used.filter(|(entry, _)| entry.is_written()) {
            let home = entry.object.tag.home();
            let at = parts.of.iter().position(|part| part.home() == home);
            if let Some(bytes) = at.and_then(|at| parts.bytes.get_mut(at)) {
                bytes.extend(content);
            }
        }
        for (part, bytes) in parts.of.iter_mut().zip(&parts.bytes) {
            part.bytes = bytes.len() as u32;
        }
        parts
    }
}

/// The objects of a part and where their contents are; nothing if it is not so many objects in the
/// order of addresses with all their bytes.
pub fn decode(part: &[u8], objects: u32) -> Option<Vec<(Entry, Range<usize>)>> {
    let front = (objects as usize).checked_mul(ENTRY)?;
    let entries = part.get(..front)?.chunks_exact(ENTRY);
    let (mut found, mut at) = (Vec::new(), front);
    for entry in entries {
        let word = |at: usize| {
            let bytes = entry.get(at..at + 8).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u64::from_be_bytes)
        };
        let tag = Tag(word(0));
        let last = found.last().map(|(e, _): &(Entry, _)| e.object.tag);
        if last.is_some_and(|last| last >= tag) {
            return None;
        }
        let (generation, len) = ((word(16) >> 32) as u32, word(16) as u32);
        let content = if len == NOT_WRITTEN { 0 } else { len };
        let end = at.checked_add(content as usize)?;
        let entry = Entry {
            object: Ref { tag, generation },
            expected: word(8),
            len,
        };
        found.push((entry, at..end));
        at = end;
    }
    (at == part.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(home: u16, offset: u64, len: u32) -> Entry {
        let tag = Tag(HomeId::of(home).start().0 + offset);
        let object = Ref { tag, generation: 7 };
        let expected = 4;
        Entry {
            object,
            expected,
            len,
        }
    }

    #[test]
    fn parts_are_read_as_they_were_written() {
        let writes = [
            (entry(1, 64, 3), &b"abc"[..]),
            (entry(1, 128, 0), &b""[..]),
            (entry(3, 64, 2), &b"de"[..]),
        ];
        let parts = Parts::new(writes.iter().copied(), &[]);
        assert_eq!(parts.of.len(), 2);
        assert_eq!((parts.of[0].objects, parts.of[0].bytes), (2, 51));
        let first = decode(&parts.bytes[0], 2).unwrap();
        assert_eq!(first[0], (writes[0].0, 48..51));
        assert_eq!(first[1], (writes[1].0, 51..51));
        let second = decode(&parts.bytes[1], 1).unwrap();
        assert_eq!(&parts.bytes[1][second[0].1.clone()], b"de");
    }

    #[test]
    fn what_a_keeper_only_validates_has_no_content() {
        let read = Entry {
            len: NOT_WRITTEN,
            ..entry(1, 64, 0)
        };
        let all = [(read, &b""[..]), (entry(2, 64, 2), &b"de"[..])];
        let mut parts = Parts::default();
        let part = parts.push_kept(all.iter().copied()).unwrap();
        assert_eq!((part.first, part.objects), (all[1].0.object.tag, 2));
        let found = decode(&parts.bytes[0], 2).unwrap();
        assert_eq!((found[0].0, found[1].0), (all[0].0, all[1].0));
        assert_eq!(&parts.bytes[0][found[1].1.clone()], b"de");
        assert_eq!(Parts::default().push_kept([all[0]].into_iter()), None);
    }

    #[test]
    fn a_home_that_writes_is_told_who_decides() {
        let read = Entry {
            len: NOT_WRITTEN,
            ..entry(1, 128, 0)
        };
        let decider = Entry {
            len: NOT_WRITTEN,
            ..entry(40, 64, 0)
        };
        let only_read = Entry {
            len: NOT_WRITTEN,
            ..entry(2, 64, 0)
        };
        let all = [
            (entry(1, 64, 3), &b"abc"[..]),
            (read, &b""[..]),
            (only_read, &b""[..]),
        ];
        let parts = Parts::new(all.iter().copied(), &[decider]);
        let objects: Vec<u32> = parts.of.iter().map(|part| part.objects).collect();
        assert_eq!(objects, [3, 1]);
        let first = decode(&parts.bytes[0], 3).unwrap();
        let entries: Vec<Entry> = first.iter().map(|(entry, _)| *entry).collect();
        assert_eq!(entries, [all[0].0, read, decider]);
        assert_eq!(&parts.bytes[0][first[0].1.clone()], b"abc");
        assert_eq!(decode(&parts.bytes[1], 1).unwrap()[0].0, only_read);
    }

    #[test]
    fn what_contradicts_itself_is_no_part() {
        let writes = [
            (entry(1, 64, 3), &b"abc"[..]),
            (entry(1, 128, 1), &b"d"[..]),
        ];
        let part = Parts::new(writes.iter().copied(), &[]).bytes[0].clone();
        assert!(decode(&part, 2).is_some());
        for objects in [0, 1, 3, u32::MAX] {
            assert_eq!(decode(&part, objects), None, "{objects}");
        }
        assert_eq!(decode(&part[..part.len() - 1], 2), None);
        // One object twice.
        let twice = [writes[0], writes[0]];
        let part = Parts::new(twice.iter().copied(), &[]).bytes[0].clone();
        assert_eq!(decode(&part, 2), None);
    }
}
