//! Values as they are written: in the plainest encodings, which every Redis reads that knows their
//! type.

use super::kind;
use super::listpack::ListPack;
use super::value::{Group, Stream, StreamEntry, StreamId, StreamTail, Value};
use crate::number::parse_i64;

/// Bytes of a node of a stream before another is begun, and entries: Redis' own defaults.
const NODE_BYTES: usize = 4096;
const NODE_ENTRIES: usize = 100;
/// Digits of the numbers that are written as such, a sign with them.
const DIGITS: usize = 11;

/// An encoded value, for [`super::Writer::key`] and [`super::dump::payload`].
///
/// A collection is begun with the number of its elements, of which exactly so many must follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    pub(crate) kind: u8,
    pub(crate) bytes: Vec<u8>,
}

impl Body {
    fn new(kind: u8) -> Self {
        Self {
            kind,
            bytes: Vec::new(),
        }
    }

    fn counted(kind: u8, count: usize) -> Self {
        let mut body = Self::new(kind);
        length(&mut body.bytes, count as u64);
        body
    }

    /// A string.
    pub fn string(bytes: &[u8]) -> Self {
        let mut body = Self::new(kind::STRING);
        string(&mut body.bytes, bytes);
        body
    }

    /// A list; its elements follow ([`Body::element`]).
    pub fn list(count: usize) -> Self {
        Self::counted(kind::LIST, count)
    }

    /// A set; its members follow ([`Body::element`]).
    pub fn set(count: usize) -> Self {
        Self::counted(kind::SET, count)
    }

    /// A hash; so many pairs of [`Body::element`]s follow.
    pub fn hash(count: usize) -> Self {
        Self::counted(kind::HASH, count)
    }

    /// A sorted set; its members follow ([`Body::scored`]).
    pub fn sorted_set(count: usize) -> Self {
        Self::counted(kind::ZSET, count)
    }

    /// An element of a list, a member of a set, a field of a hash or its value.
    pub fn element(&mut self, bytes: &[u8]) {
        string(&mut self.bytes, bytes);
    }

