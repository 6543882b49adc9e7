//! Streams: listpacks of entries, then what is known of the stream and of its groups.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use super::error::Result;
use super::packed::{Element, Form, Packed, Wrong};
use super::source::Source;
use super::value::{Consumer, Group, Pending, Stream, StreamEntry, StreamId, StreamTail, Value};
use super::{ELEMENT, PART, kind};

const NODE: Wrong = "a node of a stream that contradicts itself";
const NAME: Wrong = "a node of a stream whose name is no entry's";
const ORDER: Wrong = "entries of a stream that do not rise";
const OWNER: Wrong = "a pending entry of no consumer, or of two";
const UNKNOWN: Wrong = "a consumer's entry that the group does not know";
const NAMES: Wrong = "two groups, or two consumers of one, of the same name";
const TWICE: Wrong = "a group's entry that is pending twice";

/// The entry is deleted.
const DELETED: i64 = 1;
/// The entry has the fields of its node's first.
const SAME_FIELDS: i64 = 2;

/// A stream that is being read.
#[derive(Debug)]
pub(crate) struct Entries {
    kind: u8,
    nodes: u64,
    node: Option<Node>,
    first: Option<StreamId>,
    last: Option<StreamId>,
    /// Entries so far.
    count: u64,
}

/// A listpack of entries.
#[derive(Debug)]
struct Node {
    packed: Packed,
    start: u64,
    name: StreamId,
    fields: Vec<Vec<u8>>,
    /// Entries left, deleted ones with them.
    left: i64,
}

impl Entries {
    pub fn begin<R: Read>(source: &mut Source<R>, number: u8) -> Result<Option<Self>> {
        if ![kind::STREAM, kind::STREAM_2, kind::STREAM_3].contains(&number) {
            return Ok(None);
        }
        Ok(Some(Self {
            kind: number,
            nodes: source.number()?,
            node: None,
            first: None,
            last: None,
            count: 0,
        }))
    }

    /// The next part, and whether another follows it.
    pub fn part<R: Read>(&mut self, source: &mut Source<R>) -> Result<(Value, bool)> {
        let (mut stream, mut bytes) = (Stream::default(), 0);
        while let Some(entry) = self.next(source)? {
            let pair = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len() + 2 * ELEMENT;
            bytes += ELEMENT + entry.fields.iter().map(pair).sum::<usize>();
            stream.entries.push(entry);
            if bytes >= PART {
                return Ok((Value::Stream(stream), true));
            }
        }
        stream.tail = Some(self.tail(source)?);
        Ok((Value::Stream(stream), false))
    }

    fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<StreamEntry>> {
        loop {
            if let Some(node) = &mut self.node {
                let start = node.start;
                match node.next() {
                    Ok(Some(entry)) if self.last.is_some_and(|last| last >= entry.id) => {
                        return source.malformed(start, ORDER);
                    }
                    Ok(Some(entry)) => {
                        self.first.get_or_insert(entry.id);
                        self.last = Some(entry.id);
                        self.count += 1;
                        return Ok(Some(entry));
                    }
                    Ok(None) => {}
                    Err(what) => return source.malformed(start, what),
                }
            }
            self.node = None;
            if self.nodes == 0 {
                return Ok(None);
            }
            self.nodes -= 1;
            let start = source.offset();
            let Ok(name) = <[u8; 16]>::try_from(source.string()?) else {
                return source.malformed(start, NAME);
            };
            let start = source.offset();
            match Node::begin(source.string()?, raw_id(name), start) {
                Ok(node) => self.node = Some(node),
                Err(what) => return source.malformed(start, what),
            }
        }
    }

    fn tail<R: Read>(&self, source: &mut Source<R>) -> Result<StreamTail> {
        let start = source.offset();
        if source.number()? != self.count {
            return source.malformed(start, "a stream of another length than it says");
        }
        let mut tail = StreamTail {
            last: id(source)?,
            added: self.count,
            ..StreamTail::default()
        };
        if self.last.is_some_and(|last| last > tail.last) {
            return source.malformed(start, ORDER);
        }
        let newer = self.kind != kind::STREAM;
        if newer {
            id(source)?; // the first entry, which is known
            tail.max_deleted = id(source)?;
            tail.added = source.number()?;
        }
        let mut names = HashSet::new();
        for _ in 0..source.number()? {
            let start = source.offset();
            let mut group = self.group(source, newer)?;
            if !newer {
                group.read = self.read_up_to(group.last, &tail);
            }
            if !names.insert(group.name.clone()) {
                return source.malformed(start, NAMES);
            }
            tail.groups.push(group);
        }
        Ok(tail)
    }

    /// How many entries a group has read whose file does not say so, as far as that is certain:
    /// nobody knows which were deleted.
    fn read_up_to(&self, last: StreamId, tail: &StreamTail) -> Option<u64> {
        match self.first {
            None => Some(0),
            Some(_) if last == tail.last => Some(tail.added),
            Some(first) if last < first => Some(0),
            Some(first) if last == first => Some(1),
            Some(_) => None,
        }
    }

