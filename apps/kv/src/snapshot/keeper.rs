//! What a server knows of its snapshots: one at a time, in a thread of its own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use super::save::{Moment, SaveError, Saved};
use super::save_file;
use crate::memory::Memory;
use crate::store::Store;

/// How snapshots are going.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// When the one that is being written was begun.
    pub since: Option<Instant>,
    /// Keys in it so far.
    pub keys: u64,
    /// Whether the last one in the background failed, and how many seconds it took.
    pub last: Option<(bool, u64)>,
    /// When the last one succeeded, or the server started: seconds since 1970.
    pub saved_at: u64,
    /// Snapshots that succeeded.
    pub saves: u64,
}

#[derive(Default)]
struct Inner {
    status: Mutex<Status>,
    stop: AtomicBool,
}

impl Inner {
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a server's snapshots.
pub(crate) struct Keeper {
    file: Option<PathBuf>,
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    /// Snapshots go to `file`; `now` is in ms since 1970.
    pub fn new(file: Option<PathBuf>, now: u64) -> Self {
        let keeper = Self {
            file,
            inner: Arc::default(),
            thread: Mutex::default(),
        };
        keeper.inner.status().saved_at = now / 1000;
        keeper
    }

    /// Where snapshots go.
    pub fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    pub fn status(&self) -> Status {
        self.inner.status().clone()
    }

    /// Claims the right to write the file; `false`: somebody else has it.
    fn begin(&self) -> bool {
        let mut status = self.inner.status();
        let free = status.since.is_none();
        if free {
            (status.since, status.keys) = (Some(Instant::now()), 0);
        }
        free
    }

    /// Saves one moment of all keys, and returns when that is done. `None`: one is under way.
    pub fn save<M: Memory>(&self, store: &Store<M>) -> Option<Result<Saved, SaveError>> {
        let file = self.file.as_ref()?;
        if !self.begin() {
            return None;
        }
        let saved = save_file(store, Moment::All, file, self.inner.watch());
        self.inner.end(store.first().now(), &saved, false);
        Some(saved)
    }

    /// Begins a snapshot; `false`: one is under way. Errors are those of starting a thread.
    pub fn save_in_background<M: Memory>(&self, store: &Store<M>) -> std::io::Result<bool> {
        let Some(file) = self.file.clone() else {
            return Ok(false);
        };
        if !self.begin() {
            return Ok(false);
        }
        let (store, inner) = (store.clone(), self.inner.clone());
        let run = move || {
            let saved = save_file(&store, Moment::Each, &file, inner.watch());
            inner.end(store.first().now(), &saved, true);
        };
        let started = std::thread::Builder::new()
            .name("kv-save".into())
            .spawn(run);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        match started {
            // The one before has ended, or this one would not have begun.
            Ok(started) => *thread = Some(started),
            Err(error) => {
                self.inner.status().since = None;
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Ends a snapshot that is under way, without a file, and waits for that.
    pub fn stop(&self) {
        self.inner.stop.store(true, Ordering::Relaxed);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // One that panicked has ended too.
            let _ = thread.join();
        }
    }
}

impl Inner {
    /// Takes down progress.
    fn watch(&self) -> impl FnMut(&Saved) -> bool {
        |saved| {
            self.status().keys = saved.keys;
            !self.stop.load(Ordering::Relaxed)
        }
    }

    fn end(&self, now: u64, saved: &Result<Saved, SaveError>, background: bool) {
        let mut status = self.status();
        let since = status.since.take();
        let seconds = since.map_or(0, |since| since.elapsed().as_secs());
        if background {
            status.last = Some((saved.is_err(), seconds));
        }
        if saved.is_ok() {
            status.saved_at = now / 1000;
            status.saves += 1;
        }
    }
}
