//! What operators set and see of a server while it runs.

use super::config::{BindError, ServerConfig};
use super::latency::Latency;
use super::limit::{self, Limit};
use super::pause::Pause;
use super::rates::Rates;
use super::settings::Settings;
use super::slowlog::Slowlog;
use super::uses::Uses;
use crate::acl::{Catalog, Users};
use crate::command::Failure;
use crate::memory::Memory;
use crate::store::Store;
use std::sync::Arc;

/// A server's users and settings.
#[derive(Debug)]
pub(crate) struct Control {
    pub users: Users,
    pub settings: Settings,
    pub slowlog: Slowlog,
    pub latency: Latency,
    pub pause: Pause,
    pub rates: Rates,
    pub limit: Limit,
    pub uses: Uses,
    /// Forty digits that no other run of a server has.
    pub run_id: String,
}

impl Control {
    /// As `config` says. The users are known after [`Users::refresh`].
    pub fn new(config: &ServerConfig, catalog: Arc<Catalog>) -> Self {
        let exposed = !config.addr.ip().is_loopback();
        let (password, file) = (config.password.as_deref(), config.acl_file.clone());
        Self {
            users: Users::new(catalog, password, file, exposed),
            settings: Settings::new(config.max_clients),
            slowlog: Slowlog::default(),
            latency: Latency::default(),
            pause: Pause::default(),
            rates: Rates::default(),
            limit: Limit::default(),
            uses: Uses::default(),
            run_id: format!("{:032x}{:08x}", fastrand::u128(..), fastrand::u32(..)),
        }
    }

    /// Learns the users, from the file if the rack has none yet. A rack that cannot tell now is
    /// asked again ten times a second; until it tells, no client is let in.
    ///
    /// # Errors
    /// What is wrong with the file of users; that what all nodes are to know is to be kept by a
    /// node that stays away longer than an operation waits.
    pub fn begin<M: Memory>(
        &self,
        store: &Store<M>,
        config: &ServerConfig,
    ) -> Result<(), BindError> {
        let load = || match self.users.load(store, true) {
            Err(Failure::Store(error)) => Err(error),
            done => Ok(done),
        };
        let loaded = store.waiting_for_members(load);
        if let Err(Failure::Text(text)) = loaded.map_err(|why| BindError::Rack("users", why))? {
            let text = String::from_utf8_lossy(&text);
            let text = text.trim_start_matches("ERR ").to_owned();
            return Err(BindError::Users(text));
        }
        let _ = self.users.refresh(store);
        // The same: the tick tries again, but for a limit that nobody else knows.
        let limited = match config.max_memory {
            Some(bytes) => store.waiting_for_members(|| self.limit.set(store, bytes)),
            None => self.refresh_memory(store).or(Ok(())),
        };
        limited.map_err(|why| BindError::Rack("a limit of memory", why))
    }

    /// Learns how much the rack may keep, and which keys go.
    ///
    /// # Errors
    /// The store's; what was known stays in force.
    pub fn refresh_memory<M: Memory>(&self, store: &Store<M>) -> crate::error::Result<()> {
        if let Some(policy) = limit::told_policy(store)? {
            self.settings.set_policy(policy);
        }
        self.limit.refresh(store)
    }
}
