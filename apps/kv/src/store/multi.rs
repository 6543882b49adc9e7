//! Operations on several keys, each one step for all others.
//!
//! They hold the buckets of all their keys, to read or to change them.

use std::ops::Range;

use super::db::{Condition, Db, Expiry, SetOptions};
use super::edit::Effects;
use super::held::Held;
use super::lock::Scope;
use super::ops::{Peek, Peeked, Remove, Set};
use super::value::Reach;
use crate::error::{Error, Result};
use crate::layout::kind::Kind;
use crate::layout::page::{EXTENT_REF, Extent, record_size};
use crate::layout::page_mut::Payload;
use crate::memory::{Access, Memory, MemoryError};

/// Values read together. Reusable.
#[derive(Debug, Default)]
pub struct Values {
    bytes: Vec<u8>,
    spans: Vec<Option<Range<usize>>>,
}

impl Values {
    /// The values in the order of their keys, `None` for keys that are not there.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        self.spans
            .iter()
            .map(|span| span.clone().map(|span| &self.bytes[span]))
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }
}

impl<'a, M: Memory> Db<'a, M> {
    /// [`Db::together`] to read. What has died with a node is mended, and `f` runs again.
    pub(crate) fn together_to_read<R>(
        &self,
        keys: &[&[u8]],
        mut f: impl FnMut(Db<'_, M>) -> Result<R>,
    ) -> Result<R> {
        let mut patience = self.core.patience();
        loop {
            match self.together(keys, Access::Read, &mut f) {
                Err(error) if error.is_node_lost() && self.scope.is_alone() => {
                    self.mend_all(keys, error)?;
                }
                done => return done,
            }
            patience.pause()?;
        }
    }

    /// Mends what can be mended in the keys' buckets.
    #[cold]
    fn mend_all(&self, keys: &[&[u8]], error: Error) -> Result<()> {
        let mut buckets: Vec<usize> = keys
            .iter()
            .map(|key| Ok(self.core.guess(&self.id(key)?)))
            .collect::<Result<_>>()?;
        buckets.sort_unstable();
        buckets.dedup();
        let Error::Memory(MemoryError::Lost(addr)) = error else {
            return self.core.recover(buckets[0], error);
        };
        buckets
            .into_iter()
            .try_for_each(|bucket| self.core.recover(bucket, MemoryError::Lost(addr).into()))
    }

    /// Runs `f` with the keys' buckets held, by this transaction already or for the length of `f`.
    pub(crate) fn together<R>(
        &self,
        keys: &[&[u8]],
        access: Access,
        f: impl FnOnce(Db<'_, M>) -> Result<R>,
    ) -> Result<R> {
        if !self.scope.is_alone() {
            return f(*self);
        }
        let held = self.hold(keys, access)?;
        f(Db {
            core: self.core,
            scope: Scope(Some(&held)),
            number: self.number,
        })
    }

    fn hold(&self, keys: &[&[u8]], access: Access) -> Result<Held<'a, M>> {
        let hashes = keys.iter().map(|key| Ok(self.id(key)?.hash));
        let hashes = hashes.collect::<Result<Vec<_>>>()?;
        self.core.hold(&hashes, access)
    }

    /// Reads several keys as they are at one moment. `limit` bounds the bytes of all values
    /// together.
    pub fn get_many(&self, keys: &[&[u8]], limit: usize, values: &mut Values) -> Result<()> {
        self.read_many(keys, Reach::All, limit, values)
    }

    /// How many of the keys are there at one moment; a key named twice counts twice.
    pub fn count_present(&self, keys: &[&[u8]]) -> Result<usize> {
        let mut values = Values::default();
        self.read_many(keys, Reach::Nothing, 0, &mut values)?;
        Ok(values.spans.iter().flatten().count())
    }

    fn read_many(
        &self,
        keys: &[&[u8]],
        reach: Reach,
        limit: usize,
        values: &mut Values,
    ) -> Result<()> {
        let mut patience = self.core.patience();
        loop {
            values.clear();
            let read = self.together(keys, Access::Read, |db| {
                db.read_held(keys, reach, limit, values)
            });
            // Whoever holds buckets to read mends none: the one where reading has failed is mended
            // when they are let go.
            match (read, keys.get(values.spans.len())) {
                (Err(error), Some(key)) if self.scope.is_alone() => {
                    let bucket = self.core.guess(&self.id(key)?);
                    self.core.recover(bucket, error)?;
                }
                (read, _) => return read,
            }
            patience.pause()?;
        }
    }

    fn read_held(
        &self,
        keys: &[&[u8]],
        reach: Reach,
        limit: usize,
        values: &mut Values,
    ) -> Result<()> {
        values.clear();
        for key in keys {
            let start = values.bytes.len();
            let found = self.read(key, reach, |_, value| {
                values.bytes.truncate(start);
                value.append_to(&mut values.bytes);
            });
            let found = match found {
                Err(Error::WrongType) => None,
                found => found?,
            };
            values.push(start, found, limit)?;
        }
        Ok(())
    }

    /// Sets several keys at once, all or none; with `only_new`, only when none of them is there.
    pub fn set_many(&self, pairs: &[(&[u8], &[u8])], only_new: bool) -> Result<bool> {
        let keys: Vec<&[u8]> = pairs.iter().map(|(key, _)| *key).collect();
        for key in &keys {
            self.id(key)?;
        }
        let mut stored = self.store_long(pairs)?;
        let done = self.together(&keys, Access::Write, |db| {
            if only_new && db.count_present(&keys)? != 0 {
                return Ok(false);
            }
            db.core.reserve(db.scope, &db.sizes(pairs)?)?;
            for ((key, value), extent) in pairs.iter().zip(&mut stored) {
                match extent.take() {
                    Some(extent) => db.set_extent(key, extent, value.len())?,
                    None => db.set(key, value)?,
                }
            }
            Ok(true)
        });
        self.discard_all(&stored)?;
        done
    }

    /// What each pair needs: its hash, and bytes in its bucket.
    fn sizes(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<(u64, usize)>> {
        let inline_max = self.core.geometry.inline_max();
        let size = |(key, value): &(&[u8], &[u8])| {
            let stored = if value.len() > inline_max {
                EXTENT_REF
            } else {
                value.len()
            };
            Ok((self.id(key)?.hash, record_size(key.len(), stored)))
        };
        pairs.iter().map(size).collect()
    }

    /// Sets a key to a value that is in its extent already.
    fn set_extent(&self, key: &[u8], extent: Extent, len: usize) -> Result<()> {
        let mut op = Set::new(Payload::Extent { extent, len }, SetOptions::default());
        let outcome = self
            .id(key)
            .and_then(|id| self.core.edit(self.scope, &id, &mut op));
        self.core
            .settle(self.scope, extent, outcome, |_| true)
            .map(|_| ())
    }

    /// Extents for the values that need one, all or none.
    fn store_long(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Extent>>> {
        let mut stored = Vec::with_capacity(pairs.len());
        for (_, value) in pairs {
            if value.len() <= self.core.geometry.inline_max() {
                stored.push(None);
                continue;
            }
            match self.core.store_value(self.scope, value) {
                Ok(extent) => stored.push(Some(extent)),
                Err(error) => {
                    self.discard_all(&stored)?;
                    return Err(error);
                }
            }
        }
        Ok(stored)
    }

    fn discard_all(&self, extents: &[Option<Extent>]) -> Result<()> {
        extents
            .iter()
            .flatten()
            .try_for_each(|extent| self.core.discard(self.scope, *extent))
    }

    /// Removes several keys at once; says how many were there.
    pub fn remove_many(&self, keys: &[&[u8]]) -> Result<usize> {
        if let [key] = keys {
            return self.remove(key).map(usize::from);
        }
        self.together(keys, Access::Write, |db| {
            let mut removed = 0;
            for key in keys {
                removed += usize::from(db.remove(key)?);
            }
            Ok(removed)
        })
    }

    fn peek(&self, key: &[u8]) -> Result<Option<Peeked>> {
        let mut op = Peek::default();
        self.core.edit(self.scope, &self.id(key)?, &mut op)?;
        Ok(op.found)
    }

    /// Gives the key another name, over what had it if `replace`; says whether it did.
    pub fn rename(&self, from: &[u8], to: &[u8], replace: bool) -> Result<bool> {
        self.together(&[from, to], Access::Write, |db| {
            let source = db.peek(from)?.ok_or(Error::NoSuchKey)?;
            if from == to {
                return Ok(replace);
            }
            // The new name first: it may need memory, and then nothing has happened yet.
            if !db.place(to, source.payload(), source.expiry, replace)? {
                return Ok(false);
            }
            let _: Effects =
                db.core
                    .edit_keeping(db.scope, &db.id(from)?, &mut Remove::default())?;
            Ok(true) // the extent is the new record's now, and not freed
        })
    }

    /// Copies a key to `to` in database `target`; `None` when there is no such database.
    pub fn copy(&self, from: &[u8], target: u8, to: &[u8], replace: bool) -> Result<Option<bool>> {
        if self.select(target).is_none() {
            return Ok(None);
        }
        self.together(&[from, to], Access::Write, |db| {
            let (Some(source), Some(there)) = (db.peek(from)?, db.select(target)) else {
                return Ok(Some(false));
            };
            if !replace && there.peek(to)?.is_some() {
                return Ok(Some(false));
            }
            if source.kind != Kind::String {
                let place = |head: &[u8]| {
                    there.place(to, source.inline_payload(head), source.expiry, replace)
                };
                let copied =
                    db.core
                        .duplicate(db.scope, (source.kind, &source.inline), place, |placed| {
                            *placed
                        });
                return copied.map(Some);
            }
            let Some(extent) = source.extent else {
                return there
                    .place(to, source.payload(), source.expiry, replace)
                    .map(Some);
            };
            let copy = Extent {
                addr: db.core.alloc(source.len)?,
                capacity: source.len,
            };
            db.scope.note_fresh(copy.addr, copy.capacity);
            let payload = Payload::Extent {
                extent: copy,
                len: source.len,
            };
            let placed = db.core.copy_bytes(extent.addr, copy.addr, source.len);
            let placed = placed.and_then(|()| there.place(to, payload, source.expiry, replace));
            db.core
                .settle(db.scope, copy, placed, |placed| *placed)
                .map(Some)
        })
    }

    /// Moves a key to database `target`, unless there is such a key; `None` when there is no such
    /// database.
    pub fn move_to(&self, key: &[u8], target: u8) -> Result<Option<bool>> {
        if self.select(target).is_none() {
            return Ok(None);
        }
        self.together(&[key], Access::Write, |db| {
            let (Some(source), Some(there)) = (db.peek(key)?, db.select(target)) else {
                return Ok(Some(false));
            };
            if !there.place(key, source.payload(), source.expiry, false)? {
                return Ok(Some(false));
            }
            let _: Effects =
                db.core
                    .edit_keeping(db.scope, &db.id(key)?, &mut Remove::default())?;
            Ok(Some(true)) // what it refers to is the new record's now, and not freed
        })
    }

    /// Sets a key to a payload, if it may replace what is there; says whether it did.
    fn place(&self, key: &[u8], payload: Payload<'_>, expiry: u64, replace: bool) -> Result<bool> {
        let condition = if replace {
            Condition::Always
        } else {
            Condition::IfAbsent
        };
        let expiry = if expiry == 0 {
            Expiry::Never
        } else {
            Expiry::At(expiry)
        };
        let mut op = Set::new(payload, SetOptions { condition, expiry });
        self.core.edit(self.scope, &self.id(key)?, &mut op)?;
        Ok(op.applied)
    }
}

impl Values {
    fn push(&mut self, start: usize, found: Option<()>, limit: usize) -> Result<()> {
        if self.bytes.len() > limit {
            return Err(Error::ReplyTooLong);
        }
        self.spans.push(found.map(|()| start..self.bytes.len()));
        Ok(())
    }
}
