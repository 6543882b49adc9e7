//! Keys, whatever they hold.

use super::{Call, Failure, MAX_REPLY, NOT_INTEGER, Outcome, SYNTAX, Subcommand, help};
use crate::error::Error;
use crate::glob;
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::server::shared::Stats;
use crate::store::value::Reach;
use crate::store::{Keys, Kind};

/// Keys that one step of SCAN may be asked for.
const SCAN_COUNT: i64 = 1 << 20;
/// Keys that KEYS looks at in one step.
const KEYS_STEP: usize = 4096;
/// The error for a database's number that is none in any server.
const OUT_OF_32_BITS: &str =
    "ERR value is out of range, value must between -2147483648 and 2147483647";
const NO_DATABASE: &str = "ERR DB index is out of range";
const SAME: &str = "ERR source and destination objects are the same";
/// Elements above which UNLINK counts a value for `lazyfreed_objects`.
const LARGE: u64 = 64;
/// Longest value that is shown as "embstr", as in Redis.
const EMBSTR: usize = 44;

pub(super) fn del<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let unlinks = call.command.name == "unlink";
    let large = match unlinks {
        true => call.keys().iter().filter(|key| is_large(call, key)).count(),
        false => 0,
    };
    let removed = match call.args.len() {
        2 => usize::from(call.db.remove(call.word(1))?),
        _ => call.db.remove_many(&call.keys())?,
    };
    Stats::add(&call.stats.unlinked, large.min(removed) as u64);
    call.reply.count(removed);
    Ok(())
}

/// Whether a key holds so much that Redis would free it in the background.
fn is_large<M: Memory>(call: &Call<'_, '_, M>, key: &[u8]) -> bool {
    let Ok(Some(meta)) = call.db.meta(key) else {
        return false;
    };
    // For a count only: what fails here fails again when the key is removed.
    let count = |kind| call.db.view(key, kind, |found| Ok(found.count(0)));
    meta.kind != Kind::String && matches!(count(meta.kind), Ok(Some(count)) if count > LARGE)
}

pub(super) fn exists<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let present = call.db.count_present(&call.keys())?;
    call.found(present != 0);
    call.reply.count(present);
    Ok(())
}

pub(super) fn type_of<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let there = call.db.meta(call.word(1))?;
    call.reply
        .simple(there.map_or("none", |meta| meta.kind.name()));
    Ok(())
}

pub(super) fn rename<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.db.rename(call.word(1), call.word(2), true)?;
    call.reply.ok();
    Ok(())
}

pub(super) fn renamenx<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let done = call.db.rename(call.word(1), call.word(2), false)?;
    call.reply.flag(done);
    Ok(())
}

pub(super) fn copy<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (mut target, mut replace) = (call.db.number(), false);
    let mut i = 3;
    while i < call.args.len() {
        if call.args.is(i, "replace") {
            replace = true;
        } else if call.args.is(i, "db") && i + 1 < call.args.len() {
            target = database(call, i + 1)?;
            i += 1;
        } else {
            return Err(SYNTAX.into());
        }
        i += 1;
    }
    if target == call.db.number() && call.word(1) == call.word(2) {
        return Err(SAME.into());
    }
    let done = call.db.copy(call.word(1), target, call.word(2), replace)?;
    call.reply.flag(done.ok_or(NO_DATABASE)?);
    Ok(())
}

/// The database that a word names.
fn database<M: Memory>(call: &Call<'_, '_, M>, at: usize) -> Result<u8, Failure> {
    let number = i32::try_from(call.integer(at)?).map_err(|_| OUT_OF_32_BITS)?;
    let known = u8::try_from(number)
        .ok()
        .filter(|db| call.shared.store.db(*db).is_some());
    known.ok_or_else(|| NO_DATABASE.into())
}

pub(super) fn move_to<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let target = database(call, 2)?;
    if target == call.db.number() {
        return Err(SAME.into());
    }
    let done = call.db.move_to(call.word(1), target)?;
    call.reply.flag(done.ok_or(NO_DATABASE)?);
    Ok(())
}

pub(super) fn dbsize<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let len = call.db.len()?;
    call.reply.count(len);
    Ok(())
}

pub(super) fn randomkey<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let key = call.db.random_key()?;
    call.reply.maybe(key.as_deref());
    Ok(())
}

/// FLUSHDB and FLUSHALL take ASYNC or SYNC; both return at once.
fn flush_mode<M: Memory>(call: &Call<'_, '_, M>) -> Outcome {
    let fine = match call.args.len() {
        1 => true,
        2 => call.args.is(1, "async") || call.args.is(1, "sync"),
        _ => false,
    };
    if fine { Ok(()) } else { Err(SYNTAX.into()) }
}

pub(super) fn flushdb<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    flush_mode(call)?;
    call.db.flush()?;
    call.reply.ok();
    Ok(())
}

pub(super) fn flushall<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    flush_mode(call)?;
    call.db.flush_all()?;
    call.reply.ok();
    Ok(())
}

pub(super) fn keys<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let pattern = call.word(1);
    let (mut found, mut bytes, mut cursor) = (Vec::<Vec<u8>>::new(), 0, 0);
    let mut batch = Keys::default();
    loop {
        batch.clear();
        cursor = call.db.scan(cursor, KEYS_STEP, &mut batch)?;
        for key in batch
            .iter()
            .filter(|key| glob::matches(pattern, key, false))
        {
            bytes += key.len() + 16;
            if bytes > MAX_REPLY {
                return Err(Error::ReplyTooLong.into());
            }
            found.push(key.to_vec());
        }
        if cursor == 0 {
            break;
        }
    }
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

