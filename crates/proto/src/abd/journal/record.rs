//! What is in a file: its header, and records.

use super::crc32c;
use crate::abd::{Layout, MAX_LINE, Stamp};
use crate::wire::Tag;
use alloc::vec::Vec;

/// Bytes of a file's header.
pub const FILE_HEADER: usize = 64;
/// Bytes of a record's header.
pub const RECORD_HEADER: usize = 48;

/// Bytes of which a device writes all or may damage all. A batch ends with its block,
/// so that a write that fails takes nothing with it that was durable before.
pub const BLOCK: usize = 4096;

const FILE_MAGIC: u64 = u64::from_le_bytes(*b"RMJOURNL");
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"rmjR");
const VERSION: u32 = 1;

/// Whose a store is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    /// The rack.
    pub rack: u64,
    /// The group.
    pub group: u16,
    /// The group's lines.
    pub layout: Layout,
    /// The store itself: the life of its member.
    pub store: u64,
}

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FileKind {
    /// Records as they came.
    Journal = 1,
    /// All that the records before [`FileHeader::first`] say.
    Checkpoint = 2,
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileHeader {
    /// Whose it is.
    pub identity: Identity,
    /// What it is.
    pub kind: FileKind,
    /// The number of its first record, or of the first one that a checkpoint does not have.
    pub first: u64,
}

/// What checksums of a file's records begin with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seed(u32);

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Entry<'a> {
    /// A line has this content under this stamp.
    Line {
        /// Which one.
        tag: Tag,
        /// Its stamp.
        stamp: Stamp,
        /// Its content.
        bytes: &'a [u8],
    },
    /// The member lives by this config.
    Config(u32),
    /// A checkpoint ends after so many records.
    End(u64),
}

/// A record that is as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Record<'a> {
    /// Its number: that of the one before it and one.
    pub number: u64,
    /// The number of the first record of its batch.
    pub batch: u64,
    /// What it says.
    pub entry: Entry<'a>,
    /// Bytes that it takes.
    pub len: usize,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let of = |word: &[u8]| word.try_into().map_or(0, u64::from_le_bytes);
    bytes.get(at..at + 8).map_or(0, of)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    let of = |word: &[u8]| word.try_into().map_or(0, u32::from_le_bytes);
    bytes.get(at..at + 4).map_or(0, of)
}

