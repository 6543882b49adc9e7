//! What other threads leave for a connection: messages to push, reasons to look again at a command
//! that stands aside, and what has become of one that was sent to another node.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::registry::Client;
use super::shared::Desk;
use super::shipping::Answer;
use crate::resp::reply::{Protocol, Reply};

/// Bytes of messages that wait for a connection; one that lets more come up is ended.
const LIMIT: usize = 32 << 20;
/// The channel on which clients that speak version 2 hear of keys that others have changed.
const INVALIDATE: &[u8] = b"__redis__:invalidate";

/// A key of a database.
pub(crate) type Name = (u8, Vec<u8>);

/// Something a client is told that it has not asked for.
#[derive(Debug)]
pub(crate) enum Push {
    Message {
        channel: Vec<u8>,
        payload: Vec<u8>,
    },
    ByPattern {
        pattern: Vec<u8>,
        channel: Vec<u8>,
        payload: Vec<u8>,
    },
    Shard {
        channel: Vec<u8>,
        payload: Vec<u8>,
    },
    /// A key that it has read has changed; `None`: any may have.
    Invalidate(Option<Vec<u8>>),
    /// The same of a key with a prefix of which it hears. Those of a group, which is a client and
    /// one of its prefixes, are said together, and each of them once.
    Changed {
        group: (u64, usize),
        key: Vec<u8>,
    },
    /// A command that ran: see [`super::monitors`].
    Shown(String),
    /// The client that should hear of changed keys is gone.
    Broken(u64),
}

impl Push {
    fn size(&self) -> usize {
        let parts = match self {
            Push::Message { channel, payload } | Push::Shard { channel, payload } => {
                channel.len() + payload.len()
            }
            Push::ByPattern {
                pattern,
                channel,
                payload,
            } => pattern.len() + channel.len() + payload.len(),
            Push::Invalidate(key) => key.as_ref().map_or(0, Vec::len),
            Push::Changed { key, .. } => key.len(),
            Push::Shown(line) => line.len(),
            Push::Broken(_) => 0,
        };
        parts + size_of::<Self>()
    }

    /// Says it, in the version that the client speaks. `subscribed`: it expects messages.
    pub fn say(&self, reply: &mut Reply<'_>, subscribed: bool) {
        let words = |reply: &mut Reply<'_>, words: &[&[u8]]| {
            reply.push(words.len());
            words.iter().for_each(|word| reply.bulk(word));
        };
        match self {
            Push::Message { channel, payload } => words(reply, &[b"message", channel, payload]),
            Push::Shard { channel, payload } => words(reply, &[b"smessage", channel, payload]),
            Push::ByPattern {
                pattern,
                channel,
                payload,
            } => {
                words(reply, &[b"pmessage", pattern, channel, payload]);
            }
            Push::Invalidate(Some(key)) | Push::Changed { key, .. } => {
                invalidate(reply, subscribed, Some(&[key]));
            }
            Push::Invalidate(None) => invalidate(reply, subscribed, None),
            Push::Shown(line) => reply.simple(line),
            Push::Broken(id) if reply.protocol == Protocol::Resp3 => {
                reply.push(2);
                reply.bulk(b"tracking-redir-broken");
                reply.int(*id as i64);
            }
            Push::Broken(_) => {}
        }
    }
}

/// Says that keys have changed; `None`: any may have.
fn invalidate(reply: &mut Reply<'_>, subscribed: bool, keys: Option<&[&[u8]]>) {
    match reply.protocol {
        Protocol::Resp3 => {
            reply.push(2);
            reply.bulk(b"invalidate");
        }
        Protocol::Resp2 if !subscribed => return,
        Protocol::Resp2 => {
            reply.push(3);
            reply.bulk(b"message");
            reply.bulk(INVALIDATE);
        }
    }
    match keys {
        Some(keys) => {
            reply.array(keys.len());
            keys.iter().for_each(|key| reply.bulk(key));
        }
        None => reply.nil(),
    }
}

