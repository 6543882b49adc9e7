//! BITOP: bits of several strings, combined into one.

use super::super::{Call, Failure, Outcome, SYNTAX};
use crate::error::Result;
use crate::memory::{Access, Memory};
use crate::store::Db;

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    And,
    Or,
    Xor,
    Not,
}

const HOW: [(&str, How); 4] = [
    ("and", How::And),
    ("or", How::Or),
    ("xor", How::Xor),
    ("not", How::Not),
];

pub(crate) fn bitop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let how = HOW.iter().find(|(name, _)| call.args.is(1, name));
    let (_, how) = *how.ok_or(SYNTAX)?;
    let keys = call.keys();
    let (target, sources) = keys.split_first().ok_or(SYNTAX)?;
    if how == How::Not && sources.len() != 1 {
        return Err(Failure::from(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    let len = call.db.together(&keys, Access::Write, |db| {
        let bits = combine(&db, how, sources)?;
        match bits.is_empty() {
            true => db.remove(target).map(|_| ())?,
            false => db.set(target, &bits)?,
        }
        Ok(bits.len())
    })?;
    call.reply.count(len);
    Ok(())
}

/// Shorter strings count as continued with zeros.
fn combine<M: Memory>(db: &Db<'_, M>, how: How, sources: &[&[u8]]) -> Result<Vec<u8>> {
    let (mut bits, mut next) = (Vec::new(), Vec::new());
    for (i, key) in sources.iter().enumerate() {
        if i == 0 {
            db.get(key, &mut bits)?;
            continue;
        }
        db.get(key, &mut next)?;
        let len = bits.len().max(next.len());
        bits.resize(len, 0);
        next.resize(len, 0);
        let pairs = bits.iter_mut().zip(&next);
        match how {
            How::And => pairs.for_each(|(bits, next)| *bits &= next),
            How::Or => pairs.for_each(|(bits, next)| *bits |= next),
            How::Xor | How::Not => pairs.for_each(|(bits, next)| *bits ^= next),
        }
    }
    if how == How::Not {
        bits.iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(bits)
}