impl FileHeader {
    /// Its bytes.
    pub fn encode(&self) -> [u8; FILE_HEADER] {
        let Identity {
            rack,
            group,
            layout,
            store,
        } = self.identity;
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let words = [
            FILE_MAGIC,
            pair(VERSION, self.kind as u32),
            rack,
            pair(group.into(), layout.line),
            layout.bytes,
            store,
            self.first,
        ];
        let mut bytes = [0; FILE_HEADER];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c(0, &bytes[..FILE_HEADER - 4]);
        bytes[FILE_HEADER - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// From the bytes that a file begins with. None: they are none, or damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..FILE_HEADER)?;
        let sound = crc32c(0, &bytes[..FILE_HEADER - 4]) == half(bytes, FILE_HEADER - 4);
        if !sound || word(bytes, 0) != FILE_MAGIC || half(bytes, 8) != VERSION {
            return None;
        }
        let kind = match half(bytes, 12) {
            1 => FileKind::Journal,
            2 => FileKind::Checkpoint,
            _ => return None,
        };
        let layout = Layout::new(half(bytes, 28), word(bytes, 32))?;
        let identity = Identity {
            rack: word(bytes, 16),
            group: u16::try_from(half(bytes, 24)).ok()?,
            layout,
            store: word(bytes, 40),
        };
        let first = word(bytes, 48);
        Some(FileHeader {
            identity,
            kind,
            first,
        })
    }

    /// What checksums of its records begin with.
    pub fn seed(&self) -> Seed {
        let store = crc32c(self.kind as u32, &self.identity.store.to_le_bytes());
        Seed(crc32c(store, &self.first.to_le_bytes()))
    }
}

const fn padded(len: usize) -> usize {
    len.next_multiple_of(8)
}

fn checksum(Seed(seed): Seed, offset: u64, record: &[u8]) -> u32 {
    let at = crc32c(seed, &offset.to_le_bytes());
    crc32c(crc32c(at, &record[..44]), &record[RECORD_HEADER..])
}

/// Writes a record behind others, to be at this offset of its file.
pub fn write(
    into: &mut Vec<u8>,
    (seed, offset): (Seed, u64),
    (number, batch): (u64, u64),
    entry: &Entry<'_>,
) {
    let none: &[u8] = &[];
    let (kind, a, b, body) = match *entry {
        Entry::Line { tag, stamp, bytes } => (1u32, tag.0, stamp.0, bytes),
        Entry::Config(number) => (2, number.into(), 0, none),
        Entry::End(records) => (3, records, 0, none),
    };
    let from = into.len();
    into.extend_from_slice(&RECORD_MAGIC.to_le_bytes());
    into.extend_from_slice(&(body.len() as u32).to_le_bytes());
    for word in [number, batch, a, b] {
        into.extend_from_slice(&word.to_le_bytes());
    }
    into.extend_from_slice(&u64::from(kind).to_le_bytes());
    into.extend_from_slice(body);
    into.resize(from + RECORD_HEADER + padded(body.len()), 0);
    let crc = checksum(seed, offset, &into[from..]);
    into[from + 44..from + 48].copy_from_slice(&crc.to_le_bytes());
}

/// The record that bytes begin with, which are at this offset of its file. None: there is none, or
/// it is damaged.
pub fn read(bytes: &[u8], (seed, offset): (Seed, u64)) -> Option<Record<'_>> {
    let len = half(bytes, 4);
    if half(bytes, 0) != RECORD_MAGIC || len > MAX_LINE {
        return None;
    }
    let whole = RECORD_HEADER + padded(len as usize);
    let record = bytes.get(..whole)?;
    if checksum(seed, offset, record) != half(record, 44) {
        return None;
    }
    let (a, b) = (word(record, 24), word(record, 32));
    let entry = match (half(record, 40), len) {
        (1, _) => Entry::Line {
            tag: Tag(a),
            stamp: Stamp(b),
            bytes: &record[RECORD_HEADER..][..len as usize],
        },
        (2, 0) => Entry::Config(u32::try_from(a).ok()?),
        (3, 0) => Entry::End(a),
        _ => return None,
    };
    Some(Record {
        number: word(record, 8),
        batch: word(record, 16),
        entry,
        len: whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn header() -> FileHeader {
        FileHeader {
            identity: Identity {
                rack: 7,
                group: 3,
                layout: Layout::new(64, 4096).unwrap(),
                store: 0xfeed,
            },
            kind: FileKind::Journal,
            first: 12,
        }
    }

    #[test]
    fn a_header_is_itself_and_no_bit_of_it_may_change() {
        let bytes = header().encode();
        assert_eq!(FileHeader::decode(&bytes), Some(header()));
        for bit in 0..FILE_HEADER * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(&bytes), None, "bit {bit}");
        }
        assert_eq!(FileHeader::decode(&bytes[..FILE_HEADER - 1]), None);
    }

    #[test]
    fn a_record_is_itself_at_its_place_and_no_bit_of_it_may_change() {
        let line: vec::Vec<u8> = (0..64).collect();
        let tag = Tag(64);
        let entries = [
            Entry::Line {
                tag,
                stamp: Stamp(9),
                bytes: &line,
            },
            Entry::Config(4),
            Entry::End(5),
        ];
        let seed = header().seed();
        for entry in entries {
            let mut bytes = vec![];
            write(&mut bytes, (seed, 64), (5, 4), &entry);
            let record = read(&bytes, (seed, 64)).unwrap();
            assert_eq!((record.number, record.batch, record.entry), (5, 4, entry));
            assert_eq!(record.len, bytes.len());
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(read(&bytes, (seed, 64)), None, "bit {bit}");
            }
            for len in 0..bytes.len() {
                assert_eq!(read(&bytes[..len], (seed, 64)), None);
            }
            // Elsewhere, in another file and in another store it is none.
            assert_eq!(read(&bytes, (seed, 72)), None);
            let mut other = header();
            other.first += 1;
            assert_eq!(read(&bytes, (other.seed(), 64)), None);
            let mut other = header();
            other.identity.store += 1;
            assert_eq!(read(&bytes, (other.seed(), 64)), None);
        }
    }

    #[test]
    fn the_longest_line_is_a_record_and_a_longer_one_is_none() {
        let seed = header().seed();
        for (over, is) in [(0, true), (1, false)] {
            let line = vec![7; MAX_LINE as usize + over];
            let entry = Entry::Line {
                tag: Tag(64),
                stamp: Stamp(9),
                bytes: &line,
            };
            let mut bytes = vec![];
            write(&mut bytes, (seed, 64), (5, 4), &entry);
            assert_eq!(read(&bytes, (seed, 64)).is_some(), is, "{over} more");
        }
    }
}
