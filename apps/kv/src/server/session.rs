//! What a connection's commands change about the connection.

use std::sync::Arc;
use std::time::Instant;

use super::monitors::Watching;
use super::registry::Client;
use super::shipping::Shipped;
use super::standing::Standing;
use super::subscriptions::Subscribed;
use super::tracking::Tracked;
use crate::acl::User;
use crate::resp::args::OwnedArgs;
use crate::resp::parse::Limits;
use crate::resp::reply::Protocol;
use crate::store::{Mark, Plan};

/// Commands in a transaction, at most.
pub(crate) const MAX_QUEUED: usize = 1 << 16;
/// Bytes in them, at most.
pub(crate) const MAX_QUEUED_BYTES: usize = 2 * crate::MAX_VALUE;
/// Keys watched by a connection, at most.
pub(crate) const MAX_WATCHED: usize = 1 << 16;

/// A command that waits for EXEC.
#[derive(Debug)]
pub(crate) struct Queued {
    /// Its place in the command table.
    pub command: usize,
    pub args: OwnedArgs,
}

/// An open transaction.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub commands: Vec<Queued>,
    pub bytes: usize,
    /// A command was refused: EXEC must fail.
    pub failed: bool,
}

/// A key whose change makes EXEC do nothing.
#[derive(Debug)]
pub(crate) struct Watched {
    pub db: u8,
    pub key: Vec<u8>,
    pub mark: Mark,
}

/// Whether replies are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Speech {
    #[default]
    On,
    Off,
    /// Not for the next command.
    SkipNext,
    /// Not for this one.
    Skip,
}

/// Who a client is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub user: Arc<User>,
    /// It has said the password, or need not.
    pub trusted: bool,
    /// The generation of the users that this goes by.
    pub generation: u64,
}

/// What a script touches that its transaction does not hold.
#[derive(Debug, Default)]
pub(crate) struct Unheld {
    pub keys: Vec<Vec<u8>>,
    pub plan: Plan,
    /// The script has written, which is to be undone before it runs again.
    pub wrote: bool,
}

/// A connection's state.
#[derive(Debug)]
pub(crate) struct Session {
    pub client: Arc<Client>,
    pub db: u8,
    pub protocol: Protocol,
    pub trusted: bool,
    pub user: Arc<User>,
    /// The generation of the users that the two go by.
    pub generation: u64,
    pub queue: Option<Queue>,
    pub watched: Vec<Watched>,
    pub speech: Speech,
    pub closing: bool,
    /// A command of its transaction found no memory.
    pub full: bool,
    /// The rack keeps more than it may, and the command that runs is not to add anything.
    pub over: bool,
    /// A script of its transaction was stopped for want of this.
    pub unheld: Option<Box<Unheld>>,
    /// What runs is a command that stood aside, and was counted as called when it came.
    pub resumed: bool,
    /// What runs is a command of a script.
    pub scripted: bool,
    /// What it is told while a script keeps its worker.
    pub busy: Option<&'static str>,
    /// When the last command of this turn ended.
    pub since: Option<Instant>,
    /// The command that stands aside.
    pub standing: Option<Box<Standing>>,
    /// The command that another node's server runs.
    pub shipped: Option<Box<Shipped>>,
    pub subscribed: Subscribed,
    /// Its command told of subscriptions.
    pub confirmed: bool,
    pub tracked: Option<Box<Tracked>>,
    pub monitor: Option<Box<Watching>>,
}

impl Session {
    pub fn new(client: Arc<Client>, identity: Identity) -> Self {
        client.labels().user = identity.user.name.clone();
        Self {
            subscribed: Subscribed::new(client.clone()),
            client,
            db: 0,
            protocol: Protocol::Resp2,
            trusted: identity.trusted,
            user: identity.user,
            generation: identity.generation,
            queue: None,
            watched: Vec::new(),
            speech: Speech::On,
            closing: false,
            full: false,
            over: false,
            unheld: None,
            resumed: false,
            scripted: false,
            busy: None,
            since: None,
            standing: None,
            shipped: None,
            confirmed: false,
            tracked: None,
            monitor: None,
        }
    }

    /// What it may send.
    pub fn limits(&self) -> &'static Limits {
        if self.trusted {
            &Limits::FULL
        } else {
            &Limits::STRANGER
        }
    }

    /// RESET: as if just connected.
    pub fn reset(&mut self, identity: Identity) {
        *self.client.labels() = Default::default();
        *self = Self {
            busy: self.busy,
            ..Self::new(self.client.clone(), identity)
        };
    }

    /// Who it is.
    pub fn identity(&self) -> Identity {
        Identity {
            user: self.user.clone(),
            trusted: self.trusted,
            generation: self.generation,
        }
    }

    /// It is somebody else from now on.
    pub fn act_as(&mut self, identity: Identity) {
        self.client.labels().user = identity.user.name.clone();
        self.trusted = identity.trusted;
        self.generation = identity.generation;
        self.user = identity.user;
    }

    pub fn select(&mut self, db: u8) {
        self.db = db;
        self.client.labels().db = db;
    }

    pub fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.client.labels().resp3 = protocol == Protocol::Resp3;
    }
}
