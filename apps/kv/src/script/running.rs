//! Scripts that run at this node, for SCRIPT KILL.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::errors::Stop;
use super::sha1::Sha;
use crate::resp::args::OwnedArgs;

/// How long a library may take to load.
pub(crate) const LOADING: Duration = Duration::from_millis(500);
/// How long a script runs at most, whatever it has written. Others wait for the keys it holds, and
/// its node's clients for its worker.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// Scripts that are counted, at most.
const MAX_COUNTED: usize = 1 << 16;

/// Between two looks at what else there is to do, while a script keeps its thread for long.
const PACE: Duration = Duration::from_millis(5);

/// A function that is called.
#[derive(Debug, Default)]
pub(crate) struct Called {
    /// The words of the command; `None`: libraries are being loaded.
    pub words: Option<OwnedArgs>,
    /// Libraries there are, and functions.
    pub libraries: usize,
    pub functions: usize,
}

/// A script that runs.
#[derive(Debug)]
pub(crate) struct Running {
    since: Instant,
    /// What is called, if it is a function.
    pub function: Option<Called>,
    longest: Duration,
    /// From when on others are told that it runs, and it may be killed.
    busy_after: Duration,
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

    /// What others are told while it runs for long.
    fn busy(&self) -> &'static str {
        match self.function {
            Some(_) => BUSY_FUNCTION,
            None => BUSY_SCRIPT,
        }
    }

    /// Lets this thread do what it does besides, if it is time.
    pub fn pause(&self) {
        if self.since.elapsed() < self.busy_after {
            return;
        }
        let now = Instant::now();
        if NEXT.get().is_some_and(|next| now < next) {
            return;
        }
        let besides = BESIDES.with_borrow(Clone::clone);
        if let Some(besides) = besides {
            besides(self.busy());
        }
        NEXT.set(Some(Instant::now() + PACE));
    }

    /// For how many ms it has run.
    pub fn millis(&self) -> u64 {
        self.since.elapsed().as_millis() as u64
    }

    /// Libraries are being loaded.
    fn loads(&self) -> bool {
        let called = self.function.as_ref();
        called.is_some_and(|called| called.words.is_none())
    }

    /// Whether it must end now.
    pub fn verdict(&self) -> Option<Stop> {
        if self.killed.load(Relaxed) {
            return Some(Stop::Killed);
        }
        let stop = match self.loads() {
            true => Stop::LoadsTooLong,
            false => Stop::TooLong,
        };
        (self.since.elapsed() >= self.longest).then_some(stop)
    }
}

type Besides = Rc<dyn Fn(&'static str)>;

thread_local! {
    /// What this thread does now and then while a script keeps it for long.
    static BESIDES: RefCell<Option<Besides>> = const { RefCell::new(None) };
    static NEXT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// While a script keeps this thread for long, `f` is called now and then, in the middle of it, with
/// what others are to be told.
pub(crate) fn while_busy(f: Option<Besides>) {
    BESIDES.replace(f);
}

/// All scripts that run at a server: one a thread at most.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    running: Mutex<Vec<Arc<Running>>>,
    /// Scripts that this server has compiled since they were flushed.
    compiled: Mutex<HashSet<Sha>>,
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

    fn compiled(&self) -> MutexGuard<'_, HashSet<Sha>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server has compiled this script.
    pub fn note(&self, sha: Sha) {
        let mut compiled = self.compiled();
        if compiled.len() < MAX_COUNTED {
            compiled.insert(sha);
        }
    }

    /// The scripts were flushed.
    pub fn forget_all(&self) {
        self.compiled().clear();
    }

    /// How many scripts this server has compiled that the rack still knows, as `is_known` says.
    /// They go all at once, flushed at whichever node.
    pub fn count(&self, is_known: impl Fn(&Sha) -> bool) -> usize {
        let mut compiled = self.compiled();
        if !compiled.iter().next().is_none_or(&is_known) {
            compiled.retain(is_known);
        }
        compiled.len()
    }

    /// A script begins, or the function of this name.
    pub fn enter(
        &self,
        function: Option<Called>,
        longest: Duration,
        busy_after: Duration,
    ) -> Entered<'_> {
        let running = Arc::new(Running {
            since: Instant::now(),
            function,
            longest,
            busy_after,
            wrote: AtomicBool::new(false),
            killed: AtomicBool::new(false),
        });
        self.lock().push(running.clone());
        Entered {
            scripts: self,
            running,
        }
    }

    /// Ends the scripts, or the functions, that have run for long and have not written. What loads
    /// libraries is none: it ends soon by itself, and the function that they are loaded for would
    /// run all the same.
    ///
    /// # Errors
    /// Redis' words when there is none.
    pub fn kill(&self, function: bool) -> Result<(), &'static str> {
        let (mut found, mut killed, mut other) = (false, false, None);
        for script in self.lock().iter() {
            if script.loads() || script.since.elapsed() < script.busy_after {
                continue;
            }
            if script.function.is_some() != function {
                other = Some(script.busy());
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
            (false, _) => Err(other.unwrap_or("NOTBUSY No scripts in execution right now.")),
            (true, false) => Err(UNKILLABLE),
        }
    }

    /// The function that has run for longest.
    pub fn function(&self) -> Option<Arc<Running>> {
        let is_called = |script: &&Arc<Running>| {
            let function = script.function.as_ref();
            function.is_some_and(|called| called.words.is_some())
        };
        self.lock().iter().find(is_called).cloned()
    }

    /// The server ends, and so do its scripts.
    pub fn end(&self) {
        for script in self.lock().iter() {
            script.killed.store(true, Relaxed);
        }
    }
}

const BUSY_SCRIPT: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
const BUSY_FUNCTION: &str =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";
const UNKILLABLE: &str = "UNKILLABLE Sorry the script already executed write commands against the \
dataset. You can either wait the script termination or kill the server in a hard way using the \
SHUTDOWN NOSAVE command.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::args::Args;

    #[test]
    fn who_kills_a_function_is_not_told_that_it_is_done_while_its_library_loads() {
        let scripts = Scripts::default();
        let enter = |called| scripts.enter(Some(called), LONGEST, Duration::ZERO);
        let loading = enter(Called::default());
        assert!(scripts.kill(true).unwrap_err().starts_with("NOTBUSY"));
        assert!(loading.running.verdict().is_none());
        drop(loading);
        let words = Some(OwnedArgs::from(Args::new(b"", &[])));
        let called = enter(Called {
            words,
            ..Called::default()
        });
        assert_eq!(scripts.kill(true), Ok(()));
        assert!(matches!(called.running.verdict(), Some(Stop::Killed)));
    }
}
