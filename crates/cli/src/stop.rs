//! Ctrl-C: a flag that everything with a loop looks at, so that a run winds down instead of being
//! cut off.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How late a sleeper notices that it should stop.
const STEP: Duration = Duration::from_millis(50);
/// What a second Ctrl-C ends the process with, at once.
const IMPATIENT: i32 = 130;

/// Whether the user wants the run to end.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT, SIGTERM and SIGHUP. The first asks; a second one does not wait for the
    /// answer.
    pub fn on_signals() -> Result<Stop, Failure> {
        let stop = Stop::default();
        let flag = stop.clone();
        let listen = ctrlc::set_handler(move || {
            if flag.0.swap(true, Relaxed) {
                std::process::exit(IMPATIENT);
            }
            rackmem_bench::stop::request();
        });
        listen.map_err(|error| {
            Failure::new(
                format!("cannot listen for Ctrl-C: {error}"),
                "run it in an ordinary shell",
            )
        })?;
        Ok(stop)
    }

    /// Asks for the end.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether somebody has asked for the end.
    pub fn requested(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Sleeps; `false` when told to stop before the time was over.
    pub fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.requested() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(STEP));
        }
        false
    }

    /// Sleeps until told to stop.
    pub fn wait(&self) {
        while self.sleep(Duration::from_secs(3600)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_wakes_when_asked() {
        let stop = Stop::default();
        assert!(stop.sleep(Duration::from_millis(1)));
        let other = stop.clone();
        let asker = std::thread::spawn(move || other.request());
        stop.wait();
        assert!(!stop.sleep(Duration::from_secs(3600)));
        asker.join().unwrap();
    }
}
