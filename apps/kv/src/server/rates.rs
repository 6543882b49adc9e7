//! How much happens in a second, from counts that are looked at ten times a second.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Looks that the rates go over.
const LOOKS: usize = 16;

/// Counts at a time: commands, bytes in, bytes out.
type Look = (Instant, [u64; 3]);

/// The last looks.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<VecDeque<Look>>);

impl Rates {
    pub fn look(&self, counts: [u64; 3]) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.len() == LOOKS {
            looks.pop_front();
        }
        looks.push_back((Instant::now(), counts));
    }

    /// Of each count, how much was added in a second.
    pub fn a_second(&self) -> [f64; 3] {
        let looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some((began, first)), Some((ended, last))) = (looks.front(), looks.back()) else {
            return [0.0; 3];
        };
        let seconds = ended.duration_since(*began).as_secs_f64();
        let rate = |i: usize| match seconds > 0.0 {
            // Counts that were reset in between have fallen.
            true => last[i].saturating_sub(first[i]) as f64 / seconds,
            false => 0.0,
        };
        [rate(0), rate(1), rate(2)]
    }
}
