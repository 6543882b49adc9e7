//! Nodes of a tree, and their bytes.
//!
//! ```text
//! leaf    0: u8 | count | entries: key_len, value_len, key, value
//! inner   level: u8 | count | children: entries below, address: u64, bytes, separator's length,
//!         separator
//! ```
//!
//! Numbers without a type are of variable length, seven bits a byte. What is read may be garbage:
//! lengths are checked.

use crate::error::{Error, Result};

/// Bytes of entries in a leaf, at most, unless it has one entry only.
pub(crate) const LEAF_MAX: usize = 2048;
/// A leaf with fewer is joined with the next, if both fit one.
const LEAF_MIN: usize = LEAF_MAX / 4;
/// Children of an inner node, at most.
pub(crate) const INNER_MAX: usize = 64;
const INNER_MIN: usize = INNER_MAX / 4;
/// Levels of a tree, at most: far more than memory has room for.
pub(crate) const LEVELS_MAX: u8 = 16;

const DAMAGED: Error = Error::Corrupt("a node of a collection makes no sense");

/// Where a node lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub addr: u64,
    pub len: usize,
    /// 0 is a leaf's.
    pub level: u8,
}

/// A part of a tree: where it lies, or the node itself.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    Stored(Place),
    Here(Box<Node>),
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Leaf(Leaf),
    Inner { level: u8, children: Vec<Child> },
}

/// A node as its parent knows it.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    /// No key below is lower, and all keys of children before are. The first child's is not used.
    pub separator: Vec<u8>,
    /// Entries below.
    pub count: u64,
    pub link: Link,
}

/// Entries one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaf {
    pub bytes: Vec<u8>,
    pub count: usize,
}

/// An entry in a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    /// Where it begins and ends among the leaf's bytes.
    pub at: usize,
    pub end: usize,
}

/// Appends a number of variable length.
pub(crate) fn push_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads bytes from the front of others.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub fn word(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

impl Leaf {
    pub fn entries(&self) -> Entries<'_> {
        Entries {
            cursor: Cursor::new(&self.bytes),
        }
    }

    /// The entry at a position.
    pub fn nth(&self, index: usize) -> Option<Entry<'_>> {
        self.entries().nth(index)
    }

    /// Where the entry at a position begins, or the last one ends.
    pub fn offset(&self, index: usize) -> usize {
        self.nth(index).map_or(self.bytes.len(), |entry| entry.at)
    }

    /// The position of the first entry whose key is not lower, and that entry.
    pub fn find(&self, key: &[u8]) -> (usize, Option<Entry<'_>>) {
        let mut index = 0;
        for entry in self.entries() {
            if entry.key >= key {
                return (index, Some(entry));
            }
            index += 1;
        }
        (index, None)
    }

    /// Puts an entry in the place of the bytes `at..end`.
    pub fn splice(&mut self, at: usize, end: usize, key: &[u8], value: &[u8]) {
        let mut head = Vec::with_capacity(10 + key.len() + value.len());
        push_number(key.len() as u64, &mut head);
        push_number(value.len() as u64, &mut head);
        head.extend_from_slice(key);
        head.extend_from_slice(value);
        self.bytes.splice(at..end, head);
    }

    /// Takes out the entries from one position to another.
    pub fn remove(&mut self, from: usize, to: usize) {
        let (at, end) = (self.offset(from), self.offset(to));
        self.bytes.drain(at..end);
        self.count = self.count.saturating_sub(to - from);
    }

    /// Leaves so much that the rest, which is returned, and what stays are as long as they may be.
    /// `appended`: what was put in last is the last entry, and more may follow.
    pub fn split(&mut self, appended: bool) -> Vec<Leaf> {
        let total = self.bytes.len();
        let mut pieces: Vec<Leaf> = vec![Leaf::default()];
        for entry in self.entries() {
            let last = pieces.len() - 1;
            let piece = &mut pieces[last];
            let bytes = &self.bytes[entry.at..entry.end];
            let full = piece.bytes.len() + bytes.len() > LEAF_MAX;
            let half = !appended && last == 0 && entry.at >= total / 2 && total <= 2 * LEAF_MAX;
            if piece.count != 0 && (full || half) {
                pieces.push(Leaf {
                    bytes: bytes.to_vec(),
                    count: 1,
                });
            } else {
                piece.bytes.extend_from_slice(bytes);
                piece.count += 1;
            }
        }
        let rest = pieces.split_off(1);
        *self = pieces.swap_remove(0);
        rest
    }
}

