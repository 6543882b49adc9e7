//! BZPOPMIN, BZPOPMAX and BZMPOP.

use super::super::{Call, Outcome, waiting};
use super::pop::{At, Many, pop, write_many};
use crate::memory::Memory;

pub(crate) fn bzpopmin<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    pop_end(call, At::Min)
}

pub(crate) fn bzpopmax<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    pop_end(call, At::Max)
}

fn pop_end<M: Memory>(call: &mut Call<'_, '_, M>, at: At) -> Outcome {
    let last = call.args.len() - 1;
    let asked = waiting::seconds(call, last)?;
    let popped = pop(call.db, &call.keys(), at, 1)?;
    let Some((key, [(member, score)])) = popped.as_ref().map(|(key, m)| (key, m.as_slice())) else {
        return asked.wait(call, 1..last);
    };
    call.reply.array(3);
    call.reply.bulk(key);
    call.reply.bulk(member);
    call.reply.double(*score);
    Ok(())
}

pub(crate) fn bzmpop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let asked = waiting::seconds(call, 1)?;
    let many = Many::parse(call, 2)?;
    let popped = pop(call.db, &many.keys, many.at, many.count)?;
    if popped.is_none() {
        return asked.wait(call, 3..3 + many.keys.len());
    }
    write_many(call, popped);
    Ok(())
}
