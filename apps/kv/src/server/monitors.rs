//! Clients that are shown every command of their node.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hub::Hub;
use super::mail::Push;
use super::registry::Client;

/// The clients that watch.
#[derive(Default)]
pub(crate) struct Monitors {
    /// There are some. All commands look at this.
    some: AtomicBool,
    clients: Mutex<Vec<Arc<Client>>>,
}

impl Monitors {
    fn clients(&self) -> MutexGuard<'_, Vec<Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody watches.
    #[inline]
    pub fn any(&self) -> bool {
        self.some.load(Relaxed)
    }

    /// Shows a line to all. Who does not take the lines is cut off, as slow subscribers are.
    pub fn show(&self, hub: &Hub, line: String) {
        let line = Arc::new(Push::Shown(line));
        let clients = self.clients().clone();
        clients
            .iter()
            .for_each(|client| hub.push(client, line.clone()));
    }

    fn change(&self, f: impl FnOnce(&mut Vec<Arc<Client>>)) {
        let mut clients = self.clients();
        f(&mut clients);
        self.some.store(!clients.is_empty(), Relaxed);
    }
}

/// A client watches until this is dropped.
pub(crate) struct Watching {
    hub: Arc<Hub>,
    client: Arc<Client>,
}

impl Watching {
    pub fn new(hub: &Arc<Hub>, client: &Arc<Client>) -> Self {
        hub.monitors.change(|clients| clients.push(client.clone()));
        client.activity.monitors.store(true, Relaxed);
        Self {
            hub: hub.clone(),
            client: client.clone(),
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let others = |clients: &mut Vec<Arc<Client>>| {
            clients.retain(|client| client.id != self.client.id);
        };
        self.hub.monitors.change(others);
        self.client.activity.monitors.store(false, Relaxed);
    }
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watching").field(&self.client.id).finish()
    }
}
