//! Publishing, and asking who has subscribed.

use std::collections::{BTreeMap, BTreeSet};

use super::directory::{Kind, Names};
use super::message::{Listener, Message};
use super::news::News;
use crate::error::Result;
use crate::glob;
use crate::memory::Memory;
use crate::store::core::Core;
use crate::store::{Db, Store};
use std::sync::Weak;

/// Who gets a message: how many clients, and their nodes as bits.
#[derive(Clone, Copy, Debug, Default)]
struct Audience {
    clients: u64,
    nodes: u64,
}

fn audience(names: &Names, shard: bool, channel: &[u8]) -> u64 {
    let kind = if shard { Kind::Shard } else { Kind::Channel };
    let named = names.get(&kind).and_then(|all| all.get(channel));
    let patterns = names.get(&Kind::Pattern).filter(|_| !shard);
    let matching = patterns.into_iter().flatten();
    let matching = matching.filter(|(pattern, _)| glob::matches(pattern, channel, false));
    named
        .into_iter()
        .chain(matching.map(|(_, count)| count))
        .map(|n| u64::from(*n))
        .sum()
}

impl<M: Memory> Core<M> {
    fn audience(&self, shard: bool, channel: &[u8]) -> Result<Audience> {
        let of = |node: usize, names: &Names| (node, audience(names, shard, channel));
        let mut sum = Audience::default();
        for (node, clients) in self.subscriptions(of)? {
            sum.clients += clients;
            sum.nodes |= u64::from(clients != 0) << node;
        }
        Ok(sum)
    }

    /// What to tell whom about a message; how many clients will get it.
    pub fn published(&self, shard: bool, channel: &[u8], payload: &[u8]) -> Result<(u64, News)> {
        let Audience { clients, nodes } = self.audience(shard, channel)?;
        let (channel, payload) = match clients {
            0 => (Vec::new(), Vec::new()),
            _ => (channel.to_vec(), payload.to_vec()),
        };
        let message = Message::Published {
            shard,
            channel,
            payload,
        };
        Ok((clients, News { nodes, message }))
    }
}

impl<M: Memory> Db<'_, M> {
    /// Sends a message to all clients of the rack that have subscribed to this channel, or, within
    /// a transaction, as soon as that has taken effect. How many they are.
    pub(crate) fn publish(&self, shard: bool, channel: &[u8], payload: &[u8]) -> Result<u64> {
        let (clients, news) = self.core.published(shard, channel, payload)?;
        match self.scope.0 {
            _ if clients == 0 => {}
            Some(held) => held.news.borrow_mut().push(news),
            None => self.core.tell(news.nodes, &news.message),
        }
        Ok(clients)
    }
}

impl<M: Memory> Store<M> {
    /// `listener` hears what concerns this node, as long as it is there.
    pub(crate) fn listen(&self, listener: Weak<dyn Listener>) {
        self.core.bus.add_listener(listener);
    }

    /// So many more clients of this node have subscribed, or fewer.
    pub(crate) fn subscribe(&self, kind: Kind, name: &[u8], more: i32) -> Result<()> {
        self.core.subscribe(kind, name, more)
    }

    /// The names to which clients of the rack have subscribed, if they match a pattern.
    pub(crate) fn subscribed(
        &self,
        kind: Kind,
        pattern: Option<&[u8]>,
    ) -> Result<BTreeSet<Vec<u8>>> {
        let fits = |name: &&Vec<u8>| pattern.is_none_or(|p| glob::matches(p, name, false));
        let of = |_, names: &Names| {
            let all = names.get(&kind).into_iter().flat_map(BTreeMap::keys);
            all.filter(fits).cloned().collect::<Vec<_>>()
        };
        Ok(self.core.subscriptions(of)?.into_iter().flatten().collect())
    }

    /// How many clients of the rack have subscribed to each of these.
    pub(crate) fn subscribers(&self, kind: Kind, names: &[&[u8]]) -> Result<Vec<u64>> {
        let mut sums = vec![0; names.len()];
        self.core.subscriptions(|_, known| {
            for (sum, name) in sums.iter_mut().zip(names) {
                let count = known.get(&kind).and_then(|all| all.get(*name));
                *sum += u64::from(count.copied().unwrap_or(0));
            }
        })?;
        Ok(sums)
    }

    /// Whether this node hears of every change of a key in the rack.
    pub(crate) fn hear_all(&self, on: bool) -> Result<()> {
        self.core.hear_all(on)
    }

    /// The classes of keyspace events that are published in the whole rack, as bits.
    pub(crate) fn events(&self) -> Result<u64> {
        self.core.events()
    }

    /// Changes them.
    pub(crate) fn set_events(&self, classes: u64) -> Result<()> {
        self.core.set_events(classes)
    }
}
