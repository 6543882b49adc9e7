//! What a stream's two trees hold.
//!
//! Tree 0 has the entries by their numbers; tree 1 what is known beside them:
//!
//! ```text
//! key                                     value
//! 'i'                                     last: id, deleted: id, added: u64, groups: u32
//! 'g' name                                number: u32, last: id, read: i64, pending: u64
//! 'c' group: u32, name                    seen: u64, active: u64, pending: u64
//! 'p' group: u32, id                      delivered: u64, times: u64, the consumer's name
//! 'q' group: u32, length: u32, name, id   nothing: what a consumer has not acknowledged
//! ```
//!
//! Numbers are big-endian, so that keys are in their order. Names of groups are looked up;
//! what belongs to a group has its number, which is never used twice in a stream.

use super::Collection;
use super::node::{Cursor, push_number};
use crate::error::{Error, Result};
use crate::memory::Memory;

/// The tree of entries.
pub(crate) const ENTRIES: usize = 0;
/// The tree of everything else.
const STATE: usize = 1;

const DAMAGED: Error = Error::Corrupt("what is known of a stream makes no sense");

/// An entry's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    /// Milliseconds since 1970, mostly.
    pub ms: u64,
    pub seq: u64,
}

impl Id {
    pub const MIN: Id = Id { ms: 0, seq: 0 };
    pub const MAX: Id = Id {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    pub fn bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Id> {
        let all = u128::from_be_bytes(bytes.try_into().ok()?);
        Some(Id {
            ms: (all >> 64) as u64,
            seq: all as u64,
        })
    }

    /// The next higher one.
    pub fn next(self) -> Option<Id> {
        let all = u128::from_be_bytes(self.bytes()).checked_add(1)?;
        Id::from_bytes(&all.to_be_bytes())
    }

    /// The next lower one.
    pub fn before(self) -> Option<Id> {
        let all = u128::from_be_bytes(self.bytes()).checked_sub(1)?;
        Id::from_bytes(&all.to_be_bytes())
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// What is known of a stream as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info {
    pub last: Id,
    /// The highest that XDEL has taken out.
    pub deleted: Id,
    /// Entries ever added.
    pub added: u64,
    /// Groups ever made.
    pub groups: u32,
}

/// A group of consumers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub number: u32,
    /// The last that was delivered.
    pub last: Id,
    /// Entries delivered so far, negative when that is not known.
    pub read: i64,
    /// Entries that were delivered and not acknowledged.
    pub pending: u64,
}

/// A consumer of a group. Times are in ms since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Consumer {
    /// When it asked last.
    pub seen: u64,
    /// When it got or claimed something last, 0 for never.
    pub active: u64,
    pub pending: u64,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub delivered: u64,
    pub times: u64,
    pub consumer: Vec<u8>,
}

fn key(kind: u8, group: Option<u32>, rest: &[u8]) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend(group.into_iter().flat_map(u32::to_be_bytes));
    key.extend_from_slice(rest);
    key
}

fn owned(group: u32, consumer: &[u8], id: &[u8]) -> Vec<u8> {
    let mut rest = (consumer.len() as u32).to_be_bytes().to_vec();
    rest.extend_from_slice(consumer);
    rest.extend_from_slice(id);
    key(b'q', Some(group), &rest)
}

/// Reads numbers of eight bytes from the front.
struct Words<'a>(Cursor<'a>);

impl<'a> Words<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Words(Cursor::new(bytes))
    }

    fn word(&mut self) -> Result<u64> {
        let word = self.0.take(8).and_then(|b| b.try_into().ok());
        word.map(u64::from_be_bytes).ok_or(DAMAGED)
    }

    fn short(&mut self) -> Result<u32> {
        let word = self.0.take(4).and_then(|b| b.try_into().ok());
        word.map(u32::from_be_bytes).ok_or(DAMAGED)
    }

    fn id(&mut self) -> Result<Id> {
        Ok(Id {
            ms: self.word()?,
            seq: self.word()?,
        })
    }

    fn rest(&self) -> &'a [u8] {
        self.0.bytes.get(self.0.at..).unwrap_or_default()
    }
}

