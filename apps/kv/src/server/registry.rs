//! Who is connected, for CLIENT LIST and CLIENT KILL.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

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

    /// The line CLIENT LIST shows.
    pub fn line(&self, out: &mut String) {
        let labels = self.labels().clone();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "id={} addr={} laddr={} name={} age={} db={} user={} resp={} lib-name={} lib-ver={}",
            self.id,
            self.peer,
            self.local,
            text(&labels.name),
            self.since.elapsed().as_secs(),
            labels.db,
            text(&labels.user),
            if labels.resp3 { 3 } else { 2 },
            text(&labels.lib_name),
            text(&labels.lib_ver),
        );
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
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let labels = Mutex::default();
        let killed = AtomicBool::new(false);
        let client = Arc::new(Client {
            id,
            peer,
            local,
            since: Instant::now(),
            labels,
            killed,
        });
        clients.insert(id, client.clone());
        Some(client)
    }

    pub fn remove(&self, id: u64) {
        self.clients().remove(&id);
    }

    pub fn len(&self) -> usize {
        self.clients().len()
    }

    /// All connections, oldest first.
    pub fn list(&self) -> Vec<Arc<Client>> {
        self.clients().values().cloned().collect()
    }
}
