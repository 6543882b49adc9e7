//! Scripts that run at this node, for SCRIPT KILL.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::errors::Stop;

/// How long a script runs before clients may kill it, unless they have set something else.
const BUSY: Duration = Duration::from_secs(5);
/// How long a script runs at most, whatever it has written. Others wait for the keys it holds, and
/// its node's clients for its worker.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// A script that runs.
#[derive(Debug)]
pub(crate) struct Running {
    since: Instant,
    /// It is a function's call.
    pub function: bool,
    wrote: AtomicBool,
    killed: AtomicBool,
}

impl Running {
    /// It has changed keys.
    pub fn note_write(&self) {
        self.wrote.store(true, Relaxed);
    }

    /// Whether it must end now.
    pub fn verdict(&self) -> Option<Stop> {
        if self.killed.load(Relaxed) {
            return Some(Stop::Killed);
        }
        (self.since.elapsed() >= LONGEST).then_some(Stop::TooLong)
    }
}

/// All scripts that run at a server: one a worker at most.
#[derive(Debug)]
pub(crate) struct Scripts {
    running: Mutex<Vec<Arc<Running>>>,
    /// In ms, how long a script runs before it may be killed.
    pub busy_after: AtomicU64,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            running: Mutex::default(),
            busy_after: AtomicU64::new(BUSY.as_millis() as u64),
        }
    }
}

/// A script is among those that run until this is dropped.
pub(crate) struct Entered<'a> {
    scripts: &'a Scripts,
    pub running: Arc<Running>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut running = self.scripts.lock();
        running.retain(|other| !Arc::ptr_eq(other, &self.running));
    }
}

impl Scripts {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A script begins.
    pub fn enter(&self, function: bool) -> Entered<'_> {
        let running = Arc::new(Running {
            since: Instant::now(),
            function,
            wrote: AtomicBool::new(false),
            killed: AtomicBool::new(false),
        });
        self.lock().push(running.clone());
        Entered {
            scripts: self,
            running,
        }
    }

    /// Ends the scripts, or the functions, that have run for long and have not written.
    ///
    /// # Errors
    /// Redis' words when there is none.
    pub fn kill(&self, function: bool) -> Result<(), &'static str> {
        let busy = Duration::from_millis(self.busy_after.load(Relaxed));
        let (mut found, mut killed) = (false, false);
        for script in self.lock().iter() {
            if script.function != function || script.since.elapsed() < busy {
                continue;
            }
            found = true;
            if !script.wrote.load(Relaxed) {
                script.killed.store(true, Relaxed);
                killed = true;
            }
        }
        match (found, killed) {
            (_, true) => Ok(()),
            (false, _) => Err("NOTBUSY No scripts in execution right now."),
            (true, false) => Err(UNKILLABLE),
        }
    }

    /// The server ends, and so do its scripts.
    pub fn end(&self) {
        for script in self.lock().iter() {
            script.killed.store(true, Relaxed);
        }
    }
}

const UNKILLABLE: &str = "UNKILLABLE Sorry the script already executed write commands against the \
dataset. You can either wait the script termination or kill the server in a hard way using the \
SHUTDOWN NOSAVE command.";
