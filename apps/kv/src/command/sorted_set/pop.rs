//! Taking out the members with the lowest or the highest scores.

use super::super::{Call, Failure, Outcome, SYNTAX};
use super::{KIND, MAX_REPLY, NOT_POSITIVE};
use crate::error::Result;
use crate::memory::{Access, Memory};
use crate::number::parse_i64;
use crate::resp::reply::Protocol;
use crate::store::Db;
use crate::store::collection::sorted::Scored;

/// At which end of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Min,
    Max,
}

/// Members taken out, and the key that had them.
pub(super) type Popped<'k> = (&'k [u8], Vec<Scored>);

/// Takes up to `count` members out of the first of the keys that has any.
pub(super) fn pop<'k, M: Memory>(
    db: Db<'_, M>,
    keys: &[&'k [u8]],
    at: At,
    count: u64,
) -> Result<Option<Popped<'k>>> {
    if let [key] = keys {
        let popped = pop_one(db, key, at, count)?;
        return Ok(popped.map(|members| (*key, members)));
    }
    db.together(keys, Access::Write, |db| {
        for key in keys {
            if let Some(members) = pop_one(db, key, at, count)? {
                return Ok(Some((*key, members)));
            }
        }
        Ok(None)
    })
}

/// `None`: there is no such key.
fn pop_one<M: Memory>(
    db: Db<'_, M>,
    key: &[u8],
    at: At,
    count: u64,
) -> Result<Option<Vec<Scored>>> {
    db.change(key, KIND, |set| {
        let members = set.members();
        let range = match at {
            At::Min => 0..count.min(members),
            At::Max => members.saturating_sub(count)..members,
        };
        let taken = set.copy_span(range.clone(), at == At::Max, MAX_REPLY)?;
        set.cut_members(range)?;
        Ok((members != 0).then_some(taken))
    })
}

pub(crate) fn zpopmin<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    pop_end(call, At::Min)
}

pub(crate) fn zpopmax<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    pop_end(call, At::Max)
}

fn pop_end<M: Memory>(call: &mut Call<'_, '_, M>, at: At) -> Outcome {
    let count = match call.args.len() {
        2 => None,
        3 => {
            let count = parse_i64(call.word(2)).and_then(|count| u64::try_from(count).ok());
            Some(count.ok_or(NOT_POSITIVE)?)
        }
        _ => return Err(SYNTAX.into()),
    };
    let popped = pop(call.db, &[call.word(1)], at, count.unwrap_or(1))?;
    let members = popped.map_or(Vec::new(), |(_, members)| members);
    match count {
        Some(_) if call.reply.protocol == Protocol::Resp3 => call.reply.pairs(&members),
        _ => call.reply.flat(&members),
    }
    Ok(())
}

/// What ZMPOP is to do: the number of keys is the word at `at`.
pub(super) struct Many<'a> {
    pub keys: Vec<&'a [u8]>,
    pub at: At,
    pub count: u64,
}

impl<'a> Many<'a> {
    pub fn parse<M: Memory>(
        call: &Call<'a, '_, M>,
        at: usize,
    ) -> std::result::Result<Self, Failure> {
        let args = call.args;
        let positive = |i: usize, error: &'static str| {
            let number = parse_i64(args.at(i)).and_then(|n| u64::try_from(n).ok());
            number.filter(|n| *n > 0).ok_or(Failure::from(error))
        };
        let keys = positive(at, "ERR numkeys should be greater than 0")?;
        let keys = usize::try_from(keys).ok();
        let end = keys.and_then(|keys| keys.checked_add(at + 1));
        let end = end.filter(|end| *end < args.len()).ok_or(SYNTAX)?;
        let place = match () {
            () if args.is(end, "min") => At::Min,
            () if args.is(end, "max") => At::Max,
            () => return Err(SYNTAX.into()),
        };
        let count = match args.len() - end {
            1 => 1,
            3 if args.is(end + 1, "count") => {
                positive(end + 2, "ERR count should be greater than 0")?
            }
            _ => return Err(SYNTAX.into()),
        };
        Ok(Self {
            keys: args.from(at + 1).take(end - at - 1).collect(),
            at: place,
            count,
        })
    }
}

pub(crate) fn zmpop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let many = Many::parse(call, 1)?;
    let popped = pop(call.db, &many.keys, many.at, many.count)?;
    write_many(call, popped);
    Ok(())
}

/// The reply of ZMPOP and BZMPOP.
pub(super) fn write_many<M: Memory>(call: &mut Call<'_, '_, M>, popped: Option<Popped<'_>>) {
    let Some((key, members)) = popped else {
        return call.reply.nil_array();
    };
    call.reply.array(2);
    call.reply.bulk(key);
    call.reply.pairs(&members);
}
