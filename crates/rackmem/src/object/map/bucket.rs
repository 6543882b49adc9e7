//! How a bucket lies in an object.
//!
//! | bytes | |
//! |---|---|
//! | 0…8 | the address of what follows, or 0: of a head its tail, of a tail its next object |
//! | 8…12 | that one's generation |
//! | 12…16 | entries, or [`FREED`] |
//! | 16… | entries, one after the other: hash (4), bytes of the key (2), of the value (2), key, value, zeros up to a multiple of 8 |
//!
//! An object of zeros is an empty bucket.

use super::super::ObjectRef;
use crate::bytes::window::Window;

/// Bytes in front of the entries.
const FRONT: usize = 16;
/// Bytes in front of a key.
const EACH: usize = 8;
/// In place of the number of entries: the map has been freed.
const FREED: u32 = u32::MAX;

/// What a look into an object of a bucket has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// The value: where, and how many bytes.
    Value { at: usize, len: usize },
    /// The key is not here, and nothing follows.
    Absent,
    /// The key is not here; it may be there.
    Tail(ObjectRef),
    /// There is no map any more.
    Freed,
}

/// Bytes that an entry takes.
fn entry_bytes(key: usize, value: usize) -> usize {
    EACH + (key + value).next_multiple_of(8)
}

/// Looks for a key. The bytes may change meanwhile: then what this finds is thrown away, but it
/// ends, and reads nothing outside.
#[inline]
pub fn find(view: &Window<'_>, hash: u32, key: &[u8]) -> Seen {
    let (tail, second) = (view.u64(0), view.u64(8));
    let entries = (second >> 32) as u32;
    if entries == FREED {
        return Seen::Freed;
    }
    let mut at = FRONT;
    for _ in 0..entries {
        if at + EACH > view.len() {
            break;
        }
        let word = view.u64(at);
        let (keys, values) = (
            usize::from((word >> 32) as u16),
            usize::from((word >> 48) as u16),
        );
        if word as u32 == hash && keys == key.len() && view.eq(at + EACH, key) {
            let at = at + EACH + keys;
            let len = values.min(view.len().saturating_sub(at));
            return Seen::Value { at, len };
        }
        at += entry_bytes(keys, values);
    }
    match tail {
        0 => Seen::Absent,
        tail => Seen::Tail(ObjectRef::new(tail, second as u32)),
    }
}

/// A key and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub hash: u32,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl Entry {
    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        entry_bytes(self.key.len(), self.value.len())
    }
}

/// What is in one object of a bucket.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Part {
    pub tail: Option<ObjectRef>,
    pub entries: Vec<Entry>,
    pub freed: bool,
}

impl Part {
    /// A map's end.
    pub fn freed() -> Self {
        Part {
            freed: true,
            ..Part::default()
        }
    }

