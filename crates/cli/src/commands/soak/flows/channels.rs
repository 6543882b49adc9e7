//! Subscribers, and what they are told.
//!
//! A message reaches a subscriber once at most, in the order of the client that published it. If
//! one is lost, the subscriber's connection ends: so one whose connection goes on has heard all
//! that was published after it had subscribed.

use super::super::client::{Answer, Client};
use super::record::Span;
use super::{CHANNELS, lock};
use rackmem_sim::history::Recorder;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Between two looks whether to stop.
const STEP: Duration = Duration::from_millis(50);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_millis(40);
/// What a message begins with that ends an era; the node that publishes it follows.
pub const END: &str = "end.";

/// A message.
#[derive(Clone, Debug)]
pub struct Said {
    /// The connection that publishes it.
    pub by: String,
    /// Grows with each message of a connection.
    pub number: u64,
    pub span: Span,
}

impl Said {
    pub fn text(&self) -> String {
        format!("{}/{}", self.by, self.number)
    }
}

/// What a connection has heard.
pub struct Heard {
    node: usize,
    /// Since when it hears all, on the recorder's clock.
    since: u64,
    messages: Vec<String>,
    /// It has heard the end from all nodes.
    whole: bool,
}

impl Heard {
    /// Of a subscriber that hears all from a time on.
    pub fn new(node: usize, since: u64, messages: Vec<String>, whole: bool) -> Self {
        Heard {
            node,
            since,
            messages,
            whole,
        }
    }

    /// How many messages it has heard.
    pub fn count(&self) -> usize {
        self.messages.len()
    }
}

pub struct Subscriber<'a> {
    pub node: usize,
    pub addrs: &'a Mutex<Vec<SocketAddr>>,
    pub recorder: &'a Recorder,
    pub stop: &'a AtomicBool,
    pub era: usize,
    /// Those who have heard the end.
    pub ended: &'a AtomicUsize,
}

impl Subscriber<'_> {
    /// Listens until it has heard the end or is told to stop.
    pub fn run(self) -> Vec<Heard> {
        let mut all = Vec::new();
        while !self.stop.load(SeqCst) {
            let addr = lock(self.addrs)[self.node];
            let Ok(mut client) = Client::connect(addr) else {
                std::thread::sleep(PAUSE);
                continue;
            };
            if self.subscribe(&mut client).is_err() {
                std::thread::sleep(PAUSE);
                continue;
            }
            let mut heard = Heard::new(self.node, self.recorder.now(), Vec::new(), false);
            // What it has heard until the connection breaks counts.
            let _ = self.listen(&mut client, &mut heard);
            let whole = heard.whole;
            all.push(heard);
            if whole {
                self.ended.fetch_add(1, SeqCst);
                break;
            }
        }
        all
    }

    /// Every second one by a pattern.
    fn subscribe(&self, client: &mut Client) -> io::Result<()> {
        let names: &[&str] = match self.node % 2 {
            0 => &CHANNELS,
            _ => &["channel:*"],
        };
        let command = ["SUBSCRIBE", "PSUBSCRIBE"][self.node % 2];
        client.send([&[&[command], names].concat()[..]])?;
        for _ in names {
            if let Answer::Error(error) = client.answer()? {
                return Err(io::Error::other(error));
            }
        }
        Ok(())
    }

    fn listen(&self, client: &mut Client, heard: &mut Heard) -> io::Result<()> {
        let mut ends: HashSet<String> = HashSet::new();
        while !self.stop.load(SeqCst) {
            if !client.is_told(STEP)? {
                continue;
            }
            let answer = client.answer()?;
            let Some(text) = answer.items().last().and_then(Answer::text) else {
                continue;
            };
            let Some(end) = text.strip_prefix(END) else {
                heard.messages.push(text.to_owned());
                continue;
            };
            let (era, node) = end.split_once('.').unwrap_or_default();
            if era.parse() == Ok(self.era) {
                ends.insert(node.to_owned());
            }
            if ends.len() == lock(self.addrs).len() {
                heard.whole = true;
                break;
            }
        }
        Ok(())
    }
}

/// What is wrong with what was heard.
pub fn judge(said: &[Said], heard: &[Heard]) -> Option<String> {
    let mut by: BTreeMap<&str, BTreeMap<u64, &Said>> = BTreeMap::new();
    for said in said {
        by.entry(&said.by).or_default().insert(said.number, said);
    }
    heard.iter().find_map(|heard| {
        let wrong = wrong_with(&by, heard)?;
        Some(format!("a subscriber of node {}: {wrong}", heard.node))
    })
}

fn wrong_with(by: &BTreeMap<&str, BTreeMap<u64, &Said>>, heard: &Heard) -> Option<String> {
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    let mut all: HashSet<(&str, u64)> = HashSet::new();
    for text in &heard.messages {
        let (who, number) = text.split_once('/')?;
        let number: u64 = number.parse().ok()?;
        if !by.get(who).is_some_and(|said| said.contains_key(&number)) {
            return Some(format!("nobody has published {text}"));
        }
        if let Some(before) = last.insert(who, number).filter(|before| *before >= number) {
            return Some(format!("{text} after number {before}"));
        }
        all.insert((who, number));
    }
    for (who, said) in by {
        let until = match heard.whole {
            true => u64::MAX,
            false => last.get(who).copied().unwrap_or(0),
        };
        let missed = said.values().find(|it| {
            let due = it.span.begun > heard.since && it.span.ended.is_some() && it.number <= until;
            due && !all.contains(&(*who, it.number))
        });
        if let Some(missed) = missed {
            let whole = if heard.whole {
                "to the end"
            } else {
                "and what came later"
            };
            return Some(format!(
                "it has not heard {}, {whole} it has",
                missed.text()
            ));
        }
    }
    None
}
