//! CLIENT PAUSE: commands that wait for a while.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A pause, if there is one.
#[derive(Debug)]
pub(crate) struct Pause {
    began: Instant,
    /// Milliseconds since `began` at which it ends; 0 when there is none.
    until: AtomicU64,
    /// Reads wait as well.
    all: AtomicBool,
}

impl Default for Pause {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            until: AtomicU64::new(0),
            all: AtomicBool::new(false),
        }
    }
}

impl Pause {
    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Begins one. A longer one that is under way stays as long, and one for all stays for all.
    pub fn begin(&self, time: Duration, all: bool) {
        let until = self.now().saturating_add(time.as_millis() as u64).max(1);
        let under_way = self.is_on();
        self.all
            .store(all || under_way && self.all.load(Relaxed), Relaxed);
        let before = if under_way {
            self.until.load(Relaxed)
        } else {
            0
        };
        self.until.store(until.max(before), Relaxed);
    }

    /// Ends it.
    pub fn end(&self) {
        self.until.store(0, Relaxed);
    }

    /// Whether commands wait now: those that write, at least.
    #[inline]
    pub fn is_on(&self) -> bool {
        let until = self.until.load(Relaxed);
        until != 0 && self.now() < until
    }

    /// Whether those that only read wait too.
    pub fn is_for_all(&self) -> bool {
        self.all.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_as_long_as_the_longest() {
        let pause = Pause::default();
        assert!(!pause.is_on());
        pause.begin(Duration::from_secs(1000), true);
        pause.begin(Duration::ZERO, false);
        assert!(pause.is_on() && pause.is_for_all());
        pause.end();
        assert!(!pause.is_on());
        pause.begin(Duration::from_secs(1000), false);
        assert!(pause.is_on() && !pause.is_for_all());
    }
}
