//! A client that puts values into streams and queues and takes them out again, at every node.

use super::super::client::{Answer, Client};
use super::channels::Said;
use super::record::{Ack, Id, Put, Record, Span, Taken, entries, id};
use super::{CHANNELS, GROUP, QUEUES, STREAMS, is_stream};
use rackmem_sim::history::Recorder;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Pause after a failure, which lasts.
const PAUSE: Duration = Duration::from_millis(40);
/// Pause between operations.
const BREATH: Duration = Duration::from_millis(1);
/// Entries that a consumer asks for at a time, at most.
const MOST: usize = 3;
/// Bytes of a long value.
const LONG: usize = 700;

pub struct FlowClient<'a> {
    pub number: usize,
    /// Where nodes are reached; clients of one that is dead go on to the next.
    pub addrs: &'a [SocketAddr],
    pub recorder: &'a Recorder,
    pub stop: &'a AtomicBool,
    pub random: fastrand::Rng,
    /// Makes values of all eras differ.
    pub era: usize,
    pub record: Record,
    pub said: Vec<Said>,
    /// Values so far, and connections.
    pub counted: (u64, u64),
}

impl FlowClient<'_> {
    /// Runs it until told to stop: what it has recorded.
    pub fn run(mut self) -> (Record, Vec<Said>) {
        let (mut client, mut at) = (None, self.number);
        while !self.stop.load(Relaxed) {
            let Some(connection) = &mut client else {
                client = Client::connect(self.addrs[at % self.addrs.len()]).ok();
                self.counted.1 += 1;
                if client.is_none() {
                    at += 1;
                    std::thread::sleep(PAUSE);
                }
                continue;
            };
            match self.step(connection) {
                Ok(true) => std::thread::sleep(BREATH),
                Ok(false) => std::thread::sleep(PAUSE),
                Err(_) => client = None,
            }
        }
        (self.record, self.said)
    }

    /// Whether it was answered, and not with an error.
    fn step(&mut self, client: &mut Client) -> io::Result<bool> {
        let stream = STREAMS[self.random.usize(..STREAMS.len())];
        let queue = QUEUES[self.random.usize(..QUEUES.len())];
        match self.random.u8(..100) {
            0..22 => self.put(client, stream),
            22..45 => self.read(client, stream),
            45..65 => self.put(client, queue),
            65..85 => self.pop(client, queue),
            _ => self.publish(client),
        }
    }

    fn value(&mut self) -> String {
        self.counted.0 += 1;
        let value = format!("{}.{}.{}", self.era, self.number, self.counted.0);
        match self.random.u8(..100) {
            0..10 => format!("{value}.{}", "x".repeat(LONG)),
            _ => value,
        }
    }

    fn call(&self, client: &mut Client, words: &[&str]) -> (Span, io::Result<Answer>) {
        let begun = self.recorder.now();
        let answer = client.call(words);
        let done = !matches!(answer, Err(_) | Ok(Answer::Error(_)));
        let ended = done.then(|| self.recorder.now());
        (Span { begun, ended }, answer)
    }

    fn put(&mut self, client: &mut Client, place: &str) -> io::Result<bool> {
        let value = self.value();
        // A score that grows as time does: what is put in later has a higher one.
        let begun = self.recorder.now();
        let score = begun.to_string();
        let words: &[&str] = match place {
            _ if is_stream(place) => &["XADD", place, "*", "value", &value],
            _ if is_sorted(place) => &["ZADD", place, &score, &value],
            _ => &["RPUSH", place, &value],
        };
        let (span, answer) = self.call(client, words);
        let span = Span { begun, ..span };
        let id = answer.as_ref().ok().and_then(Answer::text).and_then(id);
        self.record.puts.push(Put {
            place: place.to_owned(),
            value,
            span,
            id,
        });
        Ok(!matches!(answer?, Answer::Error(_)))
    }

    fn took(&mut self, place: &str, value: &str, span: Span, id: Option<Id>) {
        self.record.taken.push(Taken {
            place: place.to_owned(),
            value: value.to_owned(),
            span,
            id,
            by: self.number.to_string(),
        });
    }

    /// Takes what is next in a queue, or in another one if it is of the same kind; waits for it.
    fn pop(&mut self, client: &mut Client, queue: &str) -> io::Result<bool> {
        let wait = ["0.02", "0.1", "0.3"][self.random.usize(..3)];
        let same = |other: &&&str| **other != queue && is_sorted(other) == is_sorted(queue);
        let other = QUEUES.iter().find(same).copied().unwrap_or(queue);
        let words: &[&str] = match (is_sorted(queue), self.random.u8(..3)) {
            (true, 0) => &["BZMPOP", wait, "1", queue, "MIN"],
            (true, _) => &["BZPOPMIN", queue, other, wait],
            (false, 0) => &["BLMPOP", wait, "2", queue, other, "LEFT"],
            (false, _) => &["BLPOP", queue, other, wait],
        };
        let (span, answer) = self.call(client, words);
        if span.ended.is_none() {
            // From either of them.
            for place in [queue, other] {
                self.record.asked.push((place.to_owned(), 1));
            }
            return answer.map(|_| false);
        }
        let answer = answer?;
        if let [place, first, ..] = answer.items() {
            // BLMPOP: a list of elements; BZMPOP: one of pairs.
            let inner = first.items().first();
            let value = match inner {
                None => first.text(),
                Some(inner) => inner.text().or_else(|| inner.items().first()?.text()),
            };
            if let (Some(place), Some(value)) = (place.text(), value) {
                self.took(place, value, span, None);
            }
        }
        Ok(true)
    }

    /// Reads new entries as a consumer of the group, and is done with most of them.
    fn read(&mut self, client: &mut Client, stream: &str) -> io::Result<bool> {
        let me = self.number.to_string();
        let count = self.random.usize(1..=MOST);
        let wait = ["BLOCK", "50"];
        let head = [["XREADGROUP", "GROUP"], [GROUP, &me]].concat();
        let tail = ["COUNT", &count.to_string(), "STREAMS", stream, ">"];
        let waits = if self.random.bool() { &wait[..] } else { &[] };
        let (span, answer) = self.call(client, &[&head[..], waits, &tail].concat());
        if let Ok(Answer::Error(error)) = &answer
            && error.contains("NOGROUP")
        {
            // The stream is new; somebody else may be faster.
            client.call(&["XGROUP", "CREATE", stream, GROUP, "0", "MKSTREAM"])?;
            return Ok(true);
        }
        if span.ended.is_none() {
            self.record.asked.push((stream.to_owned(), count));
            return answer.map(|_| false);
        }
        let answer = answer?;
        let of_stream = answer.items().first().and_then(|pair| pair.items().get(1));
        let new = of_stream.map(entries).unwrap_or_default();
        // All of them, whatever becomes of the connection.
        for (id, value) in &new {
            self.took(stream, value, span, Some(*id));
        }
        for (id, value) in new {
            // Of ten it keeps three, and says of some twice that it is done with them.
            let times = [0, 0, 0, 1, 1, 1, 1, 1, 2, 2][self.random.usize(..10)];
            for _ in 0..times {
                let id = format!("{}-{}", id.0, id.1);
                let (_, answer) = self.call(client, &["XACK", stream, GROUP, &id]);
                let count = match answer {
                    Ok(Answer::Int(count)) => Some(count),
                    _ => None,
                };
                self.record.acks.push(Ack {
                    place: stream.to_owned(),
                    value: value.clone(),
                    count,
                });
                answer?;
            }
        }
        Ok(true)
    }

    fn publish(&mut self, client: &mut Client) -> io::Result<bool> {
        self.counted.0 += 1;
        let channel = CHANNELS[self.random.usize(..CHANNELS.len())];
        let said = Said {
            by: format!("{}.{}.{}", self.era, self.number, self.counted.1),
            number: self.counted.0,
            span: Span {
                begun: 0,
                ended: None,
            },
        };
        let (span, answer) = self.call(client, &["PUBLISH", channel, &said.text()]);
        self.said.push(Said { span, ..said });
        Ok(!matches!(answer?, Answer::Error(_)))
    }
}

/// Whether a queue is a sorted set, and not a list.
pub fn is_sorted(queue: &str) -> bool {
    queue.starts_with("sorted:")
}
