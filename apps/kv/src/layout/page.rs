//! A page: bytes that hold records. A bucket's head page is what the bucket's lock protects, and
//! travels with it; the others are in memory, read and written under the lock.
//!
//! ```text
//! page      0 magic: u64       other than the store's: the page was never written, and is empty
//!           8 version: u64     head page only: grows with every change to the bucket
//!          16 epoch: u64       head page only: the flushes up to this one have been applied
//!          24 next: u64        address of the next page of the bucket, 0 at the end
//!          32 used: u32        bytes in use, this header included
//!          36 count: u32       records
//!          40 deleted: u64     head page only: the version at the last removal
//!          48 soonest: u64     head page only: no record expires before this (ms); 0: none does
//!          56 watchers: u64    head page only: bit n: node n is told of changes of keys
//!          64 records, packed
//!
//! record    0 hash: u32 | key_len: u16 | db: u8 | flags: u8
//!           8 val_len: u32 | size: u32      size: the whole record, a multiple of 8
//!          16 expiry: u64                   ms since 1970, 0 for never
//!          24 stamp: u64                    the bucket's version at the record's last change
//!          32 key, padded to 8, then the value; with flag EXTENT instead its address: u64 and
//!             capacity: u64; of a collection its trees
//!
//! flags     bit 0 EXTENT, bits 1 to 3 the kind of the value
//! ```
//!
//! Everything here reads pages that may be garbage: lengths are checked against the page,
//! walks end.

use rackmem::window::Window;

use super::kind::Kind;
use crate::memory::LONGEST_PAGE;

pub(super) const VERSION: usize = 8;
pub(super) const EPOCH: usize = 16;
pub(super) const NEXT: usize = 24;
pub(super) const USED: usize = 32;
pub(super) const COUNT: usize = 36;
pub(super) const DELETED: usize = 40;
pub(super) const SOONEST: usize = 48;
pub(super) const WATCHERS: usize = 56;
/// Bytes before the first record.
pub(crate) const HEADER: usize = 64;
/// Bytes of a record before its key.
pub(crate) const RECORD: usize = 32;
/// Bytes that stand in for a value that lives elsewhere.
pub(crate) const EXTENT_REF: usize = 16;
/// The flag of a record whose value lives in an extent.
pub(super) const EXTENT: u64 = 1;
/// What stands in the place of doubt where a head page was moved.
pub(super) const MOVED: u64 = 2;
/// The database's place in a record's first word.
pub(super) const DB_SHIFT: u32 = 48;
/// The flags' place in it.
const FLAGS_SHIFT: u32 = 56;
/// The kind's place in it.
const KIND_SHIFT: u32 = FLAGS_SHIFT + 1;
const ID_MASK: u64 = (1 << FLAGS_SHIFT) - 1;

/// Sizes that follow from the block's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// Bytes in a page.
    pub page: usize,
    /// Tells an initialized page from old memory.
    pub magic: u64,
}

impl Geometry {
    /// That of a store with pages of so many bytes.
    pub fn new(page: usize, magic: u64) -> Self {
        Self { page, magic }
    }

    /// The longest key.
    pub fn key_max(&self) -> usize {
        self.page / 4
    }

    /// The longest value kept inside a page.
    pub fn inline_max(&self) -> usize {
        self.page / 4
    }
}

const _: () = assert!(LONGEST_PAGE <= u16::MAX as usize);
// The largest record must fit an otherwise empty page of the smallest length.
const _: () = assert!(HEADER + RECORD + 256 / 4 + 256 / 4 <= 256);

/// A key with everything that is computed from it once.
#[derive(Clone, Copy)]
pub(crate) struct KeyId<'a> {
    pub key: &'a [u8],
    pub db: u8,
    pub hash: u64,
}

impl KeyId<'_> {
    /// A record's first word without its flags.
    #[inline]
    pub fn word(&self) -> u64 {
        (self.hash >> 32) | (self.key.len() as u64) << 32 | u64::from(self.db) << DB_SHIFT
    }
}

/// Where a value of its own memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub addr: u64,
    /// Bytes allocated.
    pub capacity: usize,
}

/// A record's fields, without its key and value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Offset in the page.
    pub at: usize,
    /// Bytes in all.
    pub size: usize,
    word: u64,
    pub val_len: usize,
    pub expiry: u64,
    pub stamp: u64,
    pub extent: Option<Extent>,
    pub kind: Kind,
}

impl Record {
    pub fn key_len(&self) -> usize {
        (self.word >> 32) as usize & 0xffff
    }

    pub fn db(&self) -> u8 {
        (self.word >> DB_SHIFT) as u8
    }

    /// Offset of the key in the page.
    pub fn key_at(&self) -> usize {
        self.at + RECORD
    }

    /// Offset in the page of the value, or of its extent's address.
    #[inline]
    pub fn value_at(&self) -> usize {
        self.at + RECORD + self.key_len().next_multiple_of(8)
    }

