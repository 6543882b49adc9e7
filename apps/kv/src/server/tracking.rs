//! CLIENT TRACKING: which keys a node's clients keep copies of, and telling them of changes.
//!
//! A key that a tracking client reads is noted here before it is read, and its bucket is watched.
//! So every change after the reading is heard of, wherever in the rack it is made, and the client
//! is told; it may also be told of one that came just before.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hub::{Attention, Hub};
use super::mail::{Name, Push};
use super::registry::Client;
use crate::error::Result;
use crate::memory::Memory;
use crate::store::Db;

/// Keys noted, at most; one more makes the clients forget another.
const MAX_KEYS: usize = 1 << 20;
/// Keys that changed for nobody, noted until their buckets are not watched any more, at most.
const MAX_USELESS: usize = 1024;

thread_local! {
    /// The client whose command this thread runs.
    static WRITER: Cell<u64> = const { Cell::new(0) };
}

/// The client whose command this thread runs; 0: none's.
pub(crate) fn acting() -> u64 {
    WRITER.get()
}

/// What this thread does from now on is done by this client.
pub(crate) fn act_for(client: u64) {
    WRITER.set(client);
}

/// When a client's reads are noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Always,
    /// When CLIENT CACHING YES comes before.
    OptIn,
    /// Unless CLIENT CACHING NO comes before.
    OptOut,
    /// Never: it hears of all keys with a prefix.
    Broadcast,
}

/// A client's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub mode: Mode,
    pub prefixes: Vec<Vec<u8>>,
    /// It does not hear of its own changes.
    pub no_loop: bool,
    /// Who hears instead of it; 0: itself.
    pub redirect: u64,
}

/// A client that tracks.
struct Tracker {
    client: Arc<Client>,
    settings: Settings,
}

/// A connection's part. Ends with it.
pub(crate) struct Tracked {
    tracker: Arc<Tracker>,
    hub: Arc<Hub>,
    /// CLIENT CACHING was called before this command.
    pub caching: Option<bool>,
    /// By the command that is just running.
    pub fresh: bool,
    _attention: Attention,
}

impl fmt::Debug for Tracked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings().fmt(f)
    }
}

#[derive(Default)]
struct Table {
    keys: HashMap<Name, Vec<Arc<Tracker>>>,
    broadcast: Vec<Arc<Tracker>>,
    useless: HashSet<Name>,
    /// Buckets that are about not to be watched any more.
    leaving: HashSet<usize>,
}

/// The clients of a node by the keys that they keep.
#[derive(Default)]
pub(crate) struct Tracking(Mutex<Table>);

impl Tracked {
    pub fn new(hub: &Arc<Hub>, client: &Arc<Client>, settings: Settings) -> Result<Self> {
        let attention = hub.attend()?;
        let tracker = Arc::new(Tracker {
            client: client.clone(),
            settings,
        });
        if tracker.settings.mode == Mode::Broadcast {
            let mut table = hub.tracking.lock();
            if table.broadcast.is_empty() {
                hub.rack.hear_all(true)?;
            }
            table.broadcast.push(tracker.clone());
        }
        Ok(Tracked {
            tracker,
            hub: hub.clone(),
            caching: None,
            fresh: false,
            _attention: attention,
        })
    }

    pub fn settings(&self) -> &Settings {
        &self.tracker.settings
    }

    /// Whether the reads of the command that follows are noted.
    fn notes(&self) -> bool {
        match self.settings().mode {
            Mode::Always => true,
            Mode::OptIn => self.caching == Some(true),
            Mode::OptOut => self.caching != Some(false),
            Mode::Broadcast => false,
        }
    }

    /// The client is about to read these keys.
    pub fn note<'k, M: Memory>(
        &self,
        db: Db<'_, M>,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<()> {
        if !self.notes() {
            return Ok(());
        }
        for key in keys.filter(|key| key.len() <= db.key_limit()) {
            let name = (db.number(), key.to_vec());
            let leaving = self.hub.tracking.add(&self.hub, name, &self.tracker);
            db.watch_changes(key, leaving)?;
        }
        Ok(())
    }

    /// A command is over, before which CLIENT CACHING counted.
    pub fn end_command(&mut self) {
        if !std::mem::take(&mut self.fresh) {
            self.caching = None;
        }
    }

    /// Whether the client that should hear instead of this one is gone.
    pub fn is_broken(&self) -> bool {
        let redirect = self.settings().redirect;
        redirect != 0 && self.hub.registry.find(redirect).is_none()
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let mut table = self.hub.tracking.lock();
        let mine = |tracker: &Arc<Tracker>| Arc::ptr_eq(tracker, &self.tracker);
        if self.settings().mode == Mode::Broadcast {
            table.broadcast.retain(|tracker| !mine(tracker));
            if table.broadcast.is_empty() {
                // Goes on to hear what it does not need if this fails.
                let _ = self.hub.rack.hear_all(false);
            }
            return;
        }
        table.keys.retain(|_, trackers| {
            trackers.retain(|tracker| !mine(tracker));
            !trackers.is_empty()
        });
    }
}

