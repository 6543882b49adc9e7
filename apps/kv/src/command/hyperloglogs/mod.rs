//! HyperLogLogs: how many different elements were added, about, in strings of at most 12 KiB.
//!
//! The strings are those of Redis (`form.rs`), so that either can read what the other has written.

mod estimate;
mod form;

use self::form::Registers;
use super::{Call, Failure, Outcome};
use crate::error::Error;
use crate::memory::{Access, Memory};
use crate::store::{Db, Expiry, SetOptions};

const NOT_ONE: &str = "WRONGTYPE Key is not a valid HyperLogLog string value.";
const DAMAGED: &str = "INVALIDOBJ Corrupted HLL object detected";

/// What went well, of something in the middle of an operation on the store.
type Tried<T> = Result<Result<T, Failure>, Error>;

/// The registers of a key. `None`: there is no such key.
fn load<M: Memory>(db: &Db<'_, M>, key: &[u8]) -> Tried<Option<Registers>> {
    let mut value = Vec::new();
    if !db.get(key, &mut value)? {
        return Ok(Ok(None));
    }
    Ok(Registers::decode(&value).map(Some).map_err(|bad| {
        Failure::from(match bad {
            form::Bad::Foreign => NOT_ONE,
            form::Bad::Damaged => DAMAGED,
        })
    }))
}

/// Puts the registers in the place of those that were there, in dense form where they lie.
fn store<M: Memory>(db: &Db<'_, M>, key: &[u8], registers: &Registers) -> Result<(), Error> {
    let bytes = registers.encode();
    if db.meta(key)?.is_some_and(|meta| meta.len == bytes.len()) {
        return db.set_range(key, 0, &bytes).map(|_| ());
    }
    let options = SetOptions {
        expiry: Expiry::Keep,
        ..SetOptions::default()
    };
    db.set_with(key, &bytes, options).map(|_| ())
}

pub(super) fn pfadd<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (key, args) = (call.word(1), call.args);
    let changed = call.db.together(&[key], Access::Write, |db| {
        let loaded = match load(&db, key)? {
            Ok(loaded) => loaded,
            Err(failure) => return Ok(Err(failure)),
        };
        let (mut changed, mut registers) = (loaded.is_none(), loaded.unwrap_or_default());
        for element in args.from(2) {
            changed |= registers.add(element);
        }
        if changed {
            store(&db, key, &registers)?;
        }
        Ok(Ok(changed))
    })?;
    call.reply.flag(changed?);
    Ok(())
}

/// The registers of several keys as one.
fn union<M: Memory>(db: &Db<'_, M>, keys: &[&[u8]]) -> Tried<Registers> {
    let mut union = Registers::default();
    for key in keys {
        match load(db, key)? {
            Ok(Some(registers)) => union.merge(&registers),
            Ok(None) => {}
            Err(failure) => return Ok(Err(failure)),
        }
    }
    Ok(Ok(union))
}

pub(super) fn pfcount<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let keys = call.keys();
    let union = match keys[..] {
        [_] => union(&call.db, &keys)?,
        _ => call.db.together_to_read(&keys, |db| union(&db, &keys))?,
    }?;
    call.reply.int(union.estimate() as i64);
    Ok(())
}

pub(super) fn pfmerge<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let keys = call.keys();
    let merged = call
        .db
        .together(&keys, Access::Write, |db| match union(&db, &keys)? {
            Ok(registers) => store(&db, keys[0], &registers).map(Ok),
            Err(failure) => Ok(Err(failure)),
        })?;
    merged?;
    call.reply.ok();
    Ok(())
}
