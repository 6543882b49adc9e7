//! Commands that wait until a key has something for them.

use std::ops::Range;
use std::time::Duration;

use super::{Call, Failure, Otherwise, Outcome, Wait};
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
    pub fn wait<M: Memory>(self, call: &mut Call<'_, '_, M>, keys: Range<usize>) -> Outcome {
        // Where nobody waits these two answer as their relatives that never do.
        let moves = ["blmove", "brpoplpush"].contains(&call.command.name);
        let otherwise = match moves && !call.db.scope.is_alone() {
            true => Otherwise::Nil,
            false => Otherwise::NilArray,
        };
        Err(Failure::Block(Wait {
            keys: keys.map(|i| call.word(i).to_vec()).collect(),
            timeout: (self.0 != 0).then(|| Duration::from_millis(self.0)),
            otherwise,
            takes: true,
            words: Vec::new(),
        }))
    }
}
