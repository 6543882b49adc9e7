//! Where the clients of a node hear of what happens in the rack.

use std::any::Any;
use std::sync::Arc;

use super::mail::{self, Name, Push};
use super::monitors::Monitors;
use super::registry::{Client, Registry};
use super::shared::Desk;
use super::standing::Queues;
use super::subscriptions::Subscriptions;
use super::tracking::Tracking;
use crate::error::Result;
use crate::memory::Memory;
use crate::store::Store;
use crate::store::bus::{Listener, Message, SubscriptionKind};

/// As long as somebody has this, the node listens to the others.
pub(crate) type Attention = Box<dyn Any + Send>;

/// What the clients need of the store, whatever memory it is in.
pub(crate) trait Rack: Send + Sync {
    fn attend(&self) -> Result<Attention>;
    fn subscribe(&self, kind: SubscriptionKind, name: &[u8], more: i32) -> Result<()>;
    /// The root of a key's bucket: the same for keys that are in one bucket.
    fn bucket(&self, name: &Name) -> usize;
    fn unwatch(&self, name: &Name, still: &dyn Fn() -> bool) -> Result<()>;
    fn hear_all(&self, on: bool) -> Result<()>;
}

impl<M: Memory> Rack for Store<M> {
    fn attend(&self) -> Result<Attention> {
        Ok(Box::new(Store::attend(self)?))
    }

    fn subscribe(&self, kind: SubscriptionKind, name: &[u8], more: i32) -> Result<()> {
        Store::subscribe(self, kind, name, more)
    }

    fn bucket(&self, (_, key): &Name) -> usize {
        self.first().root_of(key)
    }

    fn unwatch(&self, (_, key): &Name, still: &dyn Fn() -> bool) -> Result<()> {
        self.first().unwatch_changes(key, still)
    }

    fn hear_all(&self, on: bool) -> Result<()> {
        Store::hear_all(self, on)
    }
}

/// See the module.
pub(crate) struct Hub {
    pub desks: Arc<Vec<Desk>>,
    pub registry: Arc<Registry>,
    pub rack: Box<dyn Rack>,
    pub queues: Queues,
    pub subscriptions: Subscriptions,
    pub tracking: Tracking,
    pub monitors: Monitors,
}

impl Hub {
    pub fn new(rack: Box<dyn Rack>, desks: Arc<Vec<Desk>>, registry: Arc<Registry>) -> Arc<Self> {
        Arc::new(Hub {
            desks,
            registry,
            rack,
            queues: Queues::default(),
            subscriptions: Subscriptions::default(),
            tracking: Tracking::default(),
            monitors: Monitors::default(),
        })
    }

    /// The node listens until this is dropped.
    pub fn attend(&self) -> Result<Attention> {
        self.rack.attend()
    }

    pub fn push(&self, client: &Client, message: Arc<Push>) {
        mail::push(&self.desks, client, message);
    }
}

impl Listener for Hub {
    fn hear(&self, message: &Message) {
        match message {
            Message::Key { db, key } => {
                let name = (*db, key.clone());
                let awaited = self.queues.changed(&self.desks, &name);
                let tracked = self.tracking.changed(self, &name);
                if !awaited && !tracked {
                    self.tracking.note_useless(name);
                }
            }
            Message::Flush { db } => {
                self.queues.all(&self.desks, *db);
                self.tracking.flushed(self);
            }
            Message::Everything => {
                self.queues.all(&self.desks, None);
                self.tracking.flushed(self);
            }
            Message::Published {
                shard,
                channel,
                payload,
            } => {
                self.subscriptions.published(self, *shard, channel, payload);
            }
            Message::Missed => self.subscriptions.missed(self),
        }
    }

    fn idle(&self) {
        self.tracking.tidy(self);
    }
}