impl Group {
    fn encode(&self) -> Vec<u8> {
        let mut out = self.number.to_be_bytes().to_vec();
        out.extend_from_slice(&self.last.bytes());
        out.extend_from_slice(&self.read.to_be_bytes());
        out.extend_from_slice(&self.pending.to_be_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Result<Group> {
        let mut words = Words::new(bytes);
        Ok(Group {
            number: words.short()?,
            last: words.id()?,
            read: words.word()? as i64,
            pending: words.word()?,
        })
    }
}

impl Consumer {
    fn encode(&self) -> Vec<u8> {
        let words = [self.seen, self.active, self.pending];
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn decode(bytes: &[u8]) -> Result<Consumer> {
        let mut words = Words::new(bytes);
        Ok(Consumer {
            seen: words.word()?,
            active: words.word()?,
            pending: words.word()?,
        })
    }
}

impl Pending {
    fn encode(&self) -> Vec<u8> {
        let words = [self.delivered, self.times];
        let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        out.extend_from_slice(&self.consumer);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Pending> {
        let mut words = Words::new(bytes);
        Ok(Pending {
            delivered: words.word()?,
            times: words.word()?,
            consumer: words.rest().to_vec(),
        })
    }
}

/// Fields and values of an entry as they are kept.
pub(crate) fn encode_fields<'a>(words: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    push_number(words.len() as u64, &mut out);
    for word in words {
        push_number(word.len() as u64, &mut out);
        out.extend_from_slice(word);
    }
    out
}

/// Shows fields and values one after the other; says how many there are, before the first.
pub(crate) fn fields(bytes: &[u8]) -> (usize, impl Iterator<Item = &[u8]>) {
    let mut cursor = Cursor::new(bytes);
    let count = cursor.length().unwrap_or(0).min(bytes.len());
    let words = (0..count).map(move |_| {
        let len = cursor.length().unwrap_or(0);
        cursor.take(len).unwrap_or_default()
    });
    (count, words)
}

impl<M: Memory> Collection<'_, M> {
    pub fn info(&self) -> Result<Info> {
        let Some(bytes) = self.get(STATE, b"i")? else {
            return Ok(Info::default());
        };
        let mut words = Words::new(&bytes);
        Ok(Info {
            last: words.id()?,
            deleted: words.id()?,
            added: words.word()?,
            groups: words.short()?,
        })
    }

    pub fn set_info(&mut self, info: &Info) -> Result<()> {
        let mut out = info.last.bytes().to_vec();
        out.extend_from_slice(&info.deleted.bytes());
        out.extend_from_slice(&info.added.to_be_bytes());
        out.extend_from_slice(&info.groups.to_be_bytes());
        self.put(STATE, b"i", &out).map(drop)
    }

    /// Adds an entry behind all others.
    pub fn add_entry(&mut self, id: Id, fields: &[u8]) -> Result<()> {
        self.put(ENTRIES, &id.bytes(), fields)?;
        let mut info = self.info()?;
        (info.last, info.added) = (id, info.added + 1);
        self.set_info(&info)
    }

    /// Takes an entry out; says whether it was there.
    pub fn delete_entry(&mut self, id: Id) -> Result<bool> {
        if self.remove(ENTRIES, &id.bytes())?.is_none() {
            return Ok(false);
        }
        let mut info = self.info()?;
        info.deleted = info.deleted.max(id);
        self.set_info(&info)?;
        Ok(true)
    }

    /// The entry of this number.
    pub fn entry(&self, id: Id) -> Result<Option<Vec<u8>>> {
        self.get(ENTRIES, &id.bytes())
    }

    /// The first entry's number, or the last one's.
    pub fn end(&self, last: bool) -> Result<Option<Id>> {
        let at = if last {
            self.count(ENTRIES).saturating_sub(1)
        } else {
            0
        };
        Ok(self
            .at(ENTRIES, at)?
            .and_then(|(key, _)| Id::from_bytes(&key)))
    }

    /// Shows entries from `from` to `to`, both included, until `f` says `false`.
    pub fn entries(&self, from: Id, to: Id, mut f: impl FnMut(Id, &[u8]) -> bool) -> Result<()> {
        let (first, _) = self.rank(ENTRIES, &from.bytes())?;
        self.walk(ENTRIES, first, |key, value| {
            let id = Id::from_bytes(key).unwrap_or_default();
            id <= to && f(id, value)
        })
    }

    /// The same, the last first.
    pub fn entries_back(
        &self,
        from: Id,
        to: Id,
        mut f: impl FnMut(Id, &[u8]) -> bool,
    ) -> Result<()> {
        let (behind, there) = self.rank(ENTRIES, &to.bytes())?;
        let Some(last) = (behind + u64::from(there)).checked_sub(1) else {
            return Ok(());
        };
        self.walk_back(ENTRIES, last, |key, value| {
            let id = Id::from_bytes(key).unwrap_or_default();
            id >= from && f(id, value)
        })
    }

    pub fn group(&self, name: &[u8]) -> Result<Option<Group>> {
        let found = self.get(STATE, &key(b'g', None, name))?;
        found.map(|bytes| Group::decode(&bytes)).transpose()
    }

    pub fn set_group(&mut self, name: &[u8], group: &Group) -> Result<()> {
        self.put(STATE, &key(b'g', None, name), &group.encode())
            .map(drop)
    }

    /// Makes a group; the caller has seen that there is none of that name.
    pub fn add_group(&mut self, name: &[u8], last: Id, read: i64) -> Result<()> {
        let mut info = self.info()?;
        info.groups += 1;
        self.set_info(&info)?;
        let group = Group {
            number: info.groups,
            last,
            read,
            pending: 0,
        };
        self.set_group(name, &group)
    }

    /// Takes a group out with all that belongs to it; says whether it was there.
    pub fn remove_group(&mut self, name: &[u8]) -> Result<bool> {
        let Some(group) = self.group(name)? else {
            return Ok(false);
        };
        self.remove(STATE, &key(b'g', None, name))?;
        for kind in [b'c', b'p', b'q'] {
            let (from, _) = self.rank(STATE, &key(kind, Some(group.number), &[]))?;
            let behind = match group.number.checked_add(1) {
                Some(next) => key(kind, Some(next), &[]),
                None => key(kind + 1, None, &[]),
            };
            let (to, _) = self.rank(STATE, &behind)?;
            self.cut(STATE, from..to)?;
        }
        Ok(true)
    }

    /// All groups, by name.
    pub fn groups(&self) -> Result<Vec<(Vec<u8>, Group)>> {
        let mut found = Vec::new();
        self.state(&key(b'g', None, &[]), |name, value| {
            found.push(Group::decode(value).map(|group| (name.to_vec(), group)));
            true
        })?;
        found.into_iter().collect()
    }

    /// Shows what tree 1 has behind a prefix, without that prefix.
    fn state(&self, prefix: &[u8], mut f: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let (from, _) = self.rank(STATE, prefix)?;
        self.walk(STATE, from, |key, value| {
            key.strip_prefix(prefix).is_some_and(|rest| f(rest, value))
        })
    }

    pub fn consumer(&self, group: &Group, name: &[u8]) -> Result<Option<Consumer>> {
        let found = self.get(STATE, &key(b'c', Some(group.number), name))?;
        found.map(|bytes| Consumer::decode(&bytes)).transpose()
    }

    pub fn set_consumer(&mut self, group: &Group, name: &[u8], consumer: &Consumer) -> Result<()> {
        self.put(
            STATE,
            &key(b'c', Some(group.number), name),
            &consumer.encode(),
        )
        .map(drop)
    }

    /// All consumers of a group, by name.
    pub fn consumers(&self, group: &Group) -> Result<Vec<(Vec<u8>, Consumer)>> {
        let mut found = Vec::new();
        self.state(&key(b'c', Some(group.number), &[]), |name, value| {
            found.push(Consumer::decode(value).map(|consumer| (name.to_vec(), consumer)));
            true
        })?;
        found.into_iter().collect()
    }

    /// Takes a consumer out; says how many entries it had not acknowledged, which nobody has then.
    pub fn remove_consumer(&mut self, name: &[u8], consumer: &[u8]) -> Result<Option<u64>> {
        let Some(group) = self.group(name)? else {
            return Ok(None);
        };
        if self.consumer(&group, consumer)?.is_none() {
            return Ok(None);
        }
        let owned = self.owned(&group, consumer, Id::MIN, usize::MAX)?;
        for id in &owned {
            self.acknowledge(name, *id)?;
        }
        self.remove(STATE, &key(b'c', Some(group.number), consumer))?;
        Ok(Some(owned.len() as u64))
    }

    pub fn pending(&self, group: &Group, id: Id) -> Result<Option<Pending>> {
        let found = self.get(STATE, &key(b'p', Some(group.number), &id.bytes()))?;
        found.map(|bytes| Pending::decode(&bytes)).transpose()
    }

    /// Notes an entry as delivered to a consumer, which exists. Another that had it has it no more.
    pub fn set_pending(&mut self, name: &[u8], id: Id, pending: &Pending) -> Result<()> {
        let Some(mut group) = self.group(name)? else {
            return Ok(());
        };
        let number = group.number;
        let place = key(b'p', Some(number), &id.bytes());
        let before = self.put(STATE, &place, &pending.encode())?;
        let before = before.map(|bytes| Pending::decode(&bytes)).transpose()?;
        if before
            .as_ref()
            .is_some_and(|before| before.consumer == pending.consumer)
        {
            return Ok(());
        }
        match before {
            Some(before) => self.disown(&group, &before.consumer, id)?,
            None => {
                group.pending += 1;
                self.set_group(name, &group)?;
            }
        }
        self.put(STATE, &owned(number, &pending.consumer, &id.bytes()), &[])?;
        let mut consumer = self
            .consumer(&group, &pending.consumer)?
            .unwrap_or_default();
        consumer.pending += 1;
        self.set_consumer(&group, &pending.consumer, &consumer)
    }

    fn disown(&mut self, group: &Group, name: &[u8], id: Id) -> Result<()> {
        self.remove(STATE, &owned(group.number, name, &id.bytes()))?;
        if let Some(mut consumer) = self.consumer(group, name)? {
            consumer.pending = consumer.pending.saturating_sub(1);
            self.set_consumer(group, name, &consumer)?;
        }
        Ok(())
    }

    /// An entry needs no acknowledgement any more; says whether it did.
    pub fn acknowledge(&mut self, name: &[u8], id: Id) -> Result<bool> {
        let Some(mut group) = self.group(name)? else {
            return Ok(false);
        };
        let place = key(b'p', Some(group.number), &id.bytes());
        let Some(bytes) = self.remove(STATE, &place)? else {
            return Ok(false);
        };
        self.disown(&group, &Pending::decode(&bytes)?.consumer, id)?;
        group.pending = group.pending.saturating_sub(1);
        self.set_group(name, &group)?;
        Ok(true)
    }

    /// Shows what a group has not acknowledged, from `from` to `to`, until `f` says `false`.
    pub fn each_pending(
        &self,
        group: &Group,
        (from, to): (Id, Id),
        mut f: impl FnMut(Id, Pending) -> bool,
    ) -> Result<()> {
        let prefix = key(b'p', Some(group.number), &[]);
        let (first, _) = self.rank(STATE, &key(b'p', Some(group.number), &from.bytes()))?;
        let mut failed = None;
        self.walk(STATE, first, |key, value| {
            let id = key.strip_prefix(&prefix[..]).and_then(Id::from_bytes);
            let Some(id) = id.filter(|id| *id <= to) else {
                return false;
            };
            match Pending::decode(value) {
                Ok(pending) => f(id, pending),
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// What a consumer has not acknowledged, from a number on, at most so many.
    pub fn owned(&self, group: &Group, consumer: &[u8], from: Id, most: usize) -> Result<Vec<Id>> {
        let prefix = owned(group.number, consumer, &[]);
        let (first, _) = self.rank(STATE, &owned(group.number, consumer, &from.bytes()))?;
        let mut ids = Vec::new();
        self.walk(STATE, first, |key, _| {
            match key.strip_prefix(&prefix[..]).and_then(Id::from_bytes) {
                Some(id) if ids.len() < most => {
                    ids.push(id);
                    true
                }
                _ => false,
            }
        })?;
        Ok(ids)
    }
}
