//! Putting elements at the ends of a list, and taking them from there.

use super::super::{Call, Failure, MAX_REPLY, Outcome};
use super::{ELEMENTS, End};
use crate::error::Error;
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::resp::reply::Reply;
use crate::store::Kind;

pub(crate) fn lpush<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    push(call, End::Left, true)
}

pub(crate) fn rpush<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    push(call, End::Right, true)
}

pub(crate) fn lpushx<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    push(call, End::Left, false)
}

pub(crate) fn rpushx<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    push(call, End::Right, false)
}

fn push<M: Memory>(call: &mut Call<'_, '_, M>, end: End, make: bool) -> Outcome {
    let args = call.args;
    let len = call.db.change(call.word(1), Kind::List, |list| {
        if !list.existed && !make {
            return Ok(0);
        }
        for element in args.from(2) {
            end.push(list, element)?;
        }
        Ok(list.count(ELEMENTS))
    })?;
    call.reply.int(len as i64);
    Ok(())
}

pub(crate) fn lpop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    pop(call, End::Left)
}

pub(crate) fn rpop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    pop(call, End::Right)
}

fn pop<M: Memory>(call: &mut Call<'_, '_, M>, end: End) -> Outcome {
    let count = match call.args.len() {
        2 => None,
        3 => Some(natural(call.word(2))?),
        _ => return Err(call.wrong_count()),
    };
    let taken = call.db.change(call.word(1), Kind::List, |list| {
        let taken = end.pop(list, count.unwrap_or(1))?;
        fits(&taken)?;
        Ok(list.existed.then_some(taken))
    })?;
    match (taken, count) {
        (None, None) => call.reply.nil(),
        (None, Some(_)) => call.reply.nil_array(),
        (Some(taken), None) => call.reply.maybe(taken.first().map(Vec::as_slice)),
        (Some(taken), Some(_)) => array(&mut call.reply, &taken),
    }
    Ok(())
}

/// A number of elements.
fn natural(word: &[u8]) -> Result<u64, Failure> {
    let number = parse_i64(word).and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| "ERR value is out of range, must be positive".into())
}

/// Elements that are to be taken out and told must fit a reply, for they are nowhere else then.
pub(super) fn fits(elements: &[Vec<u8>]) -> Result<(), Error> {
    let bytes: usize = elements.iter().map(|element| element.len() + 32).sum();
    if bytes > MAX_REPLY {
        return Err(Error::ReplyTooLong);
    }
    Ok(())
}

pub(super) fn array(reply: &mut Reply<'_>, elements: &[Vec<u8>]) {
    reply.array(elements.len());
    elements.iter().for_each(|element| reply.bulk(element));
}
