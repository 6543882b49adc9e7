//! Taking out members that are named, or in a range.

use super::super::{Call, Outcome};
use super::KIND;
use super::edges::{By, Span};
use crate::memory::Memory;

pub(crate) fn zrem<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let gone = call.db.change(call.word(1), KIND, |set| {
        let mut gone = 0;
        for member in call.args.from(2) {
            gone += usize::from(set.remove_member(member)?.is_some());
        }
        Ok(gone)
    })?;
    call.reply.count(gone);
    Ok(())
}

pub(crate) fn zremrangebyrank<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    remove_range(call, By::Rank)
}

pub(crate) fn zremrangebyscore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    remove_range(call, By::Score)
}

pub(crate) fn zremrangebylex<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    remove_range(call, By::Member)
}

fn remove_range<M: Memory>(call: &mut Call<'_, '_, M>, by: By) -> Outcome {
    let span = Span::parse(call, by, 2, 3)?;
    let gone = call.db.change(call.word(1), KIND, |set| {
        let range = span.positions(set, false)?;
        set.cut_members(range)
    })?;
    call.reply.int(gone as i64);
    Ok(())
}
