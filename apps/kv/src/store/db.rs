//! One database of a store: the operations on single keys.

use super::core::Core;
use super::edit::Edit;
use super::lock::Scope;
use super::ops::{Expire, ExpireIf, Fetch, Increment, IncrementFloat, Remove, Set};
use super::splice::Patch;
use super::value::{Meta, Reach, Value};
use crate::error::{Error, Result};
use crate::layout::kind::Kind;
use crate::layout::page::KeyId;
use crate::layout::page_mut::Payload;
use crate::memory::Memory;
use crate::number::Number;

/// A database, seen from outside or from inside a transaction.
pub struct Db<'a, M: Memory> {
    pub(crate) core: &'a Core<M>,
    pub(crate) scope: Scope<'a, M>,
    pub(crate) number: u8,
}

impl<M: Memory> Clone for Db<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Memory> Copy for Db<'_, M> {}

/// When SET sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// In any case.
    #[default]
    Always,
    /// When the key is not there.
    IfAbsent,
    /// When it is.
    IfPresent,
}

/// What SET does about the expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// The key stays until it is removed.
    #[default]
    Never,
    /// It ends at this time, in ms since 1970.
    At(u64),
    /// The one it had stays.
    Keep,
}

/// How to set a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetOptions {
    /// When.
    pub condition: Condition,
    /// Until when.
    pub expiry: Expiry,
}

/// What became of a SET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetOutcome {
    /// Whether the value was set.
    pub applied: bool,
    /// Whether the key was there before.
    pub existed: bool,
}

/// What a watched key looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The record's stamp, when there is one.
    stamp: Option<u64>,
    /// Otherwise when the bucket last lost a record, and when the database lost all. Of a bucket
    /// that has not lost any: when any database did, since a flush may have taken the bucket's page
    /// with what was known of it.
    absent: (u64, u64),
}

impl<'a, M: Memory> Db<'a, M> {
    /// The database's number.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The same database of the same transaction, another number.
    pub fn select(&self, number: u8) -> Option<Self> {
        (usize::from(number) < crate::DATABASES).then_some(Self { number, ..*self })
    }