/// The options of SCAN.
struct Scan<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    /// Only keys of this type; `Some(None)`: of one that no key has.
    kind: Option<Option<Kind>>,
}

fn scan_options<'a, M: Memory>(call: &Call<'a, '_, M>) -> Result<Scan<'a>, Failure> {
    let mut scan = Scan {
        pattern: None,
        count: 10,
        kind: None,
    };
    for i in (2..call.args.len()).step_by(2) {
        let value = call.args.get(i + 1).ok_or(SYNTAX)?;
        if call.args.is(i, "match") {
            scan.pattern = Some(value);
        } else if call.args.is(i, "count") {
            let count = parse_i64(value).ok_or(NOT_INTEGER)?;
            if count < 1 {
                return Err(SYNTAX.into());
            }
            scan.count = count.min(SCAN_COUNT) as usize;
        } else if call.args.is(i, "type") {
            scan.kind = Some(Kind::named(value));
        } else {
            return Err(SYNTAX.into());
        }
    }
    Ok(scan)
}

pub(super) fn scan<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let cursor = parse_i64(call.word(1)).and_then(|c| u64::try_from(c).ok());
    let cursor = cursor.ok_or("ERR invalid cursor")?;
    let options = scan_options(call)?;
    let mut keys = Keys::default();
    let next = call.db.scan(cursor, options.count, &mut keys)?;
    let wanted = |(key, kind): &(&[u8], Kind)| {
        options.kind.is_none_or(|wanted| wanted == Some(*kind))
            && options.pattern.is_none_or(|p| glob::matches(p, key, false))
    };
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(keys.with_kinds().filter(wanted).count());
    keys.with_kinds()
        .filter(wanted)
        .for_each(|(key, _)| call.reply.bulk(key));
    Ok(())
}

pub(super) const fn of_object<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("encoding", 3..=3, encoding),
            ("refcount", 3..=3, refcount),
            ("idletime", 3..=3, idle),
            ("freq", 3..=3, frequency),
            ("help", 2..=2, help),
        ]
    }
}

fn encoding<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let key = call.word(2);
    let name = match call.db.meta(key)?.map(|meta| meta.kind) {
        None => None,
        Some(Kind::String) => string_encoding(call)?,
        Some(kind) => call.db.view(key, kind, |value| value.encoding())?,
    };
    call.reply.maybe(name.map(str::as_bytes));
    Ok(())
}

fn string_encoding<M: Memory>(call: &Call<'_, '_, M>) -> Result<Option<&'static str>, Failure> {
    let found = call.db.read(call.word(2), Reach::All, |meta, value| {
        let integer = value
            .short::<20>()
            .is_some_and(|(text, len)| parse_i64(&text[..len]).is_some());
        match meta.len {
            _ if integer => "int",
            ..=EMBSTR => "embstr",
            _ => "raw",
        }
    })?;
    Ok(found)
}

fn refcount<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    match call.db.meta(call.word(2))? {
        Some(_) => call.reply.int(1),
        None => call.reply.nil(),
    }
    Ok(())
}

/// What OBJECT FREQ and IDLETIME say where the policy does not tell.
const NOT_COUNTED: &str = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. \
     Please note that when switching between policies at runtime LRU and LFU data will take some time \
     to adjust.";
const NOT_TIMED: &str = "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note \
     that when switching between policies at runtime LRU and LFU data will take some time to adjust.";

/// How often clients of this node use a key, as a counter.
fn frequency<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (db, key, control) = (call.db, call.word(2), &call.shared.control);
    match db.meta(key)? {
        None => call.reply.nil(),
        Some(_) if !control.settings.policy().goes_by_count() => return Err(NOT_COUNTED.into()),
        Some(_) => {
            let used = control.uses.of(db.number(), key);
            let count = used.count_at(db.now(), control.settings.counting());
            call.reply.int(i64::from(count));
        }
    }
    Ok(())
}

/// For how many seconds clients of this node have not used a key; 0 where no policy asks for that.
fn idle<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (db, key, control) = (call.db, call.word(2), &call.shared.control);
    let policy = control.settings.policy();
    match db.meta(key)? {
        None => call.reply.nil(),
        Some(_) if policy.goes_by_count() => return Err(NOT_TIMED.into()),
        Some(_) => {
            let last = control.uses.of(db.number(), key).last;
            let known = policy.goes_by_use() && last != 0;
            let idle = if known {
                db.now().saturating_sub(last)
            } else {
                0
            };
            call.reply.int((idle / 1000) as i64);
        }
    }
    Ok(())
}

/// MEMORY USAGE key [SAMPLES count]. All is counted, however many samples would do.
pub(super) fn usage<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    match call.args.len() {
        3 => {}
        5 if call.args.is(3, "samples") && call.integer(4)? >= 0 => {}
        _ => return Err(SYNTAX.into()),
    }
    match call.db.footprint(call.word(2))? {
        Some(bytes) => call.reply.count(bytes),
        None => call.reply.nil(),
    }
    Ok(())
}
