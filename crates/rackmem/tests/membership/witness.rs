//! Remembers what a keeper told, and folders that go away.

use rackmem::membership::{Events, Keeper, MembershipError, Role, Store, View};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a test waits for what must come. No test measures it.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Long enough for threads of a loaded machine that take turns.
pub const LEASE: Duration = Duration::from_millis(1000);

#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    View(View),
    Lease(bool),
    Fenced,
}

#[derive(Default)]
pub struct Witness {
    told: Mutex<Vec<Told>>,
    more: Condvar,
}

impl Witness {
    pub fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// Waits until what was told so far is as wanted.
    pub fn wait(&self, what: &str, wanted: impl Fn(&[Told]) -> bool) {
        let end = Instant::now() + PATIENCE;
        let mut told = self.told.lock().unwrap();
        while !wanted(&told) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "never {what}: {told:?}");
            told = self.more.wait_timeout(told, left).unwrap().0;
        }
    }

    /// Waits until these are the live nodes.
    pub fn wait_live(&self, live: u32) {
        self.wait(&format!("{live:#b} live"), |told| {
            last_view(told).is_some_and(|view| view.live.0 == live)
        });
    }

    fn push(&self, event: Told) {
        self.told.lock().unwrap().push(event);
        self.more.notify_all();
    }
}

/// What was told of the lease last, whatever views have come since.
pub fn last_lease(told: &[Told]) -> Option<bool> {
    told.iter().rev().find_map(|event| match event {
        Told::Lease(held) => Some(*held),
        _ => None,
    })
}

pub fn last_view(told: &[Told]) -> Option<View> {
    told.iter().rev().find_map(|event| match event {
        Told::View(view) => Some(*view),
        _ => None,
    })
}

impl Events for Witness {
    fn view(&self, view: &View) {
        self.push(Told::View(*view));
    }

    fn lease(&self, held: bool) {
        self.push(Told::Lease(held));
    }

    fn fenced(&self) {
        self.push(Told::Fenced);
    }
}

pub fn join(store: &Arc<dyn Store>, role: Role) -> Result<(Keeper, Arc<Witness>), MembershipError> {
    let witness = Arc::new(Witness::default());
    let keeper = Keeper::join(store.clone(), role, LEASE, PATIENCE, witness.clone())?;
    Ok((keeper, witness))
}

/// A folder of this test's own.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let name = format!("rackmem-{name}-{}", std::process::id());
        // In memory where that is possible: a disk that is busy makes an etcd miss its own
        // deadlines.
        let memory = Path::new("/dev/shm");
        let path = match memory.is_dir() {
            true => memory.join(name),
            false => std::env::temp_dir().join(name),
        };
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
