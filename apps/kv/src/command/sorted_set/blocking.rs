//! BZPOPMIN, BZPOPMAX and BZMPOP. They do not wait yet: with nothing to take they answer as if the
//! time had passed.

use super::super::{Call, Outcome};
use super::pop::{At, Many, pop, write_many};
use crate::double;
use crate::memory::Memory;

/// Seconds, as a number that may have a fraction.
fn timeout(word: &[u8]) -> Outcome {
    let seconds = double::parse(word).filter(|seconds| seconds.is_finite());
    match seconds.ok_or("ERR timeout is not a float or out of range")? {
        0.0.. => Ok(()),
        _ => Err("ERR timeout is negative".into()),
    }
}

pub(crate) fn bzpopmin<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    pop_end(call, At::Min)
}

pub(crate) fn bzpopmax<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    pop_end(call, At::Max)
}

fn pop_end<M: Memory>(call: &mut Call<'_, '_, M>, at: At) -> Outcome {
    timeout(call.word(call.args.len() - 1))?;
    let popped = pop(call.db, &call.keys(), at, 1)?;
    let Some((key, [(member, score)])) = popped.as_ref().map(|(key, m)| (key, m.as_slice())) else {
        call.reply.nil_array();
        return Ok(());
    };
    call.reply.array(3);
    call.reply.bulk(key);
    call.reply.bulk(member);
    call.reply.double(*score);
    Ok(())
}

pub(crate) fn bzmpop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    timeout(call.word(1))?;
    let many = Many::parse(call, 2)?;
    let popped = pop(call.db, &many.keys, many.at, many.count)?;
    write_many(call, popped);
    Ok(())
}
