//! ZSCAN.

use super::super::{Call, Outcome, scanning};
use super::KIND;
use crate::double;
use crate::memory::Memory;

pub(crate) fn zscan<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (cursor, options) = scanning::parse(call)?;
    let found = call.db.view(call.word(1), KIND, |set| {
        let mut found = Vec::new();
        let next = set.scan(cursor, options.count, |member, score| {
            if options.wants(member) {
                found.push((member.to_vec(), score));
            }
        })?;
        Ok((next, found))
    })?;
    let (next, members) = found.unwrap_or_default();
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(2 * members.len());
    for (member, score) in &members {
        let mut text = Vec::new();
        double::push(*score, &mut text);
        call.reply.bulk(member);
        call.reply.bulk(&text);
    }
    Ok(())
}
