//! What operations see of a stored value.

use std::ops::Range;

use rackmem::window::Window;

use crate::layout::kind::Kind;
use crate::layout::page::{Extent, Page, Record};

/// What is known of a key besides its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What the value is.
    pub kind: Kind,
    /// Bytes in the value; of a collection, in what the key's record has of it.
    pub len: usize,
    /// When the key expires, in ms since 1970; 0 for never.
    pub expiry: u64,
    /// Whether the value has memory of its own outside its page.
    pub extent: bool,
    /// Bytes that the record and its extent take: see [`Db::footprint`](super::Db::footprint).
    pub footprint: usize,
    pub(crate) stamp: u64,
}

impl From<&Record> for Meta {
    fn from(record: &Record) -> Self {
        Self {
            kind: record.kind,
            len: record.val_len,
            expiry: record.expiry,
            extent: record.extent.is_some(),
            footprint: record.size + record.extent.map_or(0, |e| e.capacity),
            stamp: record.stamp,
        }
    }
}

/// A value, or the wanted part of it, wherever it lies.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    /// In a page; possibly torn while a snapshot runs.
    Window {
        view: Window<'a>,
        at: usize,
        len: usize,
    },
    /// Copied out.
    Bytes(&'a [u8]),
    /// Elsewhere, and not fetched.
    Remote(Extent),
}

impl Value<'_> {
    /// Bytes that `append_to` adds.
    pub fn len(&self) -> usize {
        match self {
            Self::Window { len, .. } => *len,
            Self::Bytes(bytes) => bytes.len(),
            Self::Remote(_) => 0,
        }
    }

    /// Copies the value behind what `out` holds.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Window { view, at, len } => {
                let start = out.len();
                out.resize(start + len, 0);
                view.read(*at, &mut out[start..]);
            }
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Remote(_) => {}
        }
    }

    /// Copies a short value to the stack; `None` when it has more than `N` bytes.
    pub fn short<const N: usize>(&self) -> Option<([u8; N], usize)> {
        let mut bytes = [0; N];
        match self {
            Self::Window { view, at, len } if *len <= N => view.read(*at, &mut bytes[..*len]),
            Self::Bytes(have) if have.len() <= N => bytes[..have.len()].copy_from_slice(have),
            _ => return None,
        }
        Some((bytes, self.len()))
    }
}

/// Which bytes of a value a reader wants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach {
    /// None: the meta data only.
    Nothing,
    All,
    /// As GETRANGE counts: both ends included, negative from the end.
    Span(i64, i64),
}

impl Reach {
    /// The bytes wanted of a value of `len` bytes.
    pub fn of(self, len: usize) -> Range<usize> {
        match self {
            Self::Nothing => 0..0,
            Self::All => 0..len,
            Self::Span(first, last) => {
                let len = len as i64;
                let from_start = |i: i64| if i < 0 { len.saturating_add(i) } else { i };
                if first < 0 && last < 0 && first > last {
                    return 0..0;
                }
                let first = from_start(first).max(0);
                let last = from_start(last).max(0).min(len - 1);
                if first > last {
                    0..0
                } else {
                    first as usize..last as usize + 1
                }
            }
        }
    }
}

/// Memory to be freed: mostly none, often one piece, rarely many; and collections whose nodes are.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    one: Option<Extent>,
    more: Vec<Extent>,
    collections: Vec<(Kind, Vec<u8>)>,
}

impl Extents {
    /// What a record has outside of its page.
    pub fn push_record(&mut self, page: &Page<'_>, record: &Record) {
        if let Some(extent) = record.extent {
            self.push(extent);
        }
        if record.kind != Kind::String {
            self.collections
                .push((record.kind, page.inline_value(record)));
        }
    }

    pub fn push_collection(&mut self, kind: Kind, head: Vec<u8>) {
        self.collections.push((kind, head));
    }

    pub fn collections(&self) -> &[(Kind, Vec<u8>)] {
        &self.collections
    }

    pub fn push(&mut self, extent: Extent) {
        if let Some(extent) = self.one.replace(extent) {
            self.more.push(extent);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Extent> + '_ {
        self.one.into_iter().chain(self.more.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_count_as_redis_counts() {
        for (first, last, want) in [
            (0, 3, 0..4),
            (-3, -1, 8..11),
            (0, -1, 0..11),
            (10, 100, 10..11),
            (11, 20, 0..0),
            (5, 3, 0..0),
            (-1, -5, 0..0),
            (-100, 2, 0..3),
            (i64::MIN, i64::MAX, 0..11),
        ] {
            let got = Reach::Span(first, last).of(11);
            assert_eq!(
                (got.len(), !got.is_empty() && got != want),
                (want.len(), false),
                "{first} {last}"
            );
        }
        assert_eq!(Reach::Span(0, -1).of(0), 0..0);
    }
}
