//! XRANGE and XREVRANGE.

use super::{Entries, parse_bound, parse_count, view};
use crate::command::{Call, Outcome, SYNTAX};
use crate::memory::Memory;

pub(in crate::command) fn xrange<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    range(call, (2, 3), false)
}

pub(in crate::command) fn xrevrange<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    range(call, (3, 2), true)
}

fn range<M: Memory>(
    call: &mut Call<'_, '_, M>,
    (low, high): (usize, usize),
    back: bool,
) -> Outcome {
    let from = parse_bound(call.word(low), false)?;
    let to = parse_bound(call.word(high), true)?;
    let most = match call.args.len() {
        4 => usize::MAX,
        6 if call.args.is(4, "count") => parse_count(call.word(5))?,
        _ => return Err(SYNTAX.into()),
    };
    let key = call.word(1);
    if most == 0 {
        call.reply.nil_array();
        return Ok(());
    }
    let found = view(call, key, |stream| {
        let mut found = Entries::default();
        let note = |id, fields: &[u8]| found.push(id, Some(fields)) && found.found.len() < most;
        match back {
            false => stream.entries(from, to, note)?,
            true => stream.entries_back(from, to, note)?,
        }
        found.checked()
    })?;
    found.unwrap_or_default().write(&mut call.reply);
    Ok(())
}
