//! SET and the commands that set with fewer words.

use super::{Call, Failure, NOT_INTEGER, Outcome, SYNTAX};
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::resp::args::Args;
use crate::store::{Condition, Expiry, SetOptions};

/// How a word gives a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    /// From now on, not since 1970.
    pub relative: bool,
    pub millis: i64,
}

/// The words that give an expiry.
pub(super) const UNITS: [(&str, Unit); 4] = [
    (
        "ex",
        Unit {
            relative: true,
            millis: 1000,
        },
    ),
    (
        "px",
        Unit {
            relative: true,
            millis: 1,
        },
    ),
    (
        "exat",
        Unit {
            relative: false,
            millis: 1000,
        },
    ),
    (
        "pxat",
        Unit {
            relative: false,
            millis: 1,
        },
    ),
];

/// A time that a SET-like command may take: positive, and within range.
pub(super) fn deadline(word: &[u8], unit: Unit, now: u64, command: &str) -> Result<u64, Failure> {
    let number = parse_i64(word).ok_or(NOT_INTEGER)?;
    let base = if unit.relative { now as i64 } else { 0 };
    let at = number
        .checked_mul(unit.millis)
        .and_then(|ms| ms.checked_add(base));
    match at {
        Some(at) if number > 0 => Ok(at as u64),
        _ => Err(format!("ERR invalid expire time in '{command}' command").into()),
    }
}

/// The options of SET.
#[derive(Default)]
struct Parsed {
    options: SetOptions,
    fetch: bool,
}

fn parse(args: Args<'_>, now: u64) -> Result<Parsed, Failure> {
    let mut parsed = Parsed::default();
    let options = &mut parsed.options;
    let mut time = None;
    let mut i = 3;
    while i < args.len() {
        let unit = UNITS.iter().find(|(word, _)| args.is(i, word));
        let has_expiry = time.is_some() || options.expiry != Expiry::Never;
        if let Some((_, unit)) = unit.filter(|_| !has_expiry && i + 1 < args.len()) {
            time = Some((args.at(i + 1), *unit));
            i += 1;
        } else if args.is(i, "keepttl") && time.is_none() {
            options.expiry = Expiry::Keep;
        } else if args.is(i, "nx") && options.condition != Condition::IfPresent {
            options.condition = Condition::IfAbsent;
        } else if args.is(i, "xx") && options.condition != Condition::IfAbsent {
            options.condition = Condition::IfPresent;
        } else if args.is(i, "get") {
            parsed.fetch = true;
        } else {
            return Err(SYNTAX.into());
        }
        i += 1;
    }
    if let Some((word, unit)) = time {
        options.expiry = Expiry::At(deadline(word, unit, now, "set")?);
    }
    Ok(parsed)
}

pub(super) fn set<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.args.len() == 3 {
        call.db.set(call.word(1), call.word(2))?;
        call.reply.ok();
        return Ok(());
    }
    let Parsed { options, fetch } = parse(call.args, call.db.now())?;
    if fetch {
        let mut old = Vec::new();
        let outcome = call
            .db
            .swap(call.word(1), call.word(2), options, &mut old)?;
        call.reply.maybe(outcome.existed.then_some(&old));
        return Ok(());
    }
    let outcome = call.db.set_with(call.word(1), call.word(2), options)?;
    if outcome.applied {
        call.reply.ok()
    } else {
        call.reply.nil()
    }
    Ok(())
}

pub(super) fn setnx<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let options = SetOptions {
        condition: Condition::IfAbsent,
        ..SetOptions::default()
    };
    let outcome = call.db.set_with(call.word(1), call.word(2), options)?;
    call.reply.flag(outcome.applied);
    Ok(())
}

pub(super) fn setex<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    set_for(call, UNITS[0].1)
}

pub(super) fn psetex<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    set_for(call, UNITS[1].1)
}

fn set_for<M: Memory>(call: &mut Call<'_, '_, M>, unit: Unit) -> Outcome {
    let at = deadline(call.word(2), unit, call.db.now(), call.command.name)?;
    let options = SetOptions {
        expiry: Expiry::At(at),
        ..SetOptions::default()
    };
    call.db.set_with(call.word(1), call.word(3), options)?;
    call.reply.ok();
    Ok(())
}

pub(super) fn getset<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let mut old = Vec::new();
    let outcome = call
        .db
        .swap(call.word(1), call.word(2), SetOptions::default(), &mut old)?;
    call.reply.maybe(outcome.existed.then_some(&old));
    Ok(())
}

/// A key and its value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// The pairs of MSET and MSETNX.
fn pairs<'a, M: Memory>(call: &Call<'a, '_, M>) -> Result<Vec<Pair<'a>>, Failure> {
    if call.args.len().is_multiple_of(2) {
        return Err(call.wrong_count());
    }
    Ok((1..call.args.len())
        .step_by(2)
        .map(|i| (call.args.at(i), call.args.at(i + 1)))
        .collect())
}

pub(super) fn mset<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.db.set_many(&pairs(call)?, false)?;
    call.reply.ok();
    Ok(())
}

pub(super) fn msetnx<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let done = call.db.set_many(&pairs(call)?, true)?;
    call.reply.flag(done);
    Ok(())
}