    fn group<R: Read>(&self, source: &mut Source<R>, newer: bool) -> Result<Group> {
        let mut group = Group {
            name: source.string()?,
            last: id(source)?,
            ..Group::default()
        };
        if newer {
            // -1 says that it is not known.
            group.read = Some(source.number()?).filter(|read| *read <= i64::MAX as u64);
        }
        let start = source.offset();
        let mut places = HashMap::new();
        for place in 0..source.number()? {
            let pending = Pending {
                id: raw_id(source.array()?),
                consumer: usize::MAX,
                delivered: source.u64()?,
                deliveries: source.number()?,
            };
            group.pending.push(pending);
            if places.insert(pending.id, place as usize).is_some() {
                return source.malformed(start, TWICE);
            }
        }
        let mut names = HashSet::new();
        for number in 0..source.number()? {
            let consumer = self.consumer(source)?;
            if !names.insert(consumer.name.clone()) {
                return source.malformed(start, NAMES);
            }
            group.consumers.push(consumer);
            for _ in 0..source.number()? {
                let start = source.offset();
                let Some(place) = places.get(&raw_id(source.array()?)) else {
                    return source.malformed(start, UNKNOWN);
                };
                let owner = &mut group.pending[*place].consumer;
                if std::mem::replace(owner, number as usize) != usize::MAX {
                    return source.malformed(start, OWNER);
                }
            }
        }
        if group
            .pending
            .iter()
            .any(|pending| pending.consumer == usize::MAX)
        {
            return source.malformed(start, OWNER);
        }
        group.pending.sort_unstable_by_key(|pending| pending.id);
        Ok(group)
    }

    fn consumer<R: Read>(&self, source: &mut Source<R>) -> Result<Consumer> {
        Ok(Consumer {
            name: source.string()?,
            seen: source.u64()?,
            active: match self.kind {
                // -1: it never got anything.
                kind::STREAM_3 => Some(source.u64()?).filter(|active| *active != u64::MAX),
                _ => None,
            },
        })
    }
}

impl Node {
    fn begin(bytes: Vec<u8>, name: StreamId, start: u64) -> std::result::Result<Self, Wrong> {
        let mut node = Self {
            packed: Packed::new(Form::ListPack, bytes)?,
            start,
            name,
            fields: Vec::new(),
            left: 0,
        };
        let (valid, deleted) = (node.count()?, node.count()?);
        node.left = valid.checked_add(deleted).ok_or(NODE)?;
        for _ in 0..node.count()? {
            let name = node.string()?;
            node.fields.push(name);
        }
        if node.integer()? != 0 {
            return Err(NODE);
        }
        Ok(node)
    }

    /// The next entry that is not deleted.
    fn next(&mut self) -> std::result::Result<Option<StreamEntry>, Wrong> {
        while self.left > 0 {
            self.left -= 1;
            let flags = self.integer()?;
            let (ms, seq) = (self.integer()?, self.integer()?);
            let same = flags & SAME_FIELDS != 0;
            let count = match same {
                true => self.fields.len() as i64,
                false => self.count()?,
            };
            let mut fields = Vec::new();
            for place in 0..count as usize {
                let name = match same {
                    true => self.fields[place].clone(),
                    false => self.string()?,
                };
                fields.push((name, self.string()?));
            }
            let words = if same { count } else { 2 * count + 1 };
            if self.integer()? != words + 3 {
                return Err(NODE);
            }
            let id = StreamId {
                ms: self.name.ms.wrapping_add_signed(ms),
                seq: self.name.seq.wrapping_add_signed(seq),
            };
            if flags & DELETED == 0 {
                return Ok(Some(StreamEntry { id, fields }));
            }
        }
        match self.packed.next()? {
            None => Ok(None),
            Some(_) => Err(NODE),
        }
    }

    fn integer(&mut self) -> std::result::Result<i64, Wrong> {
        match self.packed.next()? {
            Some(Element::Int(number)) => Ok(number),
            _ => Err(NODE),
        }
    }

    /// A number of things, which is not negative. Each has bytes of its own.
    fn count(&mut self) -> std::result::Result<i64, Wrong> {
        let most = self.packed.len() as i64;
        Some(self.integer()?)
            .filter(|count| (0..=most).contains(count))
            .ok_or(NODE)
    }

    fn string(&mut self) -> std::result::Result<Vec<u8>, Wrong> {
        self.packed.next()?.map(Element::to_bytes).ok_or(NODE)
    }
}

/// The name of an entry as two numbers.
fn id<R: Read>(source: &mut Source<R>) -> Result<StreamId> {
    Ok(StreamId {
        ms: source.number()?,
        seq: source.number()?,
    })
}

/// The name of an entry as sixteen bytes.
fn raw_id(bytes: [u8; 16]) -> StreamId {
    let both = u128::from_be_bytes(bytes);
    StreamId {
        ms: (both >> 64) as u64,
        seq: both as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_group_of_an_old_file_has_read_is_known_at_the_ends_only() {
        let id = |ms| StreamId { ms, seq: 0 };
        let entries = |first| Entries {
            kind: kind::STREAM,
            nodes: 0,
            node: None,
            first,
            last: first.map(|_| id(9)),
            count: 3,
        };
        let tail = StreamTail {
            last: id(9),
            added: 3,
            ..StreamTail::default()
        };
        let read = |ms| entries(Some(id(5))).read_up_to(id(ms), &tail);
        let all = [4, 5, 6, 9].map(read);
        assert_eq!(all, [Some(0), Some(1), None, Some(3)]);
        assert_eq!(entries(None).read_up_to(id(9), &tail), Some(0));
    }
}
