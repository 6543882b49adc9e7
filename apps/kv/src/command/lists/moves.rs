//! From one list to another, in one step.

use super::super::waiting::{Asked, seconds};
use super::super::{Call, Failure, Outcome};
use super::{ELEMENTS, End};
use crate::error::{Error, Result};
use crate::memory::{Access, Memory};
use crate::store::{Db, Kind};

pub(crate) fn lmove<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let ends = (End::named(call, 3)?, End::named(call, 4)?);
    shift(call, ends, None)
}

pub(crate) fn rpoplpush<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    shift(call, (End::Right, End::Left), None)
}

pub(crate) fn blmove<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let ends = (End::named(call, 3)?, End::named(call, 4)?);
    let asked = seconds(call, 5)?;
    shift(call, ends, Some(asked))
}

pub(crate) fn brpoplpush<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let asked = seconds(call, 3)?;
    shift(call, (End::Right, End::Left), Some(asked))
}

const WRONG_TARGET: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn shift<M: Memory>(call: &mut Call<'_, '_, M>, ends: (End, End), asked: Option<Asked>) -> Outcome {
    let (from, to) = (call.word(1), call.word(2));
    match (step(&call.db, from, to, ends)??, asked) {
        (Some(element), _) => call.reply.bulk(&element),
        (None, None) => call.reply.nil(),
        (None, Some(asked)) => return asked.wait(call, 1..2),
    }
    Ok(())
}

/// Moves an element. `None`: there is none. That the target is no list is a failure of the command
/// also when it has waited, where a source that is none is waited for.
fn step<M: Memory>(
    db: &Db<'_, M>,
    from: &[u8],
    to: &[u8],
    (source, target): (End, End),
) -> Result<std::result::Result<Option<Vec<u8>>, Failure>> {
    if from == to {
        let moved = db.change(from, Kind::List, |list| {
            let Some(element) = source.pop(list, 1)?.pop() else {
                return Ok(None);
            };
            target.push(list, &element)?;
            Ok(Some(element))
        });
        return moved.map(Ok);
    }
    db.together(&[from, to], Access::Write, |db| {
        // The type of the target does not matter when there is nothing to move.
        let any = db.view(from, Kind::List, |list| Ok(list.count(ELEMENTS) != 0))?;
        if any != Some(true) {
            return Ok(Ok(None));
        }
        let moved = db.change_both([to, from], Kind::List, |to, from| {
            let element = source.pop(from, 1)?.pop();
            if let Some(element) = &element {
                target.push(to, element)?;
            }
            Ok(element)
        });
        match moved {
            Err(Error::WrongType) => Ok(Err(WRONG_TARGET.into())),
            moved => moved.map(Ok),
        }
    })
}