    #[inline]
    pub(crate) fn id<'k>(&self, key: &'k [u8]) -> Result<KeyId<'k>> {
        self.core.id(self.number, key)
    }

    /// Gives the part of the value that `reach` asks for to `sink`: the meta data of any value,
    /// more of strings only.
    #[inline]
    pub(crate) fn read<R>(
        &self,
        key: &[u8],
        reach: Reach,
        mut sink: impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Result<Option<R>> {
        let any = matches!(reach, Reach::Nothing);
        let sink = |meta: &Meta, value: Value<'_>| {
            (any || meta.kind == Kind::String).then(|| sink(meta, value))
        };
        let seen = self.core.lookup(self.scope, &self.id(key)?, reach, sink)?;
        match seen.found {
            Some(None) => Err(Error::WrongType),
            found => Ok(found.flatten()),
        }
    }

    /// Copies the value of `key` into `value`; `false`, and `value` empty, when there is none.
    #[inline]
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.copy_out(key, Reach::All, value)
    }

    /// Copies bytes `first..=last` of the value, negative ones counted from its end.
    pub fn get_range(
        &self,
        key: &[u8],
        first: i64,
        last: i64,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        self.copy_out(key, Reach::Span(first, last), value)
    }

    #[inline]
    fn copy_out(&self, key: &[u8], reach: Reach, value: &mut Vec<u8>) -> Result<bool> {
        let found = self.read(key, reach, |_, bytes| {
            value.clear();
            bytes.append_to(value);
        })?;
        if found.is_none() {
            value.clear();
        }
        Ok(found.is_some())
    }

    /// What is known about a key.
    pub fn meta(&self, key: &[u8]) -> Result<Option<Meta>> {
        self.read(key, Reach::Nothing, |meta, _| *meta)
    }

    /// Bytes that a key takes: its record, the extent of a long value, the nodes of a collection.
    /// `None`: there is no such key. Reads the inner nodes of a collection, not its leaves.
    pub fn footprint(&self, key: &[u8]) -> Result<Option<usize>> {
        let id = self.id(key)?;
        self.core.reading_key(self.scope, id.hash, |bucket| {
            let about =
                bucket.lookup(&id, Reach::Nothing, &mut |meta: &Meta, _: Value<'_>| *meta)?;
            let Some(meta) = about.found else {
                return Ok(None);
            };
            if meta.kind == Kind::String {
                return Ok(Some(meta.footprint));
            }
            let mut head = |_: &Meta, value: Value<'_>| {
                let mut bytes = Vec::new();
                value.append_to(&mut bytes);
                bytes
            };
            let head = bucket.lookup(&id, Reach::All, &mut head)?.found;
            let nodes = self.core.node_bytes(meta.kind, &head.unwrap_or_default())?;
            Ok(Some(meta.footprint + nodes))
        })
    }

    /// Sets a key, whatever it was.
    #[inline]
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.set_with(key, value, SetOptions::default()).map(|_| ())
    }

    /// Sets a key as `options` say.
    #[inline]
    pub fn set_with(&self, key: &[u8], value: &[u8], options: SetOptions) -> Result<SetOutcome> {
        let id = self.id(key)?;
        self.with_payload(value, |payload| {
            let mut op = Set::new(payload, options);
            self.core.edit(self.scope, &id, &mut op)?;
            Ok(SetOutcome {
                applied: op.applied,
                existed: op.existed,
            })
        })
    }

    /// Like [`Db::set_with`], and copies the old value out.
    pub fn swap(
        &self,
        key: &[u8],
        value: &[u8],
        options: SetOptions,
        old: &mut Vec<u8>,
    ) -> Result<SetOutcome> {
        let id = self.id(key)?;
        self.with_payload(value, |payload| {
            let mut op = Set::fetching(payload, options, old);
            self.core.edit(self.scope, &id, &mut op)?;
            Ok(SetOutcome {
                applied: op.applied,
                existed: op.existed,
            })
        })
    }

    /// Puts a long value into an extent for `f` to point a record at;
    /// frees it when that did not happen.
    #[inline]
    fn with_payload(
        &self,
        value: &[u8],
        f: impl FnOnce(Payload<'_>) -> Result<SetOutcome>,
    ) -> Result<SetOutcome> {
        if value.len() <= self.core.geometry.inline_max() {
            return f(Payload::Inline(value));
        }
        let extent = self.core.store_value(self.scope, value)?;
        let outcome = f(Payload::Extent {
            extent,
            len: value.len(),
        });
        self.core
            .settle(self.scope, extent, outcome, |outcome| outcome.applied)
    }

    /// Removes a key; says whether it was there.
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        let mut op = Remove::default();
        self.core.edit(self.scope, &self.id(key)?, &mut op)?;
        Ok(op.existed)
    }

    /// Copies the value out and removes the key.
    pub fn take(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.fetch(key, Edit::Remove, value)
    }

    /// Copies the value out and changes the expiry (0: none); one in the past removes the key.
    pub fn get_and_expire(&self, key: &[u8], expiry: u64, value: &mut Vec<u8>) -> Result<bool> {
        let past = expiry != 0 && expiry <= self.core.clock.now();
        self.fetch(
            key,
            if past {
                Edit::Remove
            } else {
                Edit::Expire(expiry)
            },
            value,
        )
    }

    fn fetch(&self, key: &[u8], edit: Edit, value: &mut Vec<u8>) -> Result<bool> {
        let mut op = Fetch {
            out: value,
            edit,
            existed: false,
        };
        self.core.edit(self.scope, &self.id(key)?, &mut op)?;
        Ok(op.existed)
    }

    /// Adds to an integer; a key that is not there counts as 0.
    pub fn increment(&self, key: &[u8], by: i64) -> Result<i64> {
        let mut op = Increment::new(by);
        self.core.edit(self.scope, &self.id(key)?, &mut op)?;
        op.result
    }

    /// Adds to a decimal number; says the sum as it is stored. `None`: `by` is not a number.
    pub fn increment_float(&self, key: &[u8], by: &[u8]) -> Result<String> {
        let by = Number::parse(by).ok_or(Error::NotAFloat)?;
        let limit = self.core.geometry.inline_max();
        let mut op = IncrementFloat {
            by,
            limit,
            result: Err(Error::NotAFloat),
        };
        self.core.edit(self.scope, &self.id(key)?, &mut op)?;
        op.result
    }

    /// Puts bytes behind the value; says its new length.
    pub fn append(&self, key: &[u8], bytes: &[u8]) -> Result<usize> {
        self.core.splice(
            self.scope,
            &self.id(key)?,
            Patch {
                offset: None,
                bytes,
            },
        )
    }

    /// Puts bytes over the value from `offset` on, with zeros before if it is shorter;
    /// says its length.
    pub fn set_range(&self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<usize> {
        self.core.splice(
            self.scope,
            &self.id(key)?,
            Patch {
                offset: Some(offset),
                bytes,
            },
        )
    }

    /// Lets a key expire at `at` (ms since 1970, not 0); one in the past removes it.
    pub fn expire(&self, key: &[u8], at: u64, only: ExpireIf) -> Result<bool> {
        self.expire_op(key, at.max(1), only)
    }

    /// Takes a key's expiry away; says whether it had one.
    pub fn persist(&self, key: &[u8]) -> Result<bool> {
        self.expire_op(key, 0, ExpireIf::default())
    }

    fn expire_op(&self, key: &[u8], at: u64, only: ExpireIf) -> Result<bool> {
        let mut op = Expire {
            at,
            only,
            now: self.core.clock.now(),
            applied: false,
        };
        self.core.edit(self.scope, &self.id(key)?, &mut op)?;
        Ok(op.applied)
    }

    /// What to compare with later to see whether a key has changed.
    pub fn mark(&self, key: &[u8]) -> Result<Mark> {
        let id = self.id(key)?;
        let (seen, flushed) = self.core.reading_key(self.scope, id.hash, |bucket| {
            let flushes = bucket.flushes()?;
            let stamp = |meta: &Meta, _: Value<'_>| meta.stamp;
            let seen = bucket.lookup(&id, Reach::Nothing, &mut { stamp })?;
            let flushed = match seen.deleted {
                0 => flushes.epoch,
                _ => flushes.era(id.db).flushed,
            };
            Ok((seen, flushed))
        })?;
        let absent = if seen.found.is_some() {
            (0, 0)
        } else {
            (seen.deleted, flushed)
        };
        Ok(Mark {
            stamp: seen.found,
            absent,
        })
    }

    /// The store's clock: ms since 1970.
    pub fn now(&self) -> u64 {
        self.core.clock.now()
    }
}
