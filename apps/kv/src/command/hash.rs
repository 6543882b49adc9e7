//! Hashes: fields of a key, each with a value.

use super::{Call, Failure, MAX_REPLY, NOT_INTEGER, Outcome, SYNTAX, random, scanning};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::number::{Number, parse_i64};
use crate::resp::reply::{Protocol, Reply};
use crate::store::Kind;
use crate::store::collection::{Collection, hashed, unhashed};

/// The tree that fields are in.
const FIELDS: usize = 0;

/// Reads the hash that the second word names.
fn view<M: Memory, R>(
    call: &mut Call<'_, '_, M>,
    f: impl FnMut(&Collection<'_, M>) -> Result<R>,
) -> std::result::Result<Option<R>, Failure> {
    let found = call.db.view(call.word(1), Kind::Hash, f)?;
    call.found(found.is_some());
    Ok(found)
}

/// Sets the fields and values from the third word on; says how many are new.
fn set_fields<M: Memory>(call: &mut Call<'_, '_, M>) -> std::result::Result<i64, Failure> {
    if !call.args.len().is_multiple_of(2) {
        return Err(call.wrong_count());
    }
    let args = call.args;
    let new = call.db.change(call.word(1), Kind::Hash, |hash| {
        let mut new = 0;
        for i in (2..args.len()).step_by(2) {
            let old = hash.put(FIELDS, &hashed(args.at(i)), args.at(i + 1))?;
            new += i64::from(old.is_none());
        }
        Ok(new)
    })?;
    Ok(new)
}

pub(super) fn hset<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let new = set_fields(call)?;
    call.reply.int(new);
    Ok(())
}

pub(super) fn hmset<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    set_fields(call)?;
    call.reply.ok();
    Ok(())
}

pub(super) fn hsetnx<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (field, value) = (hashed(call.word(2)), call.word(3));
    let set = call.db.change(call.word(1), Kind::Hash, |hash| {
        let absent = hash.get(FIELDS, &field)?.is_none();
        if absent {
            hash.put(FIELDS, &field, value)?;
        }
        Ok(absent)
    })?;
    call.reply.flag(set);
    Ok(())
}

pub(super) fn hget<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let field = hashed(call.word(2));
    let value = view(call, |hash| hash.get(FIELDS, &field))?.flatten();
    call.reply.maybe(value.as_deref());
    Ok(())
}

pub(super) fn hmget<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let fields: Vec<_> = call.args.from(2).map(hashed).collect();
    let values = view(call, |hash| {
        let values = fields.iter().map(|field| hash.get(FIELDS, field));
        values.collect::<Result<Vec<_>>>()
    })?;
    call.reply.array(fields.len());
    for i in 0..fields.len() {
        let value = values.as_ref().and_then(|values| values[i].as_deref());
        call.reply.maybe(value);
    }
    Ok(())
}

/// What of each entry goes into a reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Fields,
    Values,
    Both,
}

/// Replies with all entries, straight from the store.
fn all<M: Memory>(call: &mut Call<'_, '_, M>, part: Part) -> Outcome {
    let start = call.reply.out.len();
    let (key, reply, mut fits) = (call.args.at(1), &mut call.reply, true);
    let found = call.db.view(key, Kind::Hash, |hash| {
        reply.out.truncate(start);
        let count = hash.count(FIELDS) as usize;
        match part {
            Part::Both => reply.map(count),
            _ => reply.array(count),
        }
        hash.walk(FIELDS, 0, |field, value| {
            if part != Part::Values {
                reply.bulk(unhashed(field));
            }
            if part != Part::Fields {
                reply.bulk(value);
            }
            fits = reply.out.len() - start <= MAX_REPLY;
            fits
        })
    })?;
    if !fits {
        return Err(Error::ReplyTooLong.into());
    }
    if found.is_none() {
        match part {
            Part::Both => reply.map(0),
            _ => reply.array(0),
        }
    }
    call.found(found.is_some());
    Ok(())
}

pub(super) fn hgetall<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    all(call, Part::Both)
}

pub(super) fn hkeys<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    all(call, Part::Fields)
}

