//! Keys as they are in Redis' files.

use crate::error::{Error, Result};
use crate::layout::kind::Kind;
use crate::memory::Memory;
use crate::rdb::Body;
use crate::store::collection::{Collection, unhashed};
use crate::store::db::Db;
use crate::store::value::Reach;

/// How often a key may change its type while it is looked at.
const ATTEMPTS: usize = 16;

/// A key's value, and when it expires in ms since 1970, 0 for never.
pub(crate) struct Exported {
    pub body: Body,
    pub expiry: u64,
}

impl<M: Memory> Db<'_, M> {
    /// A key as it is at one moment, for a file or a payload.
    ///
    /// # Errors
    /// Those of reading the key.
    pub(crate) fn export(&self, key: &[u8]) -> Result<Option<Exported>> {
        let mut outcome = Ok(None);
        for _ in 0..ATTEMPTS {
            let Some(meta) = self.meta(key)? else {
                return Ok(None);
            };
            outcome = match meta.kind {
                Kind::String => self.read(key, Reach::All, |meta, value| {
                    let mut bytes = Vec::new();
                    value.append_to(&mut bytes);
                    Exported {
                        body: Body::string(&bytes),
                        expiry: meta.expiry,
                    }
                }),
                kind => self.view(key, kind, |found| {
                    Ok(Exported {
                        body: body(found)?,
                        expiry: found.expiry,
                    })
                }),
            };
            // It is of another type by now.
            if !matches!(outcome, Err(Error::WrongType)) {
                break;
            }
        }
        outcome
    }
}

pub(super) fn body<M: Memory>(found: &Collection<'_, M>) -> Result<Body> {
    let count = usize::try_from(found.count(0)).map_err(|_| Error::ValueTooLong)?;
    let mut body = match found.kind {
        Kind::List => Body::list(count),
        Kind::Set => Body::set(count),
        Kind::Hash => Body::hash(count),
        Kind::SortedSet => return sorted_set(found, count),
        Kind::Stream => return super::stream::export(found),
        Kind::String => return Err(Error::WrongType),
    };
    found.walk(0, 0, |key, value| {
        match found.kind {
            Kind::List => body.element(value),
            Kind::Set => body.element(unhashed(key)),
            _ => {
                body.element(unhashed(key));
                body.element(value);
            }
        }
        true
    })?;
    Ok(body)
}

fn sorted_set<M: Memory>(found: &Collection<'_, M>, count: usize) -> Result<Body> {
    let mut body = Body::sorted_set(count);
    found.span(0..found.members(), false, |member, score| {
        body.scored(member, score);
        true
    })?;
    Ok(body)
}
