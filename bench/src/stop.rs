//! Whether the user has asked for the end, with Ctrl-C. A signal is the whole process's, and so is
//! this flag. What is measured then is cut short, and no figure of it is kept.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// How late a sleeper notices.
const STEP: Duration = Duration::from_millis(20);

/// Asks for the end. May be called by a handler of signals.
pub fn request() {
    REQUESTED.store(true, Relaxed);
}

/// Whether the end has been asked for.
pub fn requested() -> bool {
    REQUESTED.load(Relaxed)
}

/// Sleeps, but not after the end has been asked for.
pub fn sleep(time: Duration) {
    let end = Instant::now() + time;
    while !requested() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(STEP));
    }
}
