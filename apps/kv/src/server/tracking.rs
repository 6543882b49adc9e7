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
use super::kept::{Entry, Kept};
use super::mail::{Name, Push};
use super::registry::Client;
use crate::error::Result;
use crate::memory::Memory;
use crate::store::Db;

/// Keys noted, at most, whatever `tracking-table-max-keys` says; one more makes the clients forget
/// another.
const MAX_KEYS: usize = 1 << 20;
/// Keys noted, at most, until the setting says otherwise.
pub(crate) const KEYS: usize = 1_000_000;
/// Keys that are made forgotten at a time, at most.
const CUT: usize = 1000;
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
pub(super) struct Tracker {
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

struct Table {
    kept: Kept,
    /// Keys noted, at most.
    limit: usize,
    clients: Vec<Arc<Tracker>>,
    /// Those of them that hear of all keys with a prefix.
    broadcast: Vec<Arc<Tracker>>,
    useless: HashSet<Name>,
    /// Buckets that are about not to be watched any more.
    leaving: HashSet<usize>,
}

impl Default for Table {
    fn default() -> Self {
        Table {
            kept: Kept::default(),
            limit: KEYS,
            clients: Vec::new(),
            broadcast: Vec::new(),
            useless: HashSet::new(),
            leaving: HashSet::new(),
        }
    }
}

/// The clients of a node by the keys that they keep.
#[derive(Default)]
pub(crate) struct Tracking(Mutex<Table>);

/// How much a node's clients track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    pub clients: usize,
    /// Keys of which a client keeps a copy.
    pub keys: usize,
    /// Copies, one a key and client.
    pub items: usize,
    /// Prefixes of which a client hears.
    pub prefixes: usize,
}

impl Tracked {
    /// The client tracks from now on; `old`: it did before with other settings.
    pub fn new(
        hub: &Arc<Hub>,
        client: &Arc<Client>,
        settings: Settings,
        old: Option<&Tracked>,
    ) -> Result<Self> {
        let attention = hub.attend()?;
        let tracker = Arc::new(Tracker {
            client: client.clone(),
            settings,
        });
        let mut table = hub.tracking.lock();
        if tracker.settings.mode == Mode::Broadcast {
            if table.broadcast.is_empty() {
                hub.rack.hear_all(true)?;
            }
            table.broadcast.push(tracker.clone());
        }
        table.clients.push(tracker.clone());
        if let Some(old) = old {
            table.kept.hand_over(&old.tracker, &tracker);
        }
        drop(table);
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
        table.clients.retain(|tracker| !mine(tracker));
        if self.settings().mode == Mode::Broadcast {
            table.broadcast.retain(|tracker| !mine(tracker));
            if table.broadcast.is_empty() {
                // Goes on to hear what it does not need if this fails.
                let _ = self.hub.rack.hear_all(false);
            }
            return;
        }
        table.kept.forget(&self.tracker);
    }
}

impl Tracker {
    /// Tells of a change, unless it is its own and the client does not want to hear of those.
    fn tell_change(&self, hub: &Hub, message: &Arc<Push>) {
        if !self.settings.no_loop || WRITER.get() != self.client.id {
            self.tell(hub, message);
        }
    }

    fn tell(&self, hub: &Hub, message: &Arc<Push>) {
        match self.settings.redirect {
            0 => hub.push(&self.client, message.clone()),
            other => match hub.registry.find(other) {
                Some(other) => hub.push(&other, message.clone()),
                None => hub.push(&self.client, Arc::new(Push::Broken(other))),
            },
        }
    }
}

/// Tells clients of keys whose copies are not looked after any more.
fn forget(hub: &Hub, cut: Vec<Entry>) {
    for ((_, key), trackers) in cut {
        let message = Arc::new(Push::Invalidate(Some(key)));
        trackers
            .iter()
            .for_each(|tracker| tracker.tell(hub, &message));
    }
}

impl Tracking {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a client keeps a key. Whether its bucket is about not to be watched any more.
    fn add(&self, hub: &Hub, name: Name, tracker: &Arc<Tracker>) -> bool {
        let bucket = hub.rack.bucket(&name);
        let (leaving, cut) = {
            let mut table = self.lock();
            // Before: the client is about to read this one.
            let room = table.limit - usize::from(!table.kept.has(&name));
            let cut = table.kept.cut(room, CUT);
            table.kept.add(name, tracker);
            (table.leaving.remove(&bucket), cut)
        };
        forget(hub, cut);
        leaving
    }

    /// From now on so many keys are noted, at most; 0: as many as can be.
    pub fn set_limit(&self, hub: &Hub, keys: u64) {
        let keys = usize::try_from(keys).unwrap_or(MAX_KEYS).min(MAX_KEYS);
        self.lock().limit = if keys == 0 { MAX_KEYS } else { keys };
        self.cut(hub);
    }

    /// Makes clients forget some of the keys that are too many.
    fn cut(&self, hub: &Hub) {
        let cut = {
            let mut table = self.lock();
            let limit = table.limit;
            table.kept.cut(limit, CUT)
        };
        forget(hub, cut);
    }

    /// How much is tracked.
    pub fn totals(&self) -> Totals {
        let table = self.lock();
        let settings = table.broadcast.iter().map(|tracker| &tracker.settings);
        let prefixes: HashSet<&Vec<u8>> = settings.flat_map(|all| &all.prefixes).collect();
        Totals {
            clients: table.clients.len(),
            keys: table.kept.len(),
            items: table.kept.copies(),
            prefixes: prefixes.len(),
        }
    }

    /// Tells those who keep a key that it has changed. Whether there are such.
    pub fn changed(&self, hub: &Hub, name: &Name) -> bool {
        let (keepers, broadcast) = {
            let mut table = self.lock();
            let keepers = table.kept.take(name);
            let hears = |tracker: &Arc<Tracker>| {
                let mut prefixes = tracker.settings.prefixes.iter();
                let prefix = prefixes.position(|prefix| name.1.starts_with(prefix))?;
                Some((tracker.clone(), prefix))
            };
            let broadcast: Vec<_> = table.broadcast.iter().filter_map(hears).collect();
            (keepers, broadcast)
        };
        if !keepers.is_empty() {
            let message = Arc::new(Push::Invalidate(Some(name.1.clone())));
            for tracker in &keepers {
                tracker.tell_change(hub, &message);
            }
        }
        for (tracker, prefix) in &broadcast {
            let message = Push::Changed {
                group: (tracker.client.id, *prefix),
                key: name.1.clone(),
            };
            tracker.tell_change(hub, &Arc::new(message));
        }
        !keepers.is_empty() || !broadcast.is_empty()
    }

    /// Tells all that any key may have changed.
    pub fn flushed(&self, hub: &Hub) {
        let clients = {
            let mut table = self.lock();
            table.kept.clear();
            table.clients.clone()
        };
        let message = Arc::new(Push::Invalidate(None));
        clients
            .iter()
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
        self.cut(hub);
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
            let names = table.kept.names();
            names.map(|name| hub.rack.bucket(name)).collect()
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