    /// From an object's bytes. What is cut off is left out.
    pub fn of(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            let word = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
            u64::from_le_bytes(word.unwrap_or_default())
        };
        let (tail, second) = (word(0), word(8));
        let count = (second >> 32) as u32;
        let mut part = Part {
            tail: (tail != 0).then(|| ObjectRef::new(tail, second as u32)),
            freed: count == FREED,
            ..Part::default()
        };
        let mut at = FRONT;
        for _ in 0..if part.freed { 0 } else { count } {
            let first = word(at);
            let (keys, values) = (
                usize::from((first >> 32) as u16),
                usize::from((first >> 48) as u16),
            );
            let content = bytes.get(at + EACH..at + EACH + keys + values);
            let Some((key, value)) = content.map(|content| content.split_at(keys)) else {
                break;
            };
            part.entries.push(Entry {
                hash: first as u32,
                key: key.to_vec(),
                value: value.to_vec(),
            });
            at += entry_bytes(keys, values);
        }
        part
    }

    /// Bytes of it.
    pub fn len(&self) -> usize {
        FRONT + self.entries.iter().map(Entry::bytes).sum::<usize>()
    }

    /// As an object has it.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        let tail = self.tail.unwrap_or_default();
        let count = if self.freed {
            FREED
        } else {
            self.entries.len() as u32
        };
        bytes.extend(tail.addr().to_le_bytes());
        bytes.extend((u64::from(count) << 32 | u64::from(tail.generation())).to_le_bytes());
        for entry in &self.entries {
            let (keys, values) = (entry.key.len() as u64, entry.value.len() as u64);
            let first = u64::from(entry.hash) | keys << 32 | values << 48;
            bytes.extend(first.to_le_bytes());
            bytes.extend(&entry.key);
            bytes.extend(&entry.value);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes
    }

    /// A key's entry.
    pub fn find(&self, hash: u32, key: &[u8]) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.hash == hash && entry.key == key)
    }

    /// Takes a key out.
    pub fn take(&mut self, hash: u32, key: &[u8]) -> Option<Entry> {
        let is = |entry: &Entry| entry.hash == hash && entry.key == key;
        let at = self.entries.iter().position(is)?;
        Some(self.entries.swap_remove(at))
    }

    /// Whether it takes no more than so many bytes with this entry in place of its key's.
    pub fn has_room(&self, entry: &Entry, room: usize) -> bool {
        let before = self.find(entry.hash, &entry.key).map_or(0, Entry::bytes);
        self.len() - before + entry.bytes() <= room
    }

    /// Puts an entry in if it takes no more than so many bytes then; else it comes back.
    pub fn put(&mut self, entry: Entry, room: usize) -> Result<(), Entry> {
        if self.len() + entry.bytes() > room {
            return Err(entry);
        }
        self.entries.push(entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn entry(hash: u32, key: &[u8], value: &[u8]) -> Entry {
        let (key, value) = (key.to_vec(), value.to_vec());
        Entry { hash, key, value }
    }

    fn words(bytes: &[u8]) -> Vec<AtomicU64> {
        let chunks = bytes.as_chunks::<8>().0.iter();
        chunks
            .map(|c| AtomicU64::new(u64::from_le_bytes(*c)))
            .collect()
    }

    #[test]
    fn what_is_put_in_is_found() {
        let mut part = Part::default();
        let long = vec![7; 300];
        for (hash, key, value) in [
            (1, &b""[..], &b""[..]),
            (2, b"a", b"value"),
            (2, b"b", &long),
            (3, b"eight by", b""),
        ] {
            part.put(entry(hash, key, value), 1000).unwrap();
        }
        assert!(part.put(entry(9, b"x", &[0; 700]), 1000).is_err());
        part.tail = Some(ObjectRef::new(0x1_2345_6789, 77));
        let bytes = part.bytes();
        assert_eq!(bytes.len(), part.len());
        assert_eq!(Part::of(&bytes), part);
        let words = words(&bytes);
        let view = Window::new(&words, 0, bytes.len());
        for entry in &part.entries {
            let Seen::Value { at, len } = find(&view, entry.hash, &entry.key) else {
                panic!("{entry:?}")
            };
            assert_eq!(&bytes[at..at + len], entry.value);
        }
        let tail = Seen::Tail(ObjectRef::new(0x1_2345_6789, 77));
        assert_eq!(find(&view, 2, b"c"), tail);
        assert_eq!(find(&view, 4, b"a"), tail);
        assert_eq!(part.take(2, b"b").unwrap().value, long);
        assert_eq!(part.take(2, b"b"), None);
        let freed = Part::freed().bytes();
        assert!(Part::of(&freed).freed);
        let words = super::tests::words(&freed);
        assert_eq!(find(&Window::new(&words, 0, 16), 1, b""), Seen::Freed);
        // Zeros are an empty one.
        assert_eq!(Part::of(&[0; 1000]), Part::default());
        assert_eq!(Part::of(&[]), Part::default());
    }

    /// What a reader may see before its look is thrown away.
    #[test]
    fn garbage_of_every_kind_is_borne() {
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..2000 {
            let len = random.usize(..40);
            let bytes: Vec<u8> = (0..len * 8)
                .map(|_| if random.bool() { random.u8(..) } else { 0 })
                .collect();
            let words = words(&bytes);
            let view = Window::new(&words, 0, bytes.len());
            if let Seen::Value { at, len } = find(&view, random.u32(..4), b"") {
                assert!(at + len <= bytes.len());
            }
            let part = Part::of(&bytes);
            assert!(
                part.entries
                    .iter()
                    .map(|e| e.key.len() + e.value.len())
                    .sum::<usize>()
                    <= bytes.len()
            );
        }
    }
}
