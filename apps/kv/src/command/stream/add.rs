//! XADD, and what takes entries out again.

use super::{BAD_ID, Fallible, parse_id, view, write_id};
use crate::command::{Call, NOT_INTEGER, Outcome, SYNTAX};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::store::Kind;
use crate::store::collection::Collection;
use crate::store::collection::stream::{ENTRIES, Id, encode_fields};

/// Which entries go.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// All but the last so many.
    Length(u64),
    /// Those below.
    From(Id),
}

/// MAXLEN or MINID, with how many go at most.
#[derive(Clone, Copy, Debug)]
struct Trim {
    bound: Bound,
    limit: u64,
}

/// Reads `MAXLEN|MINID [=|~] threshold [LIMIT count]` from word `i` on; says where it ends.
fn parse_trim<M: Memory>(call: &Call<'_, '_, M>, i: usize) -> Fallible<(Trim, usize)> {
    let (length, mut at) = (call.args.is(i, "maxlen"), i + 1);
    let about = call.word(at) == b"~";
    if about || call.word(at) == b"=" {
        at += 1;
    }
    let word = call.args.get(at).ok_or(SYNTAX)?;
    let bound = if length {
        let length = parse_i64(word).ok_or(NOT_INTEGER)?;
        let length = u64::try_from(length);
        Bound::Length(length.map_err(|_| "ERR The MAXLEN argument must be >= 0.")?)
    } else {
        Bound::From(parse_id(word, 0)?)
    };
    at += 1;
    let mut limit = 0;
    if call.args.is(at, "limit") && at + 1 < call.args.len() {
        let count = parse_i64(call.word(at + 1)).ok_or(NOT_INTEGER)?;
        limit = u64::try_from(count).map_err(|_| "ERR The LIMIT argument must be >= 0.")?;
        if !about {
            return Err(
                "ERR syntax error, LIMIT cannot be used without the special ~ option".into(),
            );
        }
        at += 2;
    }
    Ok((Trim { bound, limit }, at))
}

impl Trim {
    /// Takes out what is too much; says how many.
    fn apply<M: Memory>(self, stream: &mut Collection<'_, M>) -> Result<u64> {
        let mut goes = match self.bound {
            Bound::Length(length) => stream.count(ENTRIES).saturating_sub(length),
            Bound::From(id) => stream.rank(ENTRIES, &id.bytes())?.0,
        };
        if self.limit != 0 {
            goes = goes.min(self.limit);
        }
        stream.cut(ENTRIES, 0..goes)?;
        Ok(goes)
    }
}

/// The number that a new entry is to have.
#[derive(Clone, Copy)]
enum Wanted {
    Any,
    /// With any second half.
    At(u64),
    Exactly(Id),
}

impl Wanted {
    fn parse(word: &[u8]) -> Fallible<Wanted> {
        if word == b"*" {
            return Ok(Wanted::Any);
        }
        match word.strip_suffix(b"-*") {
            Some(ms) if !ms.contains(&b'-') => Ok(Wanted::At(parse_id(ms, 0)?.ms)),
            Some(_) => Err(BAD_ID.into()),
            None => Ok(Wanted::Exactly(parse_id(word, 0)?)),
        }
    }

    /// The number in a stream whose last entry has or had `last`.
    fn choose(self, last: Id, now: u64) -> Fallible<Id> {
        if let Wanted::Exactly(Id::MIN) = self {
            return Err("ERR The ID specified in XADD must be greater than 0-0".into());
        }
        let behind = last.next();
        let behind = behind
            .ok_or("ERR The stream has exhausted the last possible ID, unable to add more items")?;
        let ms = match self {
            Wanted::Any => now.max(behind.ms),
            Wanted::At(ms) => ms,
            Wanted::Exactly(id) => id.ms,
        };
        let id = match self {
            Wanted::Exactly(id) => id,
            _ if ms == behind.ms => behind,
            _ => Id { ms, seq: 0 },
        };
        if id < behind {
            return Err(
                "ERR The ID specified in XADD is equal or smaller than the target stream \
                 top item"
                    .into(),
            );
        }
        Ok(id)
    }
}