/// The entries of a leaf, as far as they make sense.
pub(crate) struct Entries<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let at = self.cursor.at;
        let (key_len, value_len) = (self.cursor.length()?, self.cursor.length()?);
        let key = self.cursor.take(key_len)?;
        let value = self.cursor.take(value_len)?;
        Some(Entry {
            key,
            value,
            at,
            end: self.cursor.at,
        })
    }
}

impl Node {
    pub fn level(&self) -> u8 {
        match self {
            Node::Leaf(_) => 0,
            Node::Inner { level, .. } => *level,
        }
    }

    /// Bytes as stored, about.
    fn size(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.bytes.len(),
            Node::Inner { children, .. } => children.len(),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        match self {
            Node::Leaf(leaf) => {
                let mut out = Vec::with_capacity(leaf.bytes.len() + 8);
                out.push(0);
                push_number(leaf.count as u64, &mut out);
                out.extend_from_slice(&leaf.bytes);
                out
            }
            Node::Inner { level, children } => {
                let mut out = vec![*level];
                push_number(children.len() as u64, &mut out);
                for child in children {
                    child.encode(&mut out);
                }
                out
            }
        }
    }

    pub fn decode(bytes: &[u8]) -> Result<Node> {
        Self::parse(bytes).ok_or(DAMAGED)
    }

    fn parse(bytes: &[u8]) -> Option<Node> {
        let mut cursor = Cursor::new(bytes);
        let (level, count) = (cursor.byte()?, cursor.length()?);
        if level == 0 {
            let leaf = Leaf {
                bytes: bytes[cursor.at..].to_vec(),
                count,
            };
            return (leaf.entries().count() == count).then_some(Node::Leaf(leaf));
        }
        if level > LEVELS_MAX || count > INNER_MAX || count == 0 {
            return None;
        }
        let children = (0..count).map(|_| Child::parse(&mut cursor, level - 1));
        let children = children.collect::<Option<_>>()?;
        Some(Node::Inner { level, children })
    }
}

impl Child {
    /// A node that was made just now, behind keys below `separator`.
    pub fn of(node: Node, separator: Vec<u8>) -> Child {
        let count = match &node {
            Node::Leaf(leaf) => leaf.count as u64,
            Node::Inner { children, .. } => children.iter().map(|child| child.count).sum(),
        };
        Child {
            separator,
            count,
            link: Link::Here(Box::new(node)),
        }
    }

    /// Only what is stored has bytes.
    fn encode(&self, out: &mut Vec<u8>) {
        let Link::Stored(place) = &self.link else {
            return;
        };
        push_number(self.count, out);
        out.extend_from_slice(&place.addr.to_le_bytes());
        push_number(place.len as u64, out);
        push_number(self.separator.len() as u64, out);
        out.extend_from_slice(&self.separator);
    }

    fn parse(cursor: &mut Cursor<'_>, level: u8) -> Option<Child> {
        let count = cursor.number()?;
        let (addr, len) = (cursor.word()?, cursor.length()?);
        let separator_len = cursor.length()?;
        let separator = cursor.take(separator_len)?.to_vec();
        let place = Place { addr, len, level };
        Some(Child {
            separator,
            count,
            link: Link::Stored(place),
        })
    }

    /// About how much is in the node, in the unit of [`Node::size`]; `None` for inner nodes in
    /// memory.
    fn size(&self) -> Option<usize> {
        match &self.link {
            Link::Stored(place) if place.level == 0 => Some(place.len),
            Link::Stored(_) => None,
            Link::Here(node) => Some(node.size()),
        }
    }

    /// Whether it has so little that it should be joined with a neighbour.
    pub fn is_meagre(&self) -> bool {
        let least = match &self.link {
            Link::Stored(Place { level: 0, .. }) => LEAF_MIN,
            Link::Here(node) if node.level() == 0 => LEAF_MIN,
            _ => INNER_MIN,
        };
        self.size().is_some_and(|size| size < least)
    }

    /// Whether both fit one node.
    pub fn fits_with(&self, other: &Child, level: u8) -> bool {
        let most = if level == 0 { LEAF_MAX } else { INNER_MAX };
        let sizes = self.size().zip(other.size());
        sizes.is_some_and(|(one, two)| one + two <= most)
    }
}

/// The shortest key that is above `low` and not above `high`.
pub(crate) fn separator(low: &[u8], high: &[u8]) -> Vec<u8> {
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    high[..high.len().min(same + 1)].to_vec()
}
