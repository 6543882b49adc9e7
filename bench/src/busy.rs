//! Threads that compute and nothing else, as other programs of a machine do.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};

/// Threads that compute until this is dropped.
pub struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// So many.
    pub fn start(count: usize) -> io::Result<Busy> {
        let mut busy = Busy {
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..count {
            let stop = busy.stop.clone();
            let thread = Builder::new().name("busy".to_owned()).spawn(move || {
                while !stop.load(Relaxed) {
                    std::hint::spin_loop();
                }
            })?;
            busy.threads.push(thread);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}
