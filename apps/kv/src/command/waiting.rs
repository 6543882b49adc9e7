//! Commands that wait until a key has something for them.

use std::ops::Range;

use super::{Call, Failure, Outcome};
use crate::memory::Memory;
use crate::number::Number;

/// How long a client would wait, in ms; 0 for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked(pub u64);

/// The time at word `i`, in seconds.
pub(super) fn seconds<M: Memory>(call: &Call<'_, '_, M>, i: usize) -> Result<Asked, Failure> {
    let number = Number::parse(call.word(i)).ok_or("ERR timeout is not a float or out of range")?;
    let millis = (number.float() * 1000.0).ceil();
    // More than 64 bits of them count as negative in Redis, too.
    if millis < 0.0 || millis >= i64::MAX as f64 {
        return Err("ERR timeout is negative".into());
    }
    Ok(Asked(millis as u64))
}

impl Asked {
    /// Nothing was there: the client waits for one of the keys that are these words.
    pub fn wait<M: Memory>(self, call: &mut Call<'_, '_, M>, _: Range<usize>) -> Outcome {
        call.reply.nil_array();
        Ok(())
    }
}
