//! How often a transaction is tried, where locks are not waited for longer than a bound.

use super::{Outcome, PATIENCE};
use crate::access::{Cause, Footprint};
use crate::error::{Result, TxnError};
use std::time::{Duration, Instant};

/// How long a run waits for a lock at first. Each time that it is aborted this doubles.
const FIRST_WAIT: Duration = Duration::from_millis(2);
/// So often.
const DOUBLINGS: u32 = 6;

/// The runs of a transaction so far.
pub struct Attempts {
    end: Instant,
    tries: u32,
    aborts: [u64; Cause::ALL.len()],
}

impl Attempts {
    /// None yet.
    pub fn new() -> Attempts {
        Attempts {
            end: Instant::now() + PATIENCE,
            tries: 0,
            aborts: [0; Cause::ALL.len()],
        }
    }

    /// How long the next run waits for a lock.
    pub fn wait(&self) -> Duration {
        FIRST_WAIT * (1 << self.tries.min(DOUBLINGS))
    }

    /// A run was aborted. Two that were in each other's way do not meet again at once.
    ///
    /// # Errors
    /// [`TxnError::Starved`] after [`PATIENCE`].
    pub fn again(&mut self, cause: Cause) -> Result<()> {
        let pause = self.wait().as_micros() as u64 / 4;
        self.aborts[cause as usize] += 1;
        self.tries += 1;
        if Instant::now() > self.end {
            return Err(TxnError::Starved { tries: self.tries });
        }
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..=pause)));
        Ok(())
    }

    /// The last run has ended so: nothing, if its user has taken it back.
    pub fn ended<R>(self, done: Option<(R, Footprint)>) -> Outcome<R> {
        let (value, footprint) = done.unzip();
        Outcome {
            value,
            aborts: self.aborts,
            footprint: footprint.unwrap_or_default(),
        }
    }
}
