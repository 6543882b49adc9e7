//! ZRANDMEMBER.

use super::super::{Call, Failure, Outcome, SYNTAX, random};
use crate::memory::Memory;
use crate::store::collection::sorted;

pub(crate) fn zrandmember<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (count, scores) = count(call)?;
    let found = call.sorted_set(call.word(1), |set| {
        random::entries(set, sorted::BY_SCORE, count.unwrap_or(1))
    })?;
    let found = found.unwrap_or_default().into_iter();
    let members: Vec<_> = found
        .map(|(key, _)| {
            let (member, score) = sorted::entry(&key);
            (member.to_vec(), score)
        })
        .collect();
    if count.is_none() {
        let member = members.first().map(|(member, _)| member.as_slice());
        call.reply.maybe(member);
    } else {
        call.reply.members(&members, scores);
    }
    Ok(())
}

/// How many, and whether with their scores.
fn count<M: Memory>(call: &Call<'_, '_, M>) -> Result<(Option<i64>, bool), Failure> {
    if call.args.len() == 2 {
        return Ok((None, false));
    }
    let count = call.integer(2)?;
    if count == i64::MIN {
        return Err(BEYOND.into());
    }
    match call.args.len() {
        3 => Ok((Some(count), false)),
        4 if call.args.is(3, "withscores") => Ok((Some(random::count(count)?), true)),
        _ => Err(SYNTAX.into()),
    }
}

const BEYOND: &str =
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