impl Tracker {
    fn tell(&self, hub: &Hub, message: &Arc<Push>) {
        let Settings {
            no_loop, redirect, ..
        } = self.settings;
        if no_loop && WRITER.get() == self.client.id {
            return;
        }
        match redirect {
            0 => hub.push(&self.client, message.clone()),
            other => match hub.registry.find(other) {
                Some(other) => hub.push(&other, message.clone()),
                None => hub.push(&self.client, Arc::new(Push::Broken(other))),
            },
        }
    }
}

impl Tracking {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a client keeps a key. Whether its bucket is about not to be watched any more.
    fn add(&self, hub: &Hub, name: Name, tracker: &Arc<Tracker>) -> bool {
        let bucket = hub.rack.bucket(&name);
        let (leaving, dropped) = {
            let mut table = self.lock();
            let full = table.keys.len() >= MAX_KEYS && !table.keys.contains_key(&name);
            let dropped = full.then(|| table.keys.keys().next().cloned()).flatten();
            let dropped = dropped.and_then(|name| table.keys.remove_entry(&name));
            let trackers = table.keys.entry(name).or_default();
            if !trackers.iter().any(|other| Arc::ptr_eq(other, tracker)) {
                trackers.push(tracker.clone());
            }
            (table.leaving.remove(&bucket), dropped)
        };
        if let Some(((_, key), trackers)) = dropped {
            let message = Arc::new(Push::Invalidate(Some(key)));
            trackers
                .iter()
                .for_each(|tracker| tracker.tell(hub, &message));
        }
        leaving
    }

    /// Tells those who keep a key that it has changed. Whether there are such.
    pub fn changed(&self, hub: &Hub, name: &Name) -> bool {
        let trackers = {
            let mut table = self.lock();
            let mut trackers = table.keys.remove(name).unwrap_or_default();
            let wants = |prefix: &Vec<u8>| name.1.starts_with(prefix);
            let broadcast = table.broadcast.iter();
            trackers.extend(
                broadcast
                    .filter(|tracker| tracker.settings.prefixes.iter().any(wants))
                    .cloned(),
            );
            trackers
        };
        if trackers.is_empty() {
            return false;
        }
        let message = Arc::new(Push::Invalidate(Some(name.1.clone())));
        let with_others = Arc::new(Push::Changed(name.1.clone()));
        for tracker in &trackers {
            match tracker.settings.mode {
                Mode::Broadcast => tracker.tell(hub, &with_others),
                _ => tracker.tell(hub, &message),
            }
        }
        true
    }

    /// Tells all that any key may have changed.
    pub fn flushed(&self, hub: &Hub) {
        let trackers = {
            let mut table = self.lock();
            let mut all: HashMap<u64, Arc<Tracker>> = HashMap::new();
            let keys = std::mem::take(&mut table.keys);
            let kept = keys
                .into_values()
                .flatten()
                .chain(table.broadcast.iter().cloned());
            kept.for_each(|tracker| drop(all.insert(tracker.client.id, tracker)));
            all
        };
        let message = Arc::new(Push::Invalidate(None));
        trackers
            .values()
            .for_each(|tracker| tracker.tell(hub, &message));
    }

    /// Nobody was interested in this change.
    pub fn note_useless(&self, name: Name) {
        let mut table = self.lock();
        if table.broadcast.is_empty() && table.useless.len() < MAX_USELESS {
            table.useless.insert(name);
        }
    }

    /// Lets the node not watch buckets any more of which nobody wants to hear.
    pub fn tidy(&self, hub: &Hub) {
        let useless = std::mem::take(&mut self.lock().useless);
        let buckets: HashMap<usize, Name> = useless
            .into_iter()
            .map(|name| (hub.rack.bucket(&name), name))
            .collect();
        if buckets.is_empty() {
            return;
        }
        // From here on who wants one of these says so, and who did before is found.
        let wanted: HashSet<usize> = {
            let mut table = self.lock();
            table.leaving = buckets.keys().copied().collect();
            table
                .keys
                .keys()
                .map(|name| hub.rack.bucket(name))
                .collect()
        };
        for (bucket, name) in buckets {
            let awaited = || hub.queues.any(|name| hub.rack.bucket(name) == bucket);
            let still = || self.lock().leaving.remove(&bucket) && !awaited();
            if !wanted.contains(&bucket) && hub.rack.unwatch(&name, &still).is_err() {
                self.lock().leaving.remove(&bucket);
            }
        }
        self.lock().leaving.clear();
    }
}
