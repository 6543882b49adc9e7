//! Threads that handle faults of threads: for programs whose system calls meet pages that are not
//! there, and for threads that block signals.

use super::page_file::PageFile;
use super::signal::{Bring, say};
use super::userfault::{Fault, Faults};
use rackmem_fabric::Whole;
use std::io::{PipeReader, PipeWriter, pipe};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
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
    shared: Arc<Shared>,
}

struct Shared {
    faults: Arc<Faults>,
    user: Arc<PageFile>,
    bring: Bring,
    /// Whose turn it is to wait.
    turn: Mutex<()>,
    stopped: PipeReader,
    /// Nobody brings anything any more.
    over: AtomicBool,
}

impl Handlers {
    pub fn start(
        faults: &Arc<Faults>,
        user: &Arc<PageFile>,
        bring: Bring,
    ) -> std::io::Result<Handlers> {
        let (stopped, stop) = pipe()?;
        let shared = Arc::new(Shared {
            faults: faults.clone(),
            user: user.clone(),
            bring,
            turn: Mutex::new(()),
            stopped,
            over: AtomicBool::new(false),
        });
        let mut handlers = Handlers {
            threads: Vec::new(),
            stop: Some(stop),
            shared: shared.clone(),
        };
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
        self.shared.over.store(true, Relaxed);
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
        let page = super::system_page();
        let address = fault.address - fault.address % page as u64;
        let at = (address - self.user.address()) as usize;
        let mut told = false;
        while !self.over.load(Relaxed) {
            let Err(error) = (self.bring)(at, fault.writes) else {
                return;
            };
            if !std::mem::replace(&mut told, true) {
                say(&error, fault.writes);
            }
            // Only what is not there can fail: a page that is here to load is taken out.
            let hidden = self.user.unmap(at, page).is_ok();
            if hidden && self.faults.fail((address, page)) {
                let _ = self.faults.wake((address, page));
                return;
            }
            std::thread::sleep(AGAIN);
        }
    }
}
