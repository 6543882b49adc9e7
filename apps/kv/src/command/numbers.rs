//! Values that are numbers.

use super::{Call, Outcome};
use crate::memory::Memory;

fn add<M: Memory>(call: &mut Call<'_, '_, M>, by: i64) -> Outcome {
    let sum = call.db.increment(call.word(1), by)?;
    call.reply.int(sum);
    Ok(())
}

pub(super) fn incr<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    add(call, 1)
}

pub(super) fn decr<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    add(call, -1)
}

pub(super) fn incrby<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let by = call.integer(2)?;
    add(call, by)
}

pub(super) fn decrby<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let by = call
        .integer(2)?
        .checked_neg()
        .ok_or("ERR decrement would overflow")?;
    add(call, by)
}

pub(super) fn incrbyfloat<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let sum = call.db.increment_float(call.word(1), call.word(2))?;
    call.reply.bulk(sum.as_bytes());
    Ok(())
}
