//! Taking from the first of several lists that has elements.

use super::super::waiting::seconds;
use super::super::{Call, Failure, Outcome, SYNTAX};
use super::End;
use super::ends::{array, fits};
use crate::error::Result;
use crate::memory::{Access, Memory};
use crate::number::parse_i64;
use crate::store::{Db, Kind};

pub(crate) fn blpop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    blocking(call, End::Left)
}

pub(crate) fn brpop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    blocking(call, End::Right)
}

fn blocking<M: Memory>(call: &mut Call<'_, '_, M>, end: End) -> Outcome {
    let last = call.args.len() - 1;
    let asked = seconds(call, last)?;
    let Some((key, elements)) = pop(&call.db, &call.keys(), end, 1)? else {
        return asked.wait(call, 1..last);
    };
    call.reply.array(2);
    call.reply.bulk(key);
    call.reply.maybe(elements.first().map(Vec::as_slice));
    Ok(())
}

pub(crate) fn lmpop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    several(call, 1, false)
}

pub(crate) fn blmpop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    several(call, 2, true)
}

/// The number of keys is at `at`, then come they, the end and how many to take; before it the time,
/// for those who wait.
fn several<M: Memory>(call: &mut Call<'_, '_, M>, at: usize, waits: bool) -> Outcome {
    let positive = |i: usize, refusal: &'static str| {
        let number = parse_i64(call.word(i)).filter(|number| *number > 0);
        number.ok_or(Failure::from(refusal))
    };
    let keys = positive(at, "ERR numkeys should be greater than 0")? as usize;
    let behind = keys.saturating_add(at + 1);
    if behind >= call.args.len() {
        return Err(SYNTAX.into());
    }
    let end = End::named(call, behind)?;
    let count = match call.args.len() - behind - 1 {
        0 => 1,
        words @ 2.. if call.args.is(behind + 1, "count") => {
            let count = positive(behind + 2, "ERR count should be greater than 0")?;
            if words != 2 {
                return Err(SYNTAX.into());
            }
            count
        }
        _ => return Err(SYNTAX.into()),
    };
    let asked = waits.then(|| seconds(call, at - 1)).transpose()?;
    match (pop(&call.db, &call.keys(), end, count as u64)?, asked) {
        (Some((key, elements)), _) => {
            call.reply.array(2);
            call.reply.bulk(key);
            array(&mut call.reply, &elements);
        }
        (None, None) => call.reply.nil_array(),
        (None, Some(asked)) => return asked.wait(call, at + 1..behind),
    }
    Ok(())
}

/// What was taken, and from which key.
type Taken<'k> = Option<(&'k [u8], Vec<Vec<u8>>)>;

/// Takes from the first list that there is, all being looked at in one step.
fn pop<'k, M: Memory>(
    db: &Db<'_, M>,
    keys: &[&'k [u8]],
    end: End,
    count: u64,
) -> Result<Taken<'k>> {
    db.together(keys, Access::Write, |db| {
        for key in keys {
            let elements = db.change(key, Kind::List, |list| {
                let elements = end.pop(list, count)?;
                fits(&elements)?;
                Ok(elements)
            })?;
            if !elements.is_empty() {
                return Ok(Some((*key, elements)));
            }
        }
        Ok(None)
    })
}
