//! Threads that handle faults of threads: for programs whose system calls meet pages that are not
//! there, and for threads that block signals.

use super::signal::{Bring, say};
use super::userfault::{Fault, Faults};
use rackmem_fabric::Whole;
use std::io::{PipeReader, PipeWriter, pipe};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Threads of a mapping. One waits for faults, the others bring pages: a page that another node
/// keeps for a second keeps one of them.
const THREADS: usize = 4;

/// How long it waits before it tries again what it could not do, in a kernel where a load cannot
/// fail.
const AGAIN: Duration = Duration::from_millis(10);

/// They end when it is dropped.
pub(super) struct Handlers {
    threads: Vec<JoinHandle<()>>,
    stop: Option<PipeWriter>,
}

struct Shared {
    faults: Arc<Faults>,
    /// Where the mapping begins.
    address: u64,
    bring: Bring,
    /// Whose turn it is to wait.
    turn: Mutex<()>,
    stopped: PipeReader,
}

impl Handlers {
    pub fn start(faults: &Arc<Faults>, address: u64, bring: Bring) -> std::io::Result<Handlers> {
        let (stopped, stop) = pipe()?;
        let mut handlers = Handlers {
            threads: Vec::new(),
            stop: Some(stop),
        };
        let shared = Arc::new(Shared {
            faults: faults.clone(),
            address,
            bring,
            turn: Mutex::new(()),
            stopped,
        });
        for _ in 0..THREADS {
            let shared = shared.clone();
            let thread = Builder::new().name("rackmem-faults".into());
            let thread = thread.spawn(move || while shared.one() {})?;
            handlers.threads.push(thread);
        }
        Ok(handlers)
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        // The other end of the pipe has an end of file.
        self.stop = None;
        let own = std::thread::current().id();
        for thread in self
            .threads
            .drain(..)
            .filter(|thread| thread.thread().id() != own)
        {
            // What it has panicked about, the panic has said.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Handles one fault. False: it is over.
    fn one(&self) -> bool {
        match self.next() {
            Some(fault) => self.handle(fault),
            None => return false,
        }
        true
    }

    fn next(&self) -> Option<Fault> {
        let _turn = self.turn.lock().whole();
        loop {
            if let Some(fault) = self.faults.next() {
                return Some(fault);
            }
            if !self.faults.wait(&self.stopped) {
                return None;
            }
        }
    }

    /// The page is shown to who waits, or loads of it fail from here on, by a signal.
    fn handle(&self, fault: Fault) {
        let page = super::system_page() as u64;
        let at = fault.address - fault.address % page;
        loop {
            let brought = (self.bring)((at - self.address) as usize, fault.writes);
            let Err(error) = brought else {
                return;
            };
            say(&error, fault.writes);
            if self.faults.fail((at, page as usize)) {
                let _ = self.faults.wake((at, page as usize));
                return;
            }
            std::thread::sleep(AGAIN);
        }
    }
}