pub(super) fn hvals<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    all(call, Part::Values)
}

pub(super) fn hlen<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let count = view(call, |hash| Ok(hash.count(FIELDS)))?;
    call.reply.count(count.unwrap_or(0) as usize);
    Ok(())
}

pub(super) fn hdel<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let fields: Vec<_> = call.args.from(2).map(hashed).collect();
    let gone = call.db.change(call.word(1), Kind::Hash, |hash| {
        hash.remove_all(FIELDS, &fields)
    })?;
    call.reply.count(gone);
    Ok(())
}

pub(super) fn hexists<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let field = hashed(call.word(2));
    let there = view(call, |hash| Ok(hash.rank(FIELDS, &field)?.1))?;
    call.reply.flag(there.unwrap_or(false));
    Ok(())
}

pub(super) fn hstrlen<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let field = hashed(call.word(2));
    let value = view(call, |hash| hash.get(FIELDS, &field))?.flatten();
    call.reply.count(value.map_or(0, |value| value.len()));
    Ok(())
}

/// Changes a field's value to what `f` makes of it; says the new one.
fn adapt<M: Memory>(
    call: &mut Call<'_, '_, M>,
    f: impl Fn(Option<&[u8]>) -> std::result::Result<String, Failure>,
) -> std::result::Result<String, Failure> {
    let field = hashed(call.word(2));
    call.db.change(call.word(1), Kind::Hash, |hash| {
        let old = hash.get(FIELDS, &field)?;
        let new = f(old.as_deref());
        if let Ok(text) = &new {
            hash.put(FIELDS, &field, text.as_bytes())?;
        }
        Ok(new)
    })?
}

pub(super) fn hincrby<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let by = parse_i64(call.word(3)).ok_or(NOT_INTEGER)?;
    let sum = adapt(call, |old| {
        let old = old.map_or(Some(0), parse_i64);
        let old = old.ok_or("ERR hash value is not an integer")?;
        Ok(old.checked_add(by).ok_or(Error::Overflow)?.to_string())
    })?;
    call.reply.int(sum.parse().unwrap_or_default());
    Ok(())
}

pub(super) fn hincrbyfloat<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let by = Number::parse(call.word(3)).ok_or(Error::NotAFloat)?;
    let finite = Number::Exact(0).plus(by);
    finite.ok_or("ERR value is NaN or Infinity")?;
    let sum = adapt(call, |old| {
        let old = old.map_or(Some(Number::Exact(0)), Number::parse);
        let old = old.ok_or("ERR hash value is not a float")?;
        Ok(old.plus(by).ok_or(Error::NotFinite)?.text())
    })?;
    call.reply.bulk(sum.as_bytes());
    Ok(())
}

/// Writes fields as HRANDFIELD does: pairs have arrays of their own in version 3 of the protocol.
fn write_entries(reply: &mut Reply<'_>, entries: &[(Vec<u8>, Vec<u8>)], values: bool) {
    let nested = values && reply.protocol == Protocol::Resp3;
    let flat = values && !nested;
    reply.array(entries.len() * (1 + usize::from(flat)));
    for (field, value) in entries {
        if nested {
            reply.array(2);
        }
        reply.bulk(unhashed(field));
        if values {
            reply.bulk(value);
        }
    }
}

pub(super) fn hrandfield<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let values = match call.args.len() {
        2 => {
            let one = view(call, |hash| random::entries(hash, FIELDS, 1))?;
            let one = one.unwrap_or_default();
            let field = one.first().map(|(field, _)| unhashed(field));
            call.reply.maybe(field);
            return Ok(());
        }
        3 => false,
        4 if call.args.is(3, "withvalues") => true,
        _ => return Err(SYNTAX.into()),
    };
    let count = random::count(call.integer(2)?)?;
    let entries = view(call, |hash| random::entries(hash, FIELDS, count))?;
    write_entries(&mut call.reply, &entries.unwrap_or_default(), values);
    Ok(())
}

pub(super) fn hscan<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    scanning::scan(call, Kind::Hash, FIELDS, true)
}
