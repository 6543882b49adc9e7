//! DUMP and RESTORE: a value as Redis' files have it.

use super::{Call, Failure, Outcome, SYNTAX};
use crate::memory::Memory;
use crate::rdb::Value;
use crate::rdb::dump::{Payload, payload};

/// Bytes that the elements of a restored value may take, each with what it costs beside its own.
const MAX_RESTORED: usize = 512 << 20;

const NOT_DUMPED: &str = "ERR DUMP payload version or checksum are wrong";
const BAD_DATA: &str = "ERR Bad data format";
const BUSY: &str = "BUSYKEY Target key name already exists.";

pub(super) fn dump<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let found = call.db.export(call.word(1))?;
    call.found(found.is_some());
    match found {
        Some(found) => call.reply.bulk(&payload(found.body)),
        None => call.reply.nil(),
    }
    Ok(())
}

/// What RESTORE takes behind the payload.
#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    /// Seconds since the key was used.
    idle: Option<i64>,
    /// How often it is used, as a counter.
    frequency: Option<u8>,
}

fn options<M: Memory>(call: &Call<'_, '_, M>) -> Result<Options, Failure> {
    let (mut options, mut i) = (Options::default(), 4);
    while i < call.args.len() {
        let more = i + 1 < call.args.len();
        if call.args.is(i, "replace") {
            options.replace = true;
        } else if call.args.is(i, "absttl") {
            options.absolute = true;
        } else if call.args.is(i, "idletime") && more && options.frequency.is_none() {
            i += 1;
            let idle = Some(call.integer(i)?).filter(|idle| *idle >= 0);
            options.idle = Some(idle.ok_or("ERR Invalid IDLETIME value, must be >= 0")?);
        } else if call.args.is(i, "freq") && more && options.idle.is_none() {
            i += 1;
            let frequency = u8::try_from(call.integer(i)?);
            let frequency =
                frequency.map_err(|_| "ERR Invalid FREQ value, must be >= 0 and <= 255")?;
            options.frequency = Some(frequency);
        } else {
            return Err(SYNTAX.into());
        }
        i += 1;
    }
    Ok(options)
}

pub(super) fn restore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let options = options(call)?;
    let key = call.word(1);
    if !options.replace && call.db.meta(key)?.is_some() {
        return Err(BUSY.into());
    }
    let ttl = u64::try_from(call.integer(2)?).map_err(|_| "ERR Invalid TTL value, must be >= 0")?;
    let value = value(call.word(3))?;
    let now = call.db.now();
    let expiry = match ttl {
        0 => None,
        _ if options.absolute => Some(ttl),
        _ => Some(ttl.saturating_add(now)),
    };
    let over = expiry.is_some_and(|expiry| expiry <= now);
    let put = Some(&value).filter(|_| !over);
    if !call.db.restore(key, put, expiry, options.replace)? {
        return Err(BUSY.into());
    }
    note_use(call, &options, now);
    call.reply.ok();
    Ok(())
}

/// This node goes by what the payload says of the key's use, where the policy asks for that.
fn note_use<M: Memory>(call: &Call<'_, '_, M>, options: &Options, now: u64) {
    let control = &call.shared.control;
    let policy = control.settings.policy();
    let (db, key) = (call.db.number(), call.word(1));
    let mut used = control.uses.of(db, key);
    match (options.idle, options.frequency) {
        (Some(idle), _) if policy.goes_by_use() => {
            used.last = now.saturating_sub(idle.unsigned_abs().saturating_mul(1000));
        }
        (_, Some(count)) if policy.goes_by_count() => used.count = count,
        _ => return,
    }
    control.uses.set(db, key, used);
}

/// The value of a payload.
fn value(bytes: &[u8]) -> Result<Value, Failure> {
    let mut payload = Payload::new(bytes).map_err(|_| NOT_DUMPED)?;
    let mut whole: Option<Value> = None;
    let mut cost = 0;
    while let Some(part) = payload.next_part().map_err(|_| BAD_DATA)? {
        cost += part.cost();
        if cost > MAX_RESTORED {
            return Err(crate::Error::ValueTooLong.into());
        }
        match &mut whole {
            None => whole = Some(part),
            Some(whole) => whole.extend(part),
        }
    }
    // Only strings and streams may be empty.
    let any =
        |value: &Value| matches!(value, Value::String(_) | Value::Stream(_)) || !value.is_empty();
    Ok(whole.filter(any).ok_or(BAD_DATA)?)
}
