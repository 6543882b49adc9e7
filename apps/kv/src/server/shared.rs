//! What a server's workers have in common.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use mio::Waker;

use super::config::ServerConfig;
use super::control::Control;
use super::counts::{Counts, POWERS};
use super::hub::Hub;
use super::registry::{Client, Registry};
use super::shipping::Shipping;
use super::tls::Socket;
use super::worker::THREADS;
use crate::command::index::Index;
use crate::memory::Memory;
use crate::script::running::Scripts;
use crate::snapshot::Keeper;
use crate::store::Store;
use crate::store::bus::SubscriptionKind;

/// Counts that INFO shows. Kept per thread, so that no two write the same.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Stats {
    pub commands: AtomicU64,
    pub connections: AtomicU64,
    pub rejected: AtomicU64,
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    pub errors: AtomicU64,
    pub evicted: AtomicU64,
    /// Keys that UNLINK has removed.
    pub unlinked: AtomicU64,
    pub input: AtomicU64,
    pub output: AtomicU64,
    pub swept: AtomicU64,
    /// System calls on sockets and polls.
    pub calls: AtomicU64,
    /// Commands of clients here that other nodes' servers have run, those of them of which nobody
    /// knows whether they have, and commands of clients there that this one has run.
    pub shipped: AtomicU64,
    pub shipped_unknown: AtomicU64,
    pub shipped_served: AtomicU64,
    /// Bytes that connections keep at the moment.
    pub held: AtomicU64,
    /// Of each command, and of each kind of error.
    pub counts: Counts,
}

impl Stats {
    /// Adds to a count that only one thread changes.
    #[inline]
    pub fn add(count: &AtomicU64, n: u64) {
        count.store(count.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// What is counted from the beginning, for CONFIG RESETSTAT.
    pub fn all(&self) -> [&AtomicU64; 15] {
        [
            &self.commands,
            &self.connections,
            &self.rejected,
            &self.hits,
            &self.misses,
            &self.errors,
            &self.evicted,
            &self.unlinked,
            &self.input,
            &self.output,
            &self.swept,
            &self.calls,
            &self.shipped,
            &self.shipped_unknown,
            &self.shipped_served,
        ]
    }
}

/// A connection on its way to its worker.
pub(crate) struct Arrival {
    pub socket: Socket,
    pub client: Arc<Client>,
    /// What comes is commands of another server's clients.
    pub link: bool,
}

/// Where one worker is reached by the others.
pub(crate) struct Desk {
    pub waker: Waker,
    /// No more than `max_clients` can be in here.
    pub arrivals: Mutex<Vec<Arrival>>,
    /// Connections that have mail: their places and numbers. No more than there are connections,
    /// but for those that are urgent.
    calls: Mutex<Vec<(usize, u64)>>,
    /// A command that stands aside is to be run before others.
    pub urgent: AtomicBool,
    /// Those of its connections' coming and going, and those of each of its threads.
    pub stats: Box<[Stats]>,
}

impl Desk {
    pub fn new(waker: Waker) -> Self {
        Desk {
            waker,
            arrivals: Mutex::default(),
            calls: Mutex::default(),
            urgent: AtomicBool::new(false),
            stats: (0..=THREADS).map(|_| Stats::default()).collect(),
        }
    }

    /// A connection has mail.
    pub fn call(&self, place: usize, id: u64, urgent: bool) {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((place, id));
        if urgent {
            self.urgent.store(true, Relaxed);
        }
        // If it fails, the worker finds the call at its next tick.
        let _ = self.waker.wake();
    }

    /// The connections that have mail.
    pub fn calls(&self) -> Vec<(usize, u64)> {
        self.urgent.store(false, Relaxed);
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A server.
pub(crate) struct Shared<M: Memory> {
    pub store: Store<M>,
    pub config: ServerConfig,
    pub addr: SocketAddr,
    pub control: Control,
    /// What connections that speak TLS are made with.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    pub commands: Index<M>,
    pub snapshots: Keeper,
    pub registry: Arc<Registry>,
    pub desks: Arc<Vec<Desk>>,
    pub hub: Arc<Hub>,
    /// How commands are sent to other nodes, if they are.
    pub shipping: Option<Shipping>,
    /// Scripts that run now.
    pub scripts: Scripts,
    pub stopping: AtomicBool,
    pub started: Instant,
}

impl<M: Memory> Shared<M> {
    /// The sum of a count over the workers.
    pub fn total(&self, count: impl Fn(&Stats) -> &AtomicU64) -> u64 {
        self.desks
            .iter()
            .flat_map(|desk| &desk.stats)
            .map(|stats| count(stats).load(Relaxed))
            .fold(0, u64::wrapping_add)
    }

    /// The counts of each unit of the catalog: calls, nanoseconds, rejected, failed.
    pub fn unit_counts(&self) -> Vec<[u64; 4]> {
        let mut sums = vec![[0; 4]; self.control.users.catalog().units.len()];
        for stats in self.desks.iter().flat_map(|desk| &desk.stats) {
            stats.counts.add_units(&mut sums);
        }
        sums
    }

    /// The calls of a unit by how long they took: at most 2^n microseconds.
    pub fn took(&self, unit: usize) -> [u64; POWERS] {
        let mut sums = [0; POWERS];
        for stats in self.desks.iter().flat_map(|desk| &desk.stats) {
            stats.counts.add_took(unit, &mut sums);
        }
        sums
    }

    /// Ends the connections of users that there are no more, and of those that have subscribed to
    /// what they may not hear any more.
    pub fn end_strangers(&self) {
        let users = self.control.users.all();
        // One that has only just come is nobody yet.
        let gone = |client: &Arc<Client>| {
            let user = &client.labels().user;
            !user.is_empty() && !users.contains_key(user)
        };
        let mut ended = self.registry.list();
        ended.retain(gone);
        // As a rule everybody may hear everything, and nothing need be looked up.
        if !users.values().all(|user| user.base.all_channels) {
            let may = |client: &Client, kind, name: &[u8]| {
                let user = users.get(&client.labels().user);
                user.is_some_and(|user| user.hears(name, kind == SubscriptionKind::Pattern))
            };
            ended.extend(self.hub.subscriptions.without_leave(may));
        }
        ended.iter().for_each(|client| client.kill());
        if !ended.is_empty() {
            self.wake_all();
        }
    }

    pub fn wake_all(&self) {
        for desk in self.desks.iter() {
            // A worker that cannot be woken still looks up every tick.
            let _ = desk.waker.wake();
        }
    }
}