    /// A member of a sorted set.
    pub fn scored(&mut self, member: &[u8], score: f64) {
        string(&mut self.bytes, member);
        self.bytes.extend(score.to_bits().to_le_bytes());
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl From<&Value> for Body {
    fn from(value: &Value) -> Self {
        match value {
            Value::String(bytes) => Self::string(bytes),
            Value::List(list) => elements(Self::list(list.len()), list),
            Value::Set(set) => elements(Self::set(set.len()), set),
            Value::Hash(pairs) => {
                let mut body = Self::hash(pairs.len());
                for (field, value) in pairs {
                    body.element(field);
                    body.element(value);
                }
                body
            }
            Value::SortedSet(pairs) => {
                let mut body = Self::sorted_set(pairs.len());
                for (member, score) in pairs {
                    body.scored(member, *score);
                }
                body
            }
            Value::Stream(stream) => whole_stream(stream),
        }
    }
}

fn elements(mut body: Body, elements: &[Vec<u8>]) -> Body {
    elements.iter().for_each(|element| body.element(element));
    body
}

fn whole_stream(stream: &Stream) -> Body {
    let mut body = StreamBody::default();
    for entry in &stream.entries {
        let fields = entry.fields.iter();
        body.entry(
            entry.id,
            fields.map(|(name, value)| (&name[..], &value[..])),
        );
    }
    let last = stream.entries.last().map(|entry: &StreamEntry| entry.id);
    let bare = || StreamTail {
        last: last.unwrap_or_default(),
        added: stream.entries.len() as u64,
        ..StreamTail::default()
    };
    body.finish(stream.tail.as_ref().unwrap_or(&bare()))
}

/// The encoding of a stream, made entry by entry.
#[derive(Debug, Default)]
pub struct StreamBody {
    nodes: Vec<u8>,
    count: u64,
    node: Vec<(StreamId, Fields)>,
    /// Bytes of the fields in `node`.
    bytes: usize,
    entries: u64,
    first: StreamId,
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

impl StreamBody {
    /// The next entry, in rising order.
    pub fn entry<'a>(
        &mut self,
        id: StreamId,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) {
        let fields: Fields = fields
            .into_iter()
            .map(|(name, value)| (name.to_vec(), value.to_vec()))
            .collect();
        let bytes: usize = fields
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        let full = self.node.len() == NODE_ENTRIES || self.bytes + bytes > NODE_BYTES;
        if full && !self.node.is_empty() {
            self.close();
        }
        if self.entries == 0 {
            self.first = id;
        }
        self.entries += 1;
        self.bytes += bytes;
        self.node.push((id, fields));
    }

    /// Writes the node that is open.
    fn close(&mut self) {
        let node = std::mem::take(&mut self.node);
        self.bytes = 0;
        let Some((name, first)) = node.first() else {
            return;
        };
        let mut pack = ListPack::new();
        pack.integer(node.len() as i64);
        pack.integer(0);
        pack.integer(first.len() as i64);
        first.iter().for_each(|(name, _)| pack.string(name));
        pack.integer(0);
        let names = |fields: &Fields| {
            fields
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        let same = names(first);
        for (id, fields) in &node {
            let (flags, words) = match names(fields) == same {
                true => (2, fields.len() + 3),
                false => (0, 2 * fields.len() + 4),
            };
            pack.integer(flags);
            pack.integer(id.ms.wrapping_sub(name.ms).cast_signed());
            pack.integer(id.seq.wrapping_sub(name.seq).cast_signed());
            if flags == 0 {
                pack.integer(fields.len() as i64);
            }
            for (name, value) in fields {
                if flags == 0 {
                    pack.string(name);
                }
                pack.string(value);
            }
            pack.integer(words as i64);
        }
        string_as_is(&mut self.nodes, &raw_id(*name));
        string_as_is(&mut self.nodes, &pack.into_bytes());
        self.count += 1;
    }

    /// What follows the last entry.
    pub fn finish(mut self, tail: &StreamTail) -> Body {
        self.close();
        let mut body = Body::new(kind::STREAM_2);
        let out = &mut body.bytes;
        length(out, self.count);
        out.append(&mut self.nodes);
        length(out, self.entries);
        id(out, tail.last);
        id(out, self.first);
        id(out, tail.max_deleted);
        length(out, tail.added);
        length(out, tail.groups.len() as u64);
        tail.groups.iter().for_each(|one| group(out, one));
        body
    }
}

fn group(out: &mut Vec<u8>, group: &Group) {
    string(out, &group.name);
    id(out, group.last);
    length(out, group.read.unwrap_or(u64::MAX));
    length(out, group.pending.len() as u64);
    for pending in &group.pending {
        out.extend(raw_id(pending.id));
        out.extend(pending.delivered.to_le_bytes());
        length(out, pending.deliveries);
    }
    length(out, group.consumers.len() as u64);
    let mut owned = vec![Vec::new(); group.consumers.len()];
    for pending in &group.pending {
        if let Some(own) = owned.get_mut(pending.consumer) {
            own.push(pending.id);
        }
    }
    for (consumer, own) in group.consumers.iter().zip(owned) {
        string(out, &consumer.name);
        out.extend(consumer.seen.to_le_bytes());
        length(out, own.len() as u64);
        own.iter().for_each(|id| out.extend(raw_id(*id)));
    }
}

fn id(out: &mut Vec<u8>, id: StreamId) {
    length(out, id.ms);
    length(out, id.seq);
}

fn raw_id(id: StreamId) -> [u8; 16] {
    (u128::from(id.ms) << 64 | u128::from(id.seq)).to_be_bytes()
}

/// A length, in as few bytes as it can have.
pub(crate) fn length(out: &mut Vec<u8>, len: u64) {
    match len {
        ..64 => out.push(len as u8),
        64..0x4000 => out.extend([0x40 | (len >> 8) as u8, len as u8]),
        0x4000..=0xffff_ffff => {
            out.push(0x80);
            out.extend((len as u32).to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend(len.to_be_bytes());
        }
    }
}

/// A string: as a number, if it is a short one.
pub(crate) fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    let number = parse_i64(&bytes[..bytes.len().min(DIGITS + 1)]);
    let number = number.and_then(|number| i32::try_from(number).ok());
    let Some(number) = number.filter(|_| bytes.len() <= DIGITS) else {
        return string_as_is(out, bytes);
    };
    if let Ok(number) = i8::try_from(number) {
        out.extend([0xc0, number as u8]);
    } else if let Ok(number) = i16::try_from(number) {
        out.push(0xc1);
        out.extend(number.to_le_bytes());
    } else {
        out.push(0xc2);
        out.extend(number.to_le_bytes());
    }
}

fn string_as_is(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
