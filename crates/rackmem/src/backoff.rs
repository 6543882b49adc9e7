//! Waiting for others: briefly on the processor, then by giving it up, then by sleeping,
//! and not for ever.

use std::time::{Duration, Instant};

/// Attempts that only spin.
const SPINS: u32 = 6;
/// Attempts after which waiting means sleeping.
const YIELDS: u32 = 40;
/// The longest single sleep.
const MAX_SLEEP: Duration = Duration::from_millis(1);

/// One wait for a contended thing. Random, so that two who collide do not go on colliding.
pub(crate) struct Backoff {
    attempt: u32,
    began: Option<Instant>,
    limit: Duration,
}

impl Backoff {
    pub fn new(limit: Duration) -> Self {
        Backoff {
            attempt: 0,
            began: None,
            limit,
        }
    }

    /// How often it has waited.
    pub fn tries(&self) -> u32 {
        self.attempt
    }

    /// Waits a little longer than last time. False once the limit has passed.
    pub fn wait(&mut self) -> bool {
        self.attempt += 1;
        if self.attempt <= SPINS {
            for _ in 0..fastrand::u32(1..=1 << (self.attempt + 2)) {
                std::hint::spin_loop();
            }
            return true;
        }
        if self.attempt <= YIELDS {
            std::thread::yield_now();
            return true;
        }
        rackmem_fabric::awake::sleeps();
        let began = *self.began.get_or_insert_with(Instant::now);
        let step = Duration::from_micros(1 << (self.attempt - YIELDS).min(10)).min(MAX_SLEEP);
        std::thread::sleep(step.mul_f64(0.5 + fastrand::f64() / 2.0));
        began.elapsed() < self.limit
    }
}
