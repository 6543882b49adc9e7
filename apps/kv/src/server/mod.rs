//! A server that speaks Redis' protocol and serves a store, at one node of the rack.

pub(crate) mod activity;
mod buffer;
mod chores;
mod config;
mod connection;
pub(crate) mod control;
pub(crate) mod counts;
pub(crate) mod hub;
mod kept;
pub(crate) mod latency;
pub(crate) mod limit;
pub(crate) mod mail;
pub(crate) mod monitors;
mod pause;
mod rates;
pub(crate) mod registry;
mod seats;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod shipping;
pub(crate) mod slowlog;
pub(crate) mod standing;
pub(crate) mod subscriptions;
mod tls;
pub(crate) mod tracking;
pub(crate) mod uses;
mod worker;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use mio::net::TcpListener;
use mio::{Interest, Poll, Waker};

use self::control::Control;
use self::hub::Hub;
use self::registry::Registry;
use self::seats::{DOOR, LISTENER, Listener as Port, SECURE, WAKER};
use self::shared::{Desk, Shared};
use self::shipping::Shipping;
use self::worker::Worker;
use crate::acl::Catalog;
use crate::command::index::Index;
use crate::memory::Memory;
use crate::script::running::Scripts;
use crate::snapshot::Keeper;
use crate::store::Store;
use crate::store::bus::Listener;

pub use self::config::{BindError, InfoSection, ServerConfig};
pub use self::tls::TlsConfig;

/// A running server. Dropping it stops it.
pub struct Server {
    addr: SocketAddr,
    tls_addr: Option<SocketAddr>,
    stop: Box<dyn Fn() + Send + Sync>,
    /// Waits for a worker that ends.
    workers: Vec<Box<dyn Fn() + Send + Sync>>,
}

impl Server {
    /// Starts serving `store` as `config` says, in threads of its own. Errors name the address.
    pub fn bind<M: Memory>(store: Store<M>, config: ServerConfig) -> Result<Self, BindError> {
        config.check()?;
        let addr = config.addr;
        let commands = Index::new();
        let control = Control::new(&config, Arc::new(Catalog::new(&commands)));
        control.begin(&store, &config)?;
        let tls = config.load_tls()?;
        Self::start(store, config, commands, control, tls)
            .map_err(|error| BindError::at(addr, &error))
    }

    fn start<M: Memory>(
        store: Store<M>,
        config: ServerConfig,
        commands: Index<M>,
        control: Control,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> std::io::Result<Self> {
        let mut listeners = Vec::new();
        let first_is_secure = config.tls.as_ref().is_some_and(|tls| tls.port.is_none());
        listeners.push(listen(config.addr, first_is_secure)?);
        if let Some(port) = config.tls.as_ref().and_then(|tls| tls.port) {
            listeners.push(listen(SocketAddr::new(config.addr.ip(), port), true)?);
        }
        let addr = listeners[0].socket.local_addr()?;
        let secure = listeners.iter().find(|listener| listener.secure);
        let tls_addr = secure
            .map(|listener| listener.socket.local_addr())
            .transpose()?;
        let polls = (0..config.workers)
            .map(|_| Poll::new())
            .collect::<std::io::Result<Vec<_>>>()?;
        let desks = polls.iter().map(desk);
        let desks = desks.collect::<std::io::Result<Vec<_>>>()?;
        let (desks, registry) = (Arc::new(desks), Arc::new(Registry::default()));
        let hub = Hub::new(Box::new(store.clone()), desks.clone(), registry.clone());
        let ears: Weak<dyn Listener> = Arc::<Hub>::downgrade(&hub);
        store.listen(ears);
        for (listener, token) in listeners.iter_mut().zip([LISTENER, SECURE]) {
            let registry = polls[0].registry();
            registry.register(&mut listener.socket, token, Interest::READABLE)?;
        }
        let memory = store.memory();
        let alone = memory.pages_survive() || memory.nodes() == 1;
        let shipping = match config.links.filter(|_| !alone) {
            Some(links) => {
                let mut door = listen(SocketAddr::new(links, 0), false)?;
                door.door = true;
                let at = door.socket.local_addr()?;
                let registry = polls[0].registry();
                registry.register(&mut door.socket, DOOR, Interest::READABLE)?;
                listeners.push(door);
                let registries = polls.iter().map(|poll| poll.registry().try_clone());
                let registries = registries.collect::<std::io::Result<Vec<_>>>()?;
                Some(Shipping::new(&store, at, registries))
            }
            None => None,
        };
        let snapshots = Keeper::new(config.snapshot.clone(), store.first().now());
        let shared = Arc::new(Shared {
            store,
            config,
            addr,
            control,
            tls,
            commands,
            registry,
            snapshots,
            desks,
            scripts: Scripts::default(),
            hub,
            shipping,
            stopping: AtomicBool::new(false),
            started: Instant::now(),
        });
        let stopper = shared.clone();
        let stop = move || {
            stopper.stopping.store(true, Ordering::Relaxed);
            stopper.scripts.end();
            stopper.wake_all();
            stopper.snapshots.stop();
        };
        let mut server = Self {
            addr,
            tls_addr,
            stop: Box::new(stop),
            workers: Vec::new(),
        };
        for (number, poll) in polls.into_iter().enumerate() {
            let listeners = std::mem::take(&mut listeners);
            let worker = Worker::start(shared.clone(), number, poll, listeners)?;
            server.workers.push(Box::new(move || worker.join()));
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where it listens for clients that speak TLS, if there is TLS.
    pub fn tls_addr(&self) -> Option<SocketAddr> {
        self.tls_addr
    }

    /// Ends all connections and waits for the threads.
    pub fn shutdown(mut self) {
        self.end();
    }

    fn end(&mut self) {
        (self.stop)();
        self.workers.drain(..).for_each(|join| join());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn listen(addr: SocketAddr, secure: bool) -> std::io::Result<Port> {
    let socket = TcpListener::bind(addr)?;
    let door = false;
    Ok(Port {
        socket,
        secure,
        door,
    })
}

fn desk(poll: &Poll) -> std::io::Result<Desk> {
    let waker = Waker::new(poll.registry(), WAKER)?;
    Ok(Desk::new(waker))
}
