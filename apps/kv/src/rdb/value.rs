//! Values apart from any store, and from how they were encoded.

/// A value, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Bytes.
    String(Vec<u8>),
    /// Elements in their order.
    List(Vec<Vec<u8>>),
    /// Members, in any order. Redis would have each once; who reads from strangers checks.
    Set(Vec<Vec<u8>>),
    /// Fields and their values, in any order.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// Members and their scores, in any order. A score is a number.
    SortedSet(Vec<(Vec<u8>, f64)>),
    /// A stream.
    Stream(Stream),
}

/// A stream, or a part of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// Entries in rising order.
    pub entries: Vec<StreamEntry>,
    /// What follows the last entry; only with the last part.
    pub tail: Option<StreamTail>,
}

/// The name of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Mostly ms since 1970.
    pub ms: u64,
    /// A number among those of one millisecond.
    pub seq: u64,
}

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its name.
    pub id: StreamId,
    /// Its fields, in their order.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a stream has beside entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTail {
    /// The last entry that was ever added.
    pub last: StreamId,
    /// The last entry that was deleted.
    pub max_deleted: StreamId,
    /// Entries that were ever added.
    pub added: u64,
    /// Its consumer groups.
    pub groups: Vec<Group>,
}

/// A consumer group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: Vec<u8>,
    /// The last entry that was delivered.
    pub last: StreamId,
    /// Entries that were ever delivered, if that is known.
    pub read: Option<u64>,
    /// Entries delivered and not acknowledged, in rising order.
    pub pending: Vec<Pending>,
    /// Its consumers.
    pub consumers: Vec<Consumer>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The entry.
    pub id: StreamId,
    /// To which of [`Group::consumers`].
    pub consumer: usize,
    /// When, in ms since 1970.
    pub delivered: u64,
    /// How many times.
    pub deliveries: u64,
}

/// A consumer of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consumer {
    /// Its name.
    pub name: Vec<u8>,
    /// When it asked for something last, in ms since 1970.
    pub seen: u64,
    /// When it got something last, if that is known.
    pub active: Option<u64>,
}

impl Value {
    /// What `TYPE` calls it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Hash(_) => "hash",
            Self::SortedSet(_) => "zset",
            Self::Stream(_) => "stream",
        }
    }

    /// Elements, or bytes of a string.
    pub fn len(&self) -> usize {
        match self {
            Self::String(bytes) => bytes.len(),
            Self::List(list) | Self::Set(list) => list.len(),
            Self::Hash(pairs) => pairs.len(),
            Self::SortedSet(pairs) => pairs.len(),
            Self::Stream(stream) => stream.entries.len(),
        }
    }

    /// Bytes that it takes, with [`super::ELEMENT`] for each element.
    pub fn cost(&self) -> usize {
        let one = |bytes: &Vec<u8>| bytes.len() + super::ELEMENT;
        let pair = |(a, b): &(Vec<u8>, Vec<u8>)| one(a) + one(b);
        match self {
            Self::String(bytes) => one(bytes),
            Self::List(list) | Self::Set(list) => list.iter().map(one).sum(),
            Self::Hash(pairs) => pairs.iter().map(pair).sum(),
            Self::SortedSet(pairs) => pairs.iter().map(|(member, _)| one(member)).sum(),
            Self::Stream(stream) => {
                let entries = stream.entries.iter().flat_map(|entry| &entry.fields);
                entries.map(pair).sum::<usize>() + super::ELEMENT * stream.entries.len()
            }
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts the next part behind this one. Parts of other types are dropped: there are none from
    /// one reader.
    pub fn extend(&mut self, part: Self) {
        match (self, part) {
            (Self::String(all), Self::String(part)) => all.extend(part),
            (Self::List(all), Self::List(part)) | (Self::Set(all), Self::Set(part)) => {
                all.extend(part);
            }
            (Self::Hash(all), Self::Hash(part)) => all.extend(part),
            (Self::SortedSet(all), Self::SortedSet(part)) => all.extend(part),
            (Self::Stream(all), Self::Stream(part)) => {
                all.entries.extend(part.entries);
                all.tail = part.tail;
            }
            _ => {}
        }
    }
}