    /// Whether the record is past its time.
    pub fn expired(&self, now: impl FnOnce() -> u64) -> bool {
        self.expiry != 0 && self.expiry <= now()
    }
}

/// Bytes a record takes.
pub(crate) fn record_size(key_len: usize, value_len: usize) -> usize {
    RECORD + key_len.next_multiple_of(8) + value_len.next_multiple_of(8)
}

/// A page to read from.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    pub view: Window<'a>,
    initialized: bool,
}

impl<'a> Page<'a> {
    #[inline]
    pub fn new(view: Window<'a>, geometry: &Geometry) -> Self {
        Self {
            view,
            initialized: view.u64(0) == geometry.magic,
        }
    }

    #[inline]
    fn field(&self, at: usize) -> u64 {
        if self.initialized {
            self.view.u64(at)
        } else {
            0
        }
    }

    pub fn initialized(&self) -> bool {
        self.initialized
    }

    #[inline]
    pub fn version(&self) -> u64 {
        self.field(VERSION)
    }

    #[inline]
    pub fn epoch(&self) -> u64 {
        self.field(EPOCH)
    }

    #[inline]
    pub fn next(&self) -> u64 {
        self.field(NEXT)
    }

    pub fn deleted(&self) -> u64 {
        self.field(DELETED)
    }

    pub fn soonest(&self) -> u64 {
        self.field(SOONEST)
    }

    /// The nodes that are told of changes, as bits.
    #[inline]
    pub fn watchers(&self) -> u64 {
        self.field(WATCHERS)
    }

    #[inline]
    pub fn used(&self) -> usize {
        let used = self.field(USED) as u16 as usize;
        used.clamp(HEADER, self.view.len().max(HEADER))
    }

    pub fn count(&self) -> usize {
        (self.field(USED) >> 32) as usize
    }

    /// Bits of the bucket's number that are those of its keys' hashes.
    #[inline]
    pub fn depth(&self) -> u8 {
        (self.field(USED) >> 16) as u8
    }

    /// Whether it is not certain that there is such a bucket.
    #[inline]
    pub fn is_doubtful(&self) -> bool {
        self.field(USED) >> 24 & 0xff != 0
    }

    /// Whether the bucket has another head page by now, elsewhere. A head page that has not says
    /// nothing about its bucket: it is doubtful, too.
    #[inline]
    pub fn is_moved(&self) -> bool {
        self.field(USED) >> 24 & 0xff == MOVED
    }

    /// The records, as far as they make sense.
    pub fn records(&self) -> Records<'a> {
        Records {
            page: *self,
            at: HEADER,
        }
    }

    /// The record of `id`.
    #[inline]
    pub fn find(&self, id: &KeyId<'_>) -> Option<Record> {
        let (mut at, end, want) = (HEADER, self.used(), id.word());
        while at + RECORD <= end {
            let size = (self.view.u64(at + 8) >> 32) as usize;
            if size < RECORD || size > end - at {
                return None;
            }
            if self.view.u64(at) & ID_MASK == want && self.view.eq(at + RECORD, id.key) {
                return self.record(at, size);
            }
            at += size;
        }
        None
    }

    /// The value of a record that lies in the page.
    pub fn inline_value(&self, record: &Record) -> Vec<u8> {
        let len = if record.extent.is_some() {
            0
        } else {
            record.val_len
        };
        let mut bytes = vec![0; len];
        self.view.read(record.value_at(), &mut bytes);
        bytes
    }

    /// The record that starts at `at`, if one does.
    pub fn record_from(&self, at: usize) -> Option<Record> {
        let end = self.used();
        if at + RECORD > end {
            return None;
        }
        let size = (self.view.u64(at + 8) >> 32) as usize;
        if size < RECORD || size > end - at {
            return None;
        }
        self.record(at, size)
    }

    /// The record at `at`, when its parts lie within its `size` bytes.
    #[inline]
    fn record(&self, at: usize, size: usize) -> Option<Record> {
        let word = self.view.u64(at);
        let val_len = self.view.u64(at + 8) as u32 as usize;
        let (expiry, stamp) = (self.view.u64(at + 16), self.view.u64(at + 24));
        let mut record = Record {
            at,
            size,
            word,
            val_len,
            expiry,
            stamp,
            extent: None,
            kind: Kind::from_bits(word >> KIND_SHIFT & 7)?,
        };
        let body = at + size - record.value_at().min(at + size);
        if word >> FLAGS_SHIFT & EXTENT != 0 {
            let addr = self.view.u64(record.value_at());
            let capacity = self.view.u64(record.value_at() + 8) as usize;
            record.extent = Some(Extent { addr, capacity });
            (body >= EXTENT_REF && val_len <= capacity && val_len <= crate::MAX_VALUE)
                .then_some(record)
        } else {
            (val_len <= body).then_some(record)
        }
    }
}

/// Walks the records of a page.
pub(crate) struct Records<'a> {
    page: Page<'a>,
    at: usize,
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let record = self.page.record_from(self.at)?;
        self.at += record.size;
        Some(record)
    }
}
