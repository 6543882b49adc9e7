//! Streams, queues and channels: what goes through them goes to one client, or to each, in order.
//! Registers, which histories judge (`judge.rs` beside this), do not show that.
//!
//! In each era some clients at every node put values into streams and queues, take them out and
//! publish (`client.rs`); one subscribes (`channels.rs`) and one waits (`waiters.rs`). At the era's
//! end the rack is whole and nobody writes: what is left is looked at, judged (`judge.rs`) and
//! removed.

mod channels;
mod client;
mod judge;
mod record;
#[cfg(test)]
mod tests;
mod waiters;

use self::channels::{Heard, Said, Subscriber};
use self::client::FlowClient;
pub use self::judge::Losses;
use self::judge::{Left, Place};
pub use self::record::Span;
use self::record::{Record, entries, id};
use self::waiters::Waiter;
use super::client::Answer;
use super::insist::Asked;
use crate::failure::Result;
use crate::stop::Stop;
use rackmem_sim::history::Recorder;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

const STREAMS: [&str; 2] = ["stream:0", "stream:1"];
const QUEUES: [&str; 4] = ["queue:0", "queue:1", "sorted:0", "sorted:1"];
const CHANNELS: [&str; 2] = ["channel:0", "channel:1"];
/// The group that reads streams.
const GROUP: &str = "group";
/// Its consumer that reads what nobody has read, in the end.
const LAST: &str = "last";
/// Clients of a node that use streams and queues.
const CLIENTS: usize = 2;
/// How long messages may be on their way.
const PATIENCE: Duration = Duration::from_secs(45);
/// Between two messages that tell subscribers of the end.
const STEP: Duration = Duration::from_millis(100);
/// Entries and elements that are looked at in the end, at most.
const MOST: &str = "1000000";

/// Gives what a group has not delivered to a last consumer; all entries of the stream, and what is
/// pending. In one step: what died with a node may be found to be gone at any part of it.
const WHOLE: &str = "redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM') \
     redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'STREAMS', KEYS[1], '>') \
     return {redis.call('XRANGE', KEYS[1], '-', '+'), \
     redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[3])}";

fn is_stream(place: &str) -> bool {
    place.starts_with("stream:")
}

/// How much went through.
#[derive(Clone, Copy, Default)]
pub struct Flow {
    pub put: u64,
    pub taken: u64,
    pub messages: u64,
}

/// Those of an era.
#[derive(Default)]
pub struct Flows {
    era: usize,
    /// Where nodes are reached: those that come back are elsewhere.
    addrs: Mutex<Vec<SocketAddr>>,
    record: Mutex<Record>,
    said: Mutex<Vec<Said>>,
    heard: Mutex<Vec<Heard>>,
    wrong: Mutex<Vec<String>>,
    /// Tells subscribers and those who wait to give up.
    over: AtomicBool,
    /// Those who have an element, and since when there is one.
    served: AtomicUsize,
    given: OnceLock<Instant>,
    /// Subscribers who have heard the end.
    ended: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where they run.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    pub addrs: &'a [SocketAddr],
    pub recorder: &'a Recorder,
    /// Tells clients that the era is over.
    pub stop: &'a AtomicBool,
    pub seed: u64,
}

/// Ends those who wait and listen, however the scope that they run in ends.
pub struct Over<'a>(pub &'a Flows);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, SeqCst);
    }
}

impl Flows {
    pub fn new(era: usize) -> Self {
        Flows {
            era,
            ..Flows::default()
        }
    }

