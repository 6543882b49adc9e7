//! Which of a node's clients have subscribed to what.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hub::{Attention, Hub};
use super::mail::{self, Push};
use super::registry::Client;
use crate::error::Result;
use crate::glob;
use crate::store::bus::SubscriptionKind as Kind;

type Names = HashMap<Vec<u8>, Vec<Arc<Client>>>;

/// The clients of a node by what they have subscribed to.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<Kind, Names>>);

impl Subscriptions {
    fn lock(&self) -> MutexGuard<'_, HashMap<Kind, Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a message to those who have subscribed.
    pub fn published(&self, hub: &Hub, shard: bool, channel: &[u8], payload: &[u8]) {
        let (channel_vec, payload_vec) = (channel.to_vec(), payload.to_vec());
        let mut post = Vec::new();
        {
            let all = self.lock();
            let kind = if shard { Kind::Shard } else { Kind::Channel };
            if let Some(clients) = all.get(&kind).and_then(|names| names.get(channel)) {
                let (channel, payload) = (channel_vec.clone(), payload_vec.clone());
                let message = match shard {
                    true => Push::Shard { channel, payload },
                    false => Push::Message { channel, payload },
                };
                post.push((Arc::new(message), clients.clone()));
            }
            let patterns = all.get(&Kind::Pattern).filter(|_| !shard);
            for (pattern, clients) in patterns.into_iter().flatten() {
                if glob::matches(pattern, channel, false) {
                    let (pattern, channel, payload) =
                        (pattern.clone(), channel_vec.clone(), payload_vec.clone());
                    let message = Push::ByPattern {
                        pattern,
                        channel,
                        payload,
                    };
                    post.push((Arc::new(message), clients.clone()));
                }
            }
        }
        for (message, clients) in post {
            clients
                .iter()
                .for_each(|client| hub.push(client, message.clone()));
        }
    }

    /// Messages were lost: the connections of those who may have wanted them end.
    pub fn missed(&self, hub: &Hub) {
        let all: Vec<_> = self
            .lock()
            .values()
            .flat_map(HashMap::values)
            .flatten()
            .cloned()
            .collect();
        all.iter().for_each(|client| mail::end(&hub.desks, client));
    }

    /// The clients that have subscribed to something for which `may` says no.
    pub fn without_leave(&self, may: impl Fn(&Client, Kind, &[u8]) -> bool) -> Vec<Arc<Client>> {
        let all = self.lock();
        let names = all
            .iter()
            .flat_map(|(kind, names)| names.iter().map(move |(name, who)| (*kind, name, who)));
        names
            .flat_map(|(kind, name, who)| {
                let refused = who.iter().filter(|client| !may(client, kind, name));
                refused.cloned().collect::<Vec<_>>()
            })
            .collect()
    }

    fn add(&self, kind: Kind, name: &[u8], client: &Arc<Client>) {
        let mut all = self.lock();
        all.entry(kind)
            .or_default()
            .entry(name.to_vec())
            .or_default()
            .push(client.clone());
    }

    fn remove(&self, kind: Kind, name: &[u8], client: &Client) {
        let mut all = self.lock();
        let Some(names) = all.get_mut(&kind) else {
            return;
        };
        if let Some(clients) = names.get_mut(name) {
            clients.retain(|other| other.id != client.id);
            if clients.is_empty() {
                names.remove(name);
            }
        }
    }
}

/// What one connection has subscribed to. Ends with it.
pub(crate) struct Subscribed {
    client: Arc<Client>,
    /// While there is something.
    tie: Option<(Arc<Hub>, Attention)>,
    channels: BTreeSet<Vec<u8>>,
    patterns: BTreeSet<Vec<u8>>,
    shards: BTreeSet<Vec<u8>>,
}

impl std::fmt::Debug for Subscribed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Subscribed").field(&self.count()).finish()
    }
}

impl Subscribed {
    pub fn new(client: Arc<Client>) -> Self {
        Subscribed {
            client,
            tie: None,
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            shards: BTreeSet::new(),
        }
    }

    fn names(&mut self, kind: Kind) -> &mut BTreeSet<Vec<u8>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::Shard => &mut self.shards,
        }
    }

    /// All of a kind.
    pub fn all(&mut self, kind: Kind) -> Vec<Vec<u8>> {
        self.names(kind).iter().cloned().collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.channels.len() + self.patterns.len() + self.shards.len()
    }

    /// The number that replies about this kind tell.
    pub fn told(&self, kind: Kind) -> usize {
        match kind {
            Kind::Shard => self.shards.len(),
            Kind::Channel | Kind::Pattern => self.channels.len() + self.patterns.len(),
        }
    }

    pub fn add(&mut self, hub: &Arc<Hub>, kind: Kind, name: &[u8]) -> Result<()> {
        if self.names(kind).contains(name) {
            return Ok(());
        }
        if self.tie.is_none() {
            self.tie = Some((hub.clone(), hub.attend()?));
        }
        hub.subscriptions.add(kind, name, &self.client);
        if let Err(error) = hub.rack.subscribe(kind, name, 1) {
            hub.subscriptions.remove(kind, name, &self.client);
            return Err(error);
        }
        self.names(kind).insert(name.to_vec());
        self.show();
        Ok(())
    }

    pub fn remove(&mut self, kind: Kind, name: &[u8]) {
        if !self.names(kind).remove(name) {
            return;
        }
        if let Some((hub, _)) = &self.tie {
            hub.subscriptions.remove(kind, name, &self.client);
            // Who publishes counts one too many as long as this node lives; nothing else is wrong.
            let _ = hub.rack.subscribe(kind, name, -1);
        }
        if self.count() == 0 {
            self.tie = None;
        }
        self.show();
    }

    /// For CLIENT LIST.
    fn show(&self) {
        let counts = [&self.channels, &self.patterns, &self.shards].map(BTreeSet::len);
        for (shown, count) in self.client.activity.subscribed.iter().zip(counts) {
            shown.store(count as u32, Relaxed);
        }
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
            for name in self.all(kind) {
                self.remove(kind, &name);
            }
        }
    }
}
