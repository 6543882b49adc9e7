//! What stands in for `crates/fabric/src/shm/system.rs`: the system's queue of threads that sleep
//! on a word. Nobody is woken by time, so a wake-up that is lost is a thread that sleeps for ever,
//! which the checker reports.

use crate::sync::{AtomicU64, Ordering::SeqCst};
use loom::sync::{Condvar, Mutex};
use std::time::Duration;

pub(super) const ASLEEP: u64 = 1 << 32 | 1;

loom::lazy_static! {
    /// How many wake-ups there were.
    static ref QUEUE: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());
}

/// Looks at the word and begins to sleep in one step, as the system does.
pub(super) fn sleep(word: &AtomicU64, _: Duration) {
    let (calls, called) = &*QUEUE;
    let mut calls = calls.lock().expect("nobody panics here");
    let before = *calls;
    if word.load(SeqCst) != ASLEEP {
        return;
    }
    while *calls == before {
        calls = called.wait(calls).expect("nobody panics here");
    }
}

pub(super) fn wake(_: &AtomicU64) {
    let (calls, called) = &*QUEUE;
    *calls.lock().expect("nobody panics here") += 1;
    called.notify_all();
}