    /// Starts the clients of all nodes: those that end when told to stop.
    pub fn start<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        around: Around<'s>,
    ) -> Vec<ScopedJoinHandle<'s, ()>> {
        let Around {
            addrs,
            recorder,
            stop,
            seed,
        } = around;
        self.moved(addrs);
        let mut clients = Vec::new();
        for number in 0..CLIENTS * addrs.len() {
            let client = FlowClient {
                number,
                addrs,
                recorder,
                stop,
                random: fastrand::Rng::with_seed(seed ^ (number as u64) << 32),
                era: self.era,
                record: Record::default(),
                said: Vec::new(),
                counted: (0, 0),
            };
            clients.push(scope.spawn(move || {
                let (record, said) = client.run();
                lock(&self.record).extend(record);
                lock(&self.said).extend(said);
            }));
        }
        for node in 0..addrs.len() {
            let subscriber = Subscriber {
                node,
                addrs: &self.addrs,
                recorder,
                stop: &self.over,
                era: self.era,
                ended: &self.ended,
            };
            scope.spawn(move || lock(&self.heard).extend(subscriber.run()));
            let waiter = Waiter {
                node,
                addrs: &self.addrs,
                stop: &self.over,
                era: self.era,
                given: &self.given,
                served: &self.served,
            };
            scope.spawn(move || lock(&self.wrong).extend(waiter.run()));
        }
        clients
    }

    /// Says where nodes are reached now.
    pub fn moved(&self, addrs: &[SocketAddr]) {
        addrs.clone_into(&mut lock(&self.addrs));
    }

    /// When the rack is whole and all other clients have ended: serves those who wait,
    /// and tells subscribers of the end. `false`: told to stop.
    pub fn finish(&self, addrs: &[SocketAddr], stop: &Stop) -> Result<bool> {
        let nodes = addrs.len();
        for node in 0..nodes {
            // At another node.
            let at = (node + 1) % nodes;
            let gift = waiters::gift(self.era, node);
            let words = gift.iter().map(String::as_str).collect();
            if !Asked::new(at, addrs[at]).insist(&[words], stop, |_, _| Ok(()))? {
                return Ok(false);
            }
        }
        let since = *self.given.get_or_init(Instant::now);
        let served = |flows: &Flows| flows.served.load(SeqCst) + lock(&flows.wrong).len() >= nodes;
        while self.ended.load(SeqCst) < nodes || !served(self) {
            if since.elapsed() > PATIENCE {
                let deaf = nodes - self.ended.load(SeqCst).min(nodes);
                if deaf > 0 {
                    let wrong = format!("{deaf} subscribers do not hear of the end of the era");
                    lock(&self.wrong).push(wrong);
                }
                break;
            }
            for (node, &addr) in addrs.iter().enumerate() {
                let end = format!("{}{}.{node}", channels::END, self.era);
                let words = vec!["PUBLISH", CHANNELS[0], &end];
                if !Asked::new(node, addr).insist(&[words], stop, |_, _| Ok(()))? {
                    return Ok(false);
                }
            }
            if !stop.sleep(STEP) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Looks at what is left, removes it, and says what is wrong. `None`: told to stop.
    pub fn judge(
        self,
        addrs: &[SocketAddr],
        losses: Losses<'_>,
        stop: &Stop,
    ) -> Result<Option<(Flow, Vec<String>)>> {
        let into =
            |mutex: Mutex<Record>| mutex.into_inner().unwrap_or_else(PoisonError::into_inner);
        let record = into(self.record);
        let (said, heard) = (lock(&self.said), lock(&self.heard));
        let mut wrong = lock(&self.wrong).clone();
        wrong.extend(channels::judge(&said, &heard));
        // Any node says the same: another one in each era.
        let at = self.era % addrs.len();
        let mut node = Asked::new(at, addrs[at]);
        for place in STREAMS.iter().chain(&QUEUES) {
            let Some(left) = left(&mut node, place, stop)? else {
                return Ok(None);
            };
            let place = Place::new(place, &record, &left, losses);
            wrong.extend(place.judge());
        }
        let mut rest: Vec<&str> = STREAMS.iter().chain(&QUEUES).copied().collect();
        let waited: Vec<String> = (0..addrs.len())
            .flat_map(|node| [waiters::key(self.era, node), format!("waited:{node}")])
            .collect();
        rest.insert(0, "DEL");
        rest.extend(waited.iter().map(String::as_str));
        if !node.insist(&[rest], stop, |_, _| Ok(()))? {
            return Ok(None);
        }
        let messages = heard.iter().map(Heard::count).sum::<usize>() as u64;
        let flow = Flow {
            put: record
                .puts
                .iter()
                .filter(|put| put.span.ended.is_some())
                .count() as u64,
            taken: record.taken.len() as u64,
            messages,
        };
        Ok(Some((flow, wrong)))
    }
}

/// What is in a place. `None`: told to stop.
fn left(node: &mut Asked, place: &str, stop: &Stop) -> Result<Option<Left>> {
    let command = match place {
        _ if is_stream(place) => vec!["EVAL", WHOLE, "1", place, GROUP, LAST, MOST],
        _ if client::is_sorted(place) => vec!["ZRANGE", place, "0", "-1"],
        _ => vec!["LRANGE", place, "0", "-1"],
    };
    let mut told = Answer::Nil;
    let done = node.insist(&[command], stop, |_, heard| {
        told = heard.unwrap_or(Answer::Nil);
        Ok(())
    })?;
    if !done {
        return Ok(None);
    }
    let mut left = Left::default();
    if !is_stream(place) {
        let values = told.items().iter().filter_map(Answer::text);
        left.values = values.map(|value| (None, value.to_owned())).collect();
        return Ok(Some(left));
    }
    if let [there, pending] = told.items() {
        let there = entries(there).into_iter();
        left.values = there.map(|(id, value)| (Some(id), value)).collect();
        for row in pending.items() {
            let [name, by, _, Answer::Int(times)] = row.items() else {
                continue;
            };
            if let (Some(id), Some(by)) = (name.text().and_then(id), by.text()) {
                left.pending.insert(id, (by.to_owned(), *times));
            }
        }
    }
    Ok(Some(left))
}
