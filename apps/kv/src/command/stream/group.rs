//! XGROUP and XACK.

use super::{Fallible, no_group, parse_bound, parse_id};
use crate::command::{Call, NOT_INTEGER, Outcome, SYNTAX, Subcommand, help};
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::store::Kind;
use crate::store::collection::stream::{Consumer, Id};

pub(in crate::command) const fn of_xgroup<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("create", 5..=8, create),
            ("setid", 5..=7, setid),
            ("destroy", 4..=4, destroy),
            ("createconsumer", 5..=5, createconsumer),
            ("delconsumer", 5..=5, delconsumer),
            ("help", 2..=2, help),
        ]
    }
}

const NO_KEY: &str = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE \
     you may want to use the MKSTREAM option to create an empty stream automatically.";

/// The words behind a group's name: from which entry on it reads, how many it has read.
struct Start {
    /// `None`: from now on.
    last: Option<Id>,
    read: i64,
    make: bool,
}

fn parse<M: Memory>(call: &Call<'_, '_, M>) -> Fallible<Start> {
    let mut start = Start {
        last: match call.word(4) {
            b"$" => None,
            // The least and the most that there is, for SETID only: as in Redis.
            word @ (b"-" | b"+") if call.args.is(1, "setid") => Some(parse_bound(word, false)?),
            word => Some(parse_id(word, 0)?),
        },
        read: -1,
        make: false,
    };
    let mut i = 5;
    while i < call.args.len() {
        if call.args.is(i, "mkstream") && call.args.is(1, "create") {
            start.make = true;
            i += 1;
        } else if call.args.is(i, "entriesread") && i + 1 < call.args.len() {
            start.read = parse_i64(call.word(i + 1)).ok_or(NOT_INTEGER)?;
            if start.read < -1 {
                return Err("ERR value for ENTRIESREAD must be positive or -1".into());
            }
            i += 2;
        } else {
            return Err(SYNTAX.into());
        }
    }
    Ok(start)
}

fn create<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (start, name) = (parse(call)?, call.word(3));
    call.db.change(call.word(2), Kind::Stream, |stream| {
        if !stream.existed && !start.make {
            return Ok(Err(NO_KEY.into()));
        }
        if stream.group(name)?.is_some() {
            return Ok(Err("BUSYGROUP Consumer Group name already exists".into()));
        }
        let last = match start.last {
            Some(id) => id,
            None => stream.info()?.last,
        };
        stream.add_group(name, last, start.read)?;
        Ok(Outcome::Ok(()))
    })??;
    call.reply.ok();
    Ok(())
}

/// "No such group", for a stream that is there.
fn no_such_group(key: &[u8], name: &[u8]) -> super::Failure {
    let mut text = b"NOGROUP No such consumer group '".to_vec();
    text.extend_from_slice(name);
    text.extend_from_slice(b"' for key name '");
    text.extend_from_slice(key);
    text.push(b'\'');
    text.into()
}

fn setid<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (start, key, name) = (parse(call)?, call.word(2), call.word(3));
    call.db.change(key, Kind::Stream, |stream| {
        if !stream.existed {
            return Ok(Err(NO_KEY.into()));
        }
        let Some(mut group) = stream.group(name)? else {
            return Ok(Err(no_such_group(key, name)));
        };
        group.last = match start.last {
            Some(id) => id,
            None => stream.info()?.last,
        };
        group.read = start.read;
        stream.set_group(name, &group)?;
        Ok(Outcome::Ok(()))
    })??;
    call.reply.ok();
    Ok(())
}

fn destroy<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let name = call.word(3);
    let gone = call
        .db
        .change(call.word(2), Kind::Stream, |stream| match stream.existed {
            true => stream.remove_group(name).map(Ok),
            false => Ok(Err(NO_KEY.into())),
        })?;
    call.reply.flag(Fallible::<bool>::from(gone)?);
    Ok(())
}

fn createconsumer<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (key, name, consumer, now) = (call.word(2), call.word(3), call.word(4), call.db.now());
    let made = call.db.change(key, Kind::Stream, |stream| {
        if !stream.existed {
            return Ok(Err(NO_KEY.into()));
        }
        let Some(group) = stream.group(name)? else {
            return Ok(Err(no_such_group(key, name)));
        };
        if stream.consumer(&group, consumer)?.is_some() {
            return Ok(Ok(false));
        }
        let new = Consumer {
            seen: now,
            ..Consumer::default()
        };
        stream.set_consumer(&group, consumer, &new)?;
        Ok(Ok(true))
    })??;
    call.reply.flag(made);
    Ok(())
}

fn delconsumer<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (key, name, consumer) = (call.word(2), call.word(3), call.word(4));
    let pending = call.db.change(key, Kind::Stream, |stream| {
        if !stream.existed {
            return Ok(Err(NO_KEY.into()));
        }
        if stream.group(name)?.is_none() {
            return Ok(Err(no_such_group(key, name)));
        }
        stream.remove_consumer(name, consumer).map(Ok)
    })??;
    call.reply.int(pending.unwrap_or(0) as i64);
    Ok(())
}

pub(in crate::command) fn xack<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let ids = call.args.from(3).map(|word| parse_id(word, 0));
    let (ids, name) = (ids.collect::<Fallible<Vec<_>>>()?, call.word(2));
    let acknowledged = call.db.change(call.word(1), Kind::Stream, |stream| {
        let mut acknowledged = 0;
        for id in &ids {
            acknowledged += usize::from(stream.acknowledge(name, *id)?);
        }
        Ok(acknowledged)
    })?;
    call.reply.count(acknowledged);
    Ok(())
}

/// What XPENDING and its like say where there is no such group.
pub(super) fn missing(key: &[u8], group: &[u8]) -> super::Failure {
    no_group(key, group, "")
}