/// Says messages, in their order.
pub(crate) fn say_all(pushes: &VecDeque<Arc<Push>>, reply: &mut Reply<'_>, subscribed: bool) {
    let pushes: Vec<&Push> = pushes.iter().map(Arc::as_ref).collect();
    let group = |push: &Push| match push {
        Push::Changed { group, .. } => Some(*group),
        _ => None,
    };
    for some in pushes.chunk_by(|a, b| group(a).is_some() && group(b).is_some()) {
        let mut groups: Vec<_> = some.iter().filter_map(|push| group(push)).collect();
        if groups.is_empty() {
            some.iter().for_each(|push| push.say(reply, subscribed));
        }
        groups.sort_unstable();
        groups.dedup();
        for one in groups {
            let mut said = HashSet::new();
            let keys: Vec<&[u8]> = some
                .iter()
                .filter_map(|push| match push {
                    Push::Changed { group, key } => (*group == one).then_some(&key[..]),
                    _ => None,
                })
                .filter(|key| said.insert(*key))
                .collect();
            invalidate(reply, subscribed, Some(&keys));
        }
    }
}

/// Why a command that stands aside is run again.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    /// Keys that have changed. Who gets this passes it on to the next who waits for the key.
    pub batons: Vec<Name>,
    /// Anything may have changed.
    pub look: bool,
    /// It ends: with an error, or as if its time were over.
    pub unblock: Option<bool>,
}

#[derive(Debug, Default)]
struct Inner {
    pushes: VecDeque<Arc<Push>>,
    bytes: usize,
    wakes: Wakes,
    /// One command at a time is sent.
    answer: Option<Answer>,
    /// Its worker knows that there is something.
    rung: bool,
}

/// Where a connection's mail lies until its worker gets to it.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    inner: Mutex<Inner>,
    /// There are messages.
    pub has_pushes: AtomicBool,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a baton back. Whether it was there.
    pub fn take_baton(&self, name: &Name) -> bool {
        let mut inner = self.lock();
        let before = inner.wakes.batons.len();
        inner.wakes.batons.retain(|other| other != name);
        inner.wakes.batons.len() != before
    }

    /// The messages, in their order.
    pub fn pushes(&self) -> VecDeque<Arc<Push>> {
        let mut inner = self.lock();
        (inner.bytes, inner.rung) = (0, false);
        self.has_pushes.store(false, Relaxed);
        std::mem::take(&mut inner.pushes)
    }

    /// What has become of the command that was sent.
    pub fn answer(&self, answer: Answer) {
        self.lock().answer = Some(answer);
    }

    pub fn take_answer(&self) -> Option<Answer> {
        self.lock().answer.take()
    }

    pub fn wakes(&self) -> Wakes {
        std::mem::take(&mut self.lock().wakes)
    }
}

/// Leaves a message for a client.
pub(crate) fn push(desks: &[Desk], client: &Client, message: Arc<Push>) {
    let mut inner = client.mail.lock();
    inner.bytes += message.size();
    if inner.bytes > LIMIT {
        inner.pushes.clear();
        drop(inner);
        client.kill();
        return ring(desks, client, false);
    }
    inner.pushes.push_back(message);
    client.mail.has_pushes.store(true, Relaxed);
    if !std::mem::replace(&mut inner.rung, true) {
        drop(inner);
        ring(desks, client, false);
    }
}

/// Lets a client's command that stands aside run again.
pub(crate) fn wake(desks: &[Desk], client: &Client, f: impl FnOnce(&mut Wakes)) {
    let rung = {
        let wakes = &mut client.mail.lock().wakes;
        let rung = !wakes.batons.is_empty() || wakes.look || wakes.unblock.is_some();
        f(wakes);
        rung
    };
    if !rung {
        ring(desks, client, true);
    }
}

/// Ends a connection.
pub(crate) fn end(desks: &[Desk], client: &Client) {
    client.kill();
    ring(desks, client, false);
}

fn ring(desks: &[Desk], client: &Client, urgent: bool) {
    // One that has no seat yet looks into its box when it gets it.
    if let Some((worker, place)) = client.seat.get() {
        desks[*worker].call(*place, client.id, urgent);
    }
}
