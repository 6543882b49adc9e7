//! Scripts that run at this node, for SCRIPT KILL.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::errors::Stop;

/// How long a library may take to load.
pub(crate) const LOADING: Duration = Duration::from_millis(500);
/// How long a script runs at most, whatever it has written. Others wait for the keys it holds, and
/// its node's clients for its worker.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// A script that runs.
#[derive(Debug)]
pub(crate) struct Running {
    since: Instant,
    /// What is called, if it is a function.
    pub function: Option<Box<[u8]>>,
    longest: Duration,
    wrote: AtomicBool,
    killed: AtomicBool,
}

impl Running {
    /// It has changed keys.
    pub fn note_write(&self) {
        self.wrote.store(true, Relaxed);
    }

    /// What it has changed was undone, for it runs again.
    pub fn forget_writes(&self) {
        self.wrote.store(false, Relaxed);
    }

    /// Whether it must end now.
    pub fn verdict(&self) -> Option<Stop> {
        if self.killed.load(Relaxed) {
            return Some(Stop::Killed);
        }
        (self.since.elapsed() >= self.longest).then_some(Stop::TooLong)
    }
}

/// All scripts that run at a server: one a worker at most.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    running: Mutex<Vec<Arc<Running>>>,
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

    /// A script begins, or the function of this name.
    pub fn enter(&self, function: Option<&[u8]>, longest: Duration) -> Entered<'_> {
        let running = Arc::new(Running {
            since: Instant::now(),
            function: function.map(Box::from),
            longest,
            wrote: AtomicBool::new(false),
            killed: AtomicBool::new(false),
        });
        self.lock().push(running.clone());
        Entered {
            scripts: self,
            running,
        }
    }

    /// Ends the scripts, or the functions, that have run for so long and have not written.
    ///
    /// # Errors
    /// Redis' words when there is none.
    pub fn kill(&self, function: bool, busy_after: Duration) -> Result<(), &'static str> {
        let (mut found, mut killed) = (false, false);
        for script in self.lock().iter() {
            if script.function.is_some() != function || script.since.elapsed() < busy_after {
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

    /// The function that has run for longest, and for how many ms.
    pub fn function(&self) -> Option<(Box<[u8]>, u64)> {
        let running = self.lock();
        let script = running.iter().find(|script| script.function.is_some())?;
        let elapsed = script.since.elapsed().as_millis() as u64;
        Some((script.function.clone()?, elapsed))
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
