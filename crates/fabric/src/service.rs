//! A thread that serves a handler.

use crate::Counters;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// A thread that serves a handler. Dropping it stops the thread.
pub struct Service {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

impl Service {
    /// Runs `run` until it sees that it should stop, which it must look for every few milliseconds.
    pub(crate) fn start(
        name: &str,
        counters: Arc<Counters>,
        run: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> io::Result<Service> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || run(&stopped))?;
        Ok(Service {
            stop,
            thread: Some(thread),
            counters,
        })
    }

    /// What its end of the fabric has done.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the handler has been reported by its thread; there is nothing to add while
            // dropping.
            let _ = thread.join();
        }
    }
}
