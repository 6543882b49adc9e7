//! When keys end.

use super::set::Unit;
use super::{Call, Failure, Outcome};
use crate::memory::Memory;
use crate::store::{ExpireIf, Meta};

pub(super) fn expire<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    change(
        call,
        Unit {
            relative: true,
            millis: 1000,
        },
    )
}

pub(super) fn pexpire<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    change(
        call,
        Unit {
            relative: true,
            millis: 1,
        },
    )
}

pub(super) fn expireat<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    change(
        call,
        Unit {
            relative: false,
            millis: 1000,
        },
    )
}

pub(super) fn pexpireat<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    change(
        call,
        Unit {
            relative: false,
            millis: 1,
        },
    )
}

fn change<M: Memory>(call: &mut Call<'_, '_, M>, unit: Unit) -> Outcome {
    let only = conditions(call)?;
    let number = call.integer(2)?;
    let base = if unit.relative {
        call.db.now() as i64
    } else {
        0
    };
    let at = number
        .checked_mul(unit.millis)
        .and_then(|ms| ms.checked_add(base));
    let Some(at) = at else {
        return Err(format!("ERR invalid expire time in '{}' command", call.command.name).into());
    };
    let done = call.db.expire(call.word(1), at.max(1) as u64, only)?;
    call.reply.flag(done);
    Ok(())
}

fn conditions<M: Memory>(call: &Call<'_, '_, M>) -> Result<ExpireIf, Failure> {
    let mut only = ExpireIf::default();
    for (i, word) in (3..).zip(call.args.from(3)) {
        match () {
            () if call.args.is(i, "nx") => only.none = true,
            () if call.args.is(i, "xx") => only.some = true,
            () if call.args.is(i, "gt") => only.later = true,
            () if call.args.is(i, "lt") => only.earlier = true,
            () => {
                let shown = String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned();
                return Err(format!("ERR Unsupported option {shown}").into());
            }
        }
    }
    if only.none && (only.some || only.later || only.earlier) {
        return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
    }
    if only.later && only.earlier {
        return Err("ERR GT and LT options at the same time are not compatible".into());
    }
    Ok(only)
}

pub(super) fn persist<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let done = call.db.persist(call.word(1))?;
    call.reply.flag(done);
    Ok(())
}

/// Replies with what `show` makes of the expiry; -1 for none, -2 for no key.
fn tell<M: Memory>(call: &mut Call<'_, '_, M>, show: impl Fn(u64, u64) -> u64) -> Outcome {
    let (meta, now) = (call.db.meta(call.word(1))?, call.db.now());
    call.found(meta.is_some());
    call.reply.int(match meta {
        None => -2,
        Some(Meta { expiry: 0, .. }) => -1,
        Some(Meta { expiry, .. }) => show(expiry, now) as i64,
    });
    Ok(())
}

pub(super) fn ttl<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    tell(call, |expiry, now| {
        (expiry.saturating_sub(now) + 500) / 1000
    })
}

pub(super) fn pttl<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    tell(call, |expiry, now| expiry.saturating_sub(now))
}

pub(super) fn expiretime<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    tell(call, |expiry, _| expiry.div_ceil(1000))
}

pub(super) fn pexpiretime<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    tell(call, |expiry, _| expiry)
}
