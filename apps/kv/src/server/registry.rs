//! Who is connected, for CLIENT LIST and CLIENT KILL.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::activity::{Activity, NO_COMMAND};
use crate::acl::Catalog;

use super::mail::Mailbox;

/// What is shown of a connection. Changes only on commands that are rare.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    pub name: Vec<u8>,
    pub lib_name: Vec<u8>,
    pub lib_ver: Vec<u8>,
    pub db: u8,
    pub user: Vec<u8>,
    pub resp3: bool,
}

/// A connection as others see it.
#[derive(Debug)]
pub(crate) struct Client {
    pub id: u64,
    pub peer: SocketAddr,
    pub local: SocketAddr,
    since: Instant,
    labels: Mutex<Labels>,
    killed: AtomicBool,
    pub activity: Activity,
    /// Its worker, and the place there.
    pub seat: OnceLock<(usize, usize)>,
    pub mail: Mailbox,
}

impl Client {
    pub fn labels(&self) -> MutexGuard<'_, Labels> {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks its worker to end it.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
    }

    pub fn killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// It has sent something.
    pub fn touch(&self) {
        let now = self.since.elapsed().as_millis() as u64;
        self.activity.seen.store(now, Ordering::Relaxed);
    }

    /// How long it has sent nothing.
    pub fn idle(&self) -> Duration {
        let seen = Duration::from_millis(self.activity.seen.load(Ordering::Relaxed));
        self.since.elapsed().saturating_sub(seen)
    }

    /// `normal` or `pubsub`, as CLIENT LIST TYPE has it.
    pub fn kind(&self) -> &'static str {
        match self.activity.subscribes() {
            true => "pubsub",
            false => "normal",
        }
    }

    /// The line CLIENT LIST shows.
    pub fn line(&self, catalog: &Catalog, out: &mut String) {
        let (labels, now) = (self.labels().clone(), &self.activity);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let queued = now.queued.load(Ordering::Relaxed);
        let mut flags = String::new();
        for (flag, on) in [
            ('O', now.monitors.load(Ordering::Relaxed)),
            ('P', now.subscribes()),
            ('x', queued >= 0),
            ('b', now.waits()),
        ] {
            if on {
                flags.push(flag);
            }
        }
        if flags.is_empty() {
            flags.push('N');
        }
        let unit = now.unit.load(Ordering::Relaxed);
        let command = match unit {
            NO_COMMAND => "NULL",
            unit => catalog
                .units
                .get(unit as usize)
                .map_or("NULL", |unit| &unit.name),
        };
        let subscribed = |i: usize| now.subscribed[i].load(Ordering::Relaxed).to_string();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed).to_string();
        let (output, held) = (count(&now.output), count(&now.held));
        for (name, value) in [
            ("id", self.id.to_string()),
            ("addr", self.peer.to_string()),
            ("laddr", self.local.to_string()),
            ("fd", now.fd.load(Ordering::Relaxed).to_string()),
            ("name", text(&labels.name)),
            ("age", self.since.elapsed().as_secs().to_string()),
            ("idle", self.idle().as_secs().to_string()),
            ("flags", flags),
            ("db", labels.db.to_string()),
            ("sub", subscribed(0)),
            ("psub", subscribed(1)),
            ("ssub", subscribed(2)),
            ("multi", queued.to_string()),
            ("qbuf", count(&now.input)),
            ("qbuf-free", "0".to_owned()),
            ("argv-mem", "0".to_owned()),
            ("multi-mem", "0".to_owned()),
            ("rbs", "0".to_owned()),
            ("rbp", "0".to_owned()),
            ("obl", output.clone()),
            ("oll", "0".to_owned()),
            ("omem", output),
            ("tot-mem", held),
            ("events", "r".to_owned()),
            ("cmd", command.to_owned()),
            ("user", text(&labels.user)),
            ("redir", "-1".to_owned()),
            ("resp", if labels.resp3 { "3" } else { "2" }.to_owned()),
            ("lib-name", text(&labels.lib_name)),
            ("lib-ver", text(&labels.lib_ver)),
        ] {
            let space = if name == "id" { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(out, "{space}{name}={value}");
        }
    }
}

/// All connections of a server.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    next: AtomicU64,
}

impl Registry {
    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, unless there are `limit` already.
    pub fn add(&self, peer: SocketAddr, local: SocketAddr, limit: usize) -> Option<Arc<Client>> {
        let mut clients = self.clients();
        if clients.len() >= limit {
            return None;
        }
        let client = self.unlisted(peer, local);
        clients.insert(client.id, client.clone());
        Some(client)
    }

    /// One that is no client, and in no list: what another server sends commands by.
    pub fn unlisted(&self, peer: SocketAddr, local: SocketAddr) -> Arc<Client> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let labels = Mutex::default();
        let killed = AtomicBool::new(false);
        Arc::new(Client {
            id,
            peer,
            local,
            since: Instant::now(),
            labels,
            killed,
            activity: Activity::default(),
            seat: OnceLock::new(),
            mail: Mailbox::default(),
        })
    }

    pub fn remove(&self, id: u64) {
        self.clients().remove(&id);
    }

    /// The connection of this number.
    pub fn find(&self, id: u64) -> Option<Arc<Client>> {
        self.clients().get(&id).cloned()
    }

    pub fn len(&self) -> usize {
        self.clients().len()
    }

    /// All connections, oldest first.
    pub fn list(&self) -> Vec<Arc<Client>> {
        let clients = self.clients();
        let here = clients.values().filter(|client| !client.killed());
        here.cloned().collect()
    }
}