pub(in crate::command) fn xadd<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (mut i, mut make, mut trim) = (2, true, None);
    loop {
        if call.args.is(i, "nomkstream") {
            make = false;
            i += 1;
        } else if call.args.is(i, "maxlen") || call.args.is(i, "minid") {
            let (parsed, end) = parse_trim(call, i)?;
            (trim, i) = (Some(parsed), end);
        } else {
            break;
        }
    }
    let words = call.args.len().saturating_sub(i + 1);
    if i >= call.args.len() || words == 0 || !words.is_multiple_of(2) {
        return Err(call.wrong_count());
    }
    let wanted = Wanted::parse(call.word(i))?;
    let (fields, now) = (encode_fields(call.args.from(i + 1)), call.db.now());
    let added = call.db.change(call.word(1), Kind::Stream, |stream| {
        if !stream.existed && !make {
            return Ok(Ok(None));
        }
        let id = match wanted.choose(stream.info()?.last, now) {
            Ok(id) => id,
            Err(failure) => return Ok(Err(failure)),
        };
        stream.add_entry(id, &fields)?;
        if let Some(trim) = trim {
            trim.apply(stream)?;
        }
        Ok(Ok(Some(id)))
    })??;
    match added {
        Some(id) => write_id(&mut call.reply, id),
        None => call.reply.nil(),
    }
    Ok(())
}

pub(in crate::command) fn xtrim<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if !(call.args.is(2, "maxlen") || call.args.is(2, "minid")) {
        return Err(SYNTAX.into());
    }
    let (trim, end) = parse_trim(call, 2)?;
    if end != call.args.len() {
        return Err(SYNTAX.into());
    }
    let gone = call
        .db
        .change(call.word(1), Kind::Stream, |stream| trim.apply(stream))?;
    call.reply.int(gone as i64);
    Ok(())
}

pub(in crate::command) fn xdel<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let ids = call.args.from(2).map(|word| parse_id(word, 0));
    let ids = ids.collect::<Fallible<Vec<_>>>()?;
    let gone = call.db.change(call.word(1), Kind::Stream, |stream| {
        let mut gone = 0;
        for id in &ids {
            gone += usize::from(stream.delete_entry(*id)?);
        }
        Ok(gone)
    })?;
    call.reply.count(gone);
    Ok(())
}

pub(in crate::command) fn xlen<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let key = call.word(1);
    let count = view(call, key, |stream| Ok(stream.count(ENTRIES)))?;
    call.reply.int(count.unwrap_or(0) as i64);
    Ok(())
}

/// `XSETID key last-id [ENTRIESADDED n] [MAXDELETEDID id]`.
pub(in crate::command) fn xsetid<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let last = parse_id(call.word(2), 0)?;
    let (mut added, mut deleted, mut i) = (None, None, 3);
    while i < call.args.len() {
        let value = call.args.get(i + 1).ok_or(SYNTAX)?;
        if call.args.is(i, "entriesadded") {
            let count = parse_i64(value).ok_or(NOT_INTEGER)?;
            let count = u64::try_from(count);
            added = Some(count.map_err(|_| "ERR entries_added must be positive")?);
        } else if call.args.is(i, "maxdeletedid") {
            let id = parse_id(value, 0)?;
            if id > last {
                return Err(
                    "ERR The ID specified in XSETID is smaller than the provided \
                     max_deleted_entry_id"
                        .into(),
                );
            }
            deleted = Some(id);
        } else {
            return Err(SYNTAX.into());
        }
        i += 2;
    }
    call.db.change(call.word(1), Kind::Stream, |stream| {
        if !stream.existed {
            return Ok(Err("ERR no such key".into()));
        }
        let mut info = stream.info()?;
        if stream.end(true)?.is_some_and(|top| last < top) {
            return Ok(Err(
                "ERR The ID specified in XSETID is smaller than the target stream \
                 top item"
                    .into(),
            ));
        }
        if last < info.deleted && deleted.is_none() {
            return Ok(Err(
                "ERR The ID specified in XSETID is smaller than current \
                 max_deleted_entry_id"
                    .into(),
            ));
        }
        if added.is_some_and(|added| added < stream.count(ENTRIES)) {
            return Ok(Err(
                "ERR The entries_added specified in XSETID is smaller than the \
                 target stream length"
                    .into(),
            ));
        }
        info.last = last;
        info.added = added.unwrap_or(info.added);
        info.deleted = deleted.unwrap_or(info.deleted);
        stream.set_info(&info)?;
        Ok(Outcome::Ok(()))
    })??;
    call.reply.ok();
    Ok(())
}
