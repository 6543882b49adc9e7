//! Reading values, and changing parts of them.

use super::set::{UNITS, deadline};
use super::{Call, MAX_REPLY, Outcome, SYNTAX};
use crate::error::Error;
use crate::memory::Memory;
use crate::store::value::Reach;
use crate::store::{Kind, Values};

pub(super) fn get<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    range(call, Reach::All, true)
}

pub(super) fn getrange<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let reach = Reach::Span(call.integer(2)?, call.integer(3)?);
    range(call, reach, false)
}

/// Replies with a part of a value, straight from the store into the reply.
#[inline]
fn range<M: Memory>(call: &mut Call<'_, '_, M>, reach: Reach, nil: bool) -> Outcome {
    let (start, reply, key) = (call.reply.out.len(), &mut call.reply, call.args.at(1));
    let found = call.db.read(key, reach, |_, value| {
        reply.out.truncate(start);
        reply.bulk_with(value.len(), |out| value.append_to(out));
    })?;
    if found.is_none() {
        call.reply.out.truncate(start);
        if nil {
            call.reply.nil()
        } else {
            call.reply.bulk(b"")
        }
    }
    call.found(found.is_some());
    Ok(())
}

pub(super) fn getdel<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let mut value = Vec::new();
    let found = call.db.take(call.word(1), &mut value)?;
    call.found(found);
    call.reply.maybe(found.then_some(&value));
    Ok(())
}

pub(super) fn getex<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let expiry = match call.args.len() {
        2 => return get(call),
        3 if call.args.is(2, "persist") => 0,
        4 => {
            let unit = UNITS
                .iter()
                .find(|(word, _)| call.args.is(2, word))
                .ok_or(SYNTAX)?;
            match deadline(call.word(3), unit.1, call.db.now(), "getex") {
                Ok(at) => at,
                // As in Redis, a time is only looked at for a key that is there. One look decides:
                // at a second one the key might be there.
                Err(failure) => {
                    if call.db.meta(call.word(1))?.is_some() {
                        return Err(failure);
                    }
                    call.found(false);
                    call.reply.nil();
                    return Ok(());
                }
            }
        }
        _ => return Err(SYNTAX.into()),
    };
    let mut value = Vec::new();
    let found = call.db.get_and_expire(call.word(1), expiry, &mut value)?;
    call.found(found);
    call.reply.maybe(found.then_some(&value));
    Ok(())
}

pub(super) fn mget<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let keys = call.keys();
    let mut values = Values::default();
    call.db.get_many(&keys, MAX_REPLY, &mut values)?;
    call.reply.array(keys.len());
    for value in values.iter() {
        call.found(value.is_some());
        call.reply.maybe(value);
    }
    Ok(())
}

pub(super) fn strlen<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let meta = call.db.meta(call.word(1))?;
    if meta.is_some_and(|meta| meta.kind != Kind::String) {
        return Err(Error::WrongType.into());
    }
    call.found(meta.is_some());
    call.reply.count(meta.map_or(0, |meta| meta.len));
    Ok(())
}

pub(super) fn append<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let len = call.db.append(call.word(1), call.word(2))?;
    call.reply.count(len);
    Ok(())
}

pub(super) fn setrange<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let offset = call.integer(2)?;
    if offset < 0 {
        return Err("ERR offset is out of range".into());
    }
    let offset = usize::try_from(offset).map_err(|_| Error::ValueTooLong)?;
    let len = call.db.set_range(call.word(1), offset, call.word(3))?;
    call.reply.count(len);
    Ok(())
}
