//! Keys out of Redis' files.

use super::stream;
use crate::error::{Error, Result};
use crate::layout::kind::Kind;
use crate::memory::{Access, Memory};
use crate::rdb::Value;
use crate::store::collection::{Collection, hashed};
use crate::store::db::{Db, Expiry, SetOptions};

impl<M: Memory> Db<'_, M> {
    /// Puts a value, or its first part, in the place of what the key had.
    ///
    /// # Errors
    /// The key or an element is too long; the memory is full.
    pub(crate) fn import(&self, key: &[u8], value: &Value, expiry: Option<u64>) -> Result<()> {
        let kind = match value {
            Value::String(bytes) => {
                let options = SetOptions {
                    expiry: expiry.map_or(Expiry::Never, Expiry::At),
                    ..SetOptions::default()
                };
                return self.set_with(key, bytes, options).map(|_| ());
            }
            collection => kind(collection),
        };
        self.replace(key, kind, |made| {
            made.expiry = expiry.unwrap_or(0);
            fill(made, value)
        })
    }

    /// Puts a further part behind what the key has.
    ///
    /// # Errors
    /// As [`Db::import`]; the key has something else by now.
    pub(crate) fn import_more(&self, key: &[u8], part: &Value) -> Result<()> {
        self.change(key, kind(part), |found| fill(found, part))
    }

    /// [`Db::import`], unless the key is there and `replace` is not said; whether it was done.
    /// Without a value the key is only removed, which is what becomes of one that has expired.
    ///
    /// # Errors
    /// As [`Db::import`].
    pub(crate) fn restore(
        &self,
        key: &[u8],
        value: Option<&Value>,
        expiry: Option<u64>,
        replace: bool,
    ) -> Result<bool> {
        self.together(&[key], Access::Write, |db| {
            if !replace && db.meta(key)?.is_some() {
                return Ok(false);
            }
            match value {
                Some(value) => db.import(key, value, expiry)?,
                None => {
                    db.remove(key)?;
                }
            }
            Ok(true)
        })
    }
}

fn kind(value: &Value) -> Kind {
    match value {
        Value::String(_) => Kind::String,
        Value::List(_) => Kind::List,
        Value::Set(_) => Kind::Set,
        Value::Hash(_) => Kind::Hash,
        Value::SortedSet(_) => Kind::SortedSet,
        Value::Stream(_) => Kind::Stream,
    }
}

/// Puts a part of a collection behind what is there.
fn fill<M: Memory>(found: &mut Collection<'_, M>, part: &Value) -> Result<()> {
    match part {
        Value::List(list) => {
            for element in list {
                let end = found.count(0);
                found.insert(0, end, short(element)?)?;
            }
        }
        Value::Set(set) => {
            for member in set {
                found.put(0, &hashed(short(member)?), &[])?;
            }
        }
        Value::Hash(pairs) => {
            for (field, value) in pairs {
                found.put(0, &hashed(short(field)?), short(value)?)?;
            }
        }
        Value::Stream(part) => stream::fill(found, part)?,
        Value::SortedSet(pairs) => {
            for (member, score) in pairs {
                let old = found.score(short(member)?)?;
                found.set_score(member, old, *score)?;
            }
        }
        Value::String(_) => return Err(Error::WrongType),
    }
    Ok(())
}

/// An element that is not longer than a value may be.
fn short(element: &[u8]) -> Result<&[u8]> {
    match element.len() {
        ..=crate::MAX_VALUE => Ok(element),
        _ => Err(Error::ValueTooLong),
    }
}
