//! Clients that read and write few keys at every node, and record what they are told.

use super::client::{Answer, Client};
use super::flows::Span;
use super::shape::Shape;
use rackmem_sim::history::{Call, ClientLog, Recorder, Reply};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Pause after a failure: it lasts, and each may count as an operation of unknown outcome.
const PAUSE: Duration = Duration::from_millis(40);
/// Pause between operations, so that judging keeps up with recording.
const BREATH: Duration = Duration::from_micros(300);
/// Keys on which clients meet when there are more.
pub const HOT: usize = 32;
/// Bytes that make a value too long for its page.
const LONG: usize = 1500;
/// Of so many operations one empties all keys, if they are few:
/// many would hardly ever have a value again.
const FLUSH: u32 = 2000;

/// What became of operations.
#[derive(Default)]
pub struct Counts {
    pub done: AtomicU64,
    pub unknown: AtomicU64,
    /// Of those that are done, how many emptied all keys.
    pub flushes: AtomicU64,
    /// When they were asked for and answered, on the recorder's clock.
    pub flush_spans: Mutex<Vec<Span>>,
    /// Answered with NODELOST.
    pub lost: AtomicU64,
    /// When the last one was done, on the recorder's clock.
    pub last_done: AtomicU64,
}

/// A client: writes and reads until told to stop.
pub struct Load<'a> {
    pub number: usize,
    /// Where nodes are reached; the clients of one that is dead go on to the next.
    pub addrs: &'a [SocketAddr],
    pub keys: &'a [String],
    pub recorder: &'a Recorder,
    pub counts: &'a Counts,
    pub stop: &'a AtomicBool,
    pub random: fastrand::Rng,
    /// Makes values of all eras differ.
    pub era: usize,
}

impl Load<'_> {
    /// Runs it.
    pub fn run(mut self) {
        let mut log = self.recorder.client(self.number as u32);
        let (mut client, mut at, mut written) = (None, self.number, 0u64);
        while !self.stop.load(Relaxed) {
            let Some(connection) = &mut client else {
                client = Client::connect(self.addrs[at % self.addrs.len()]).ok();
                if client.is_none() {
                    at += 1;
                    std::thread::sleep(PAUSE);
                }
                continue;
            };
            if self.keys.len() <= HOT && self.random.u32(..FLUSH) == 0 {
                match self.flush(&mut log, connection) {
                    Step::Broken => client = None,
                    Step::Full => return,
                    Step::Done | Step::Refused => {}
                }
                continue;
            }
            let key = &self.keys[self.pick()];
            let value = format!("{}.{}.{written}", self.era, self.number);
            let call = match self.random.u8(..100) {
                0..50 => Call::Get,
                50..80 => Call::Set { value },
                80..90 => Call::Swap { value },
                _ => Call::Del,
            };
            written += 1;
            let long = self.random.u8(..100) < 15;
            match self.step(&mut log, connection, key, call, long) {
                Step::Done => std::thread::sleep(BREATH),
                Step::Refused => std::thread::sleep(PAUSE),
                Step::Broken => client = None,
                Step::Full => return,
            }
        }
    }

    /// Any key; of many, every other time one of a few, or clients would hardly ever meet.
    fn pick(&mut self) -> usize {
        let all = self.keys.len();
        let few = all > HOT && self.random.bool();
        self.random.usize(..if few { HOT } else { all })
    }

    /// Empties all keys, which happens at one moment: to each key, once.
    fn flush(&self, log: &mut ClientLog<'_>, client: &mut Client) -> Step {
        let begun = self.keys.iter().map(|key| log.begin(key, Call::Clear));
        let Ok(tickets) = begun.collect::<Result<Vec<_>, _>>() else {
            return Step::Full;
        };
        let begun = self.recorder.now();
        let answer = client.call(&["FLUSHALL"]);
        let answer = answer.map(|answer| understood(&Call::Clear, answer));
        let ended = matches!(answer, Ok(Ok(_))).then(|| self.recorder.now());
        let spans = self.counts.flush_spans.lock();
        let mut spans = spans.unwrap_or_else(PoisonError::into_inner);
        spans.push(Span { begun, ended });
        drop(spans);
        match answer {
            Ok(Ok(reply)) => {
                for ticket in tickets {
                    log.ok(ticket, reply.clone());
                }
                self.counts.done.fetch_add(1, Relaxed);
                self.counts.flushes.fetch_add(1, Relaxed);
                Step::Done
            }
            unknown => {
                self.counts.unknown.fetch_add(1, Relaxed);
                match unknown {
                    Ok(_) => Step::Refused,
                    Err(_) => Step::Broken,
                }
            }
        }
    }

    fn step(
        &self,
        log: &mut ClientLog<'_>,
        client: &mut Client,
        key: &str,
        call: Call,
        long: bool,
    ) -> Step {
        let Ok(ticket) = log.begin(key, call.clone()) else {
            return Step::Full;
        };
        match perform(client, key, &call, long) {
            Ok(Ok(reply)) => {
                log.ok(ticket, reply);
                self.counts.done.fetch_add(1, Relaxed);
                self.counts
                    .last_done
                    .fetch_max(self.recorder.now(), Relaxed);
                Step::Done
            }
            Ok(Err(error)) => {
                let lost = error.starts_with("NODELOST");
                self.counts.lost.fetch_add(u64::from(lost), Relaxed);
                // A read that failed has not happened; a write may have.
                match call {
                    Call::Get => log.fail(ticket),
                    _ => _ = self.counts.unknown.fetch_add(1, Relaxed),
                }
                Step::Refused
            }
            Err(_) => {
                self.counts.unknown.fetch_add(1, Relaxed);
                Step::Broken
            }
        }
    }
}

enum Step {
    Done,
    Refused,
    Broken,
    Full,
}

/// Does an operation: what was answered, or the error that was.
pub fn perform(
    client: &mut Client,
    key: &str,
    call: &Call,
    long: bool,
) -> std::io::Result<Result<Reply, String>> {
    let words = Shape::of(key).command(key, call, long);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = client.call(&words)?;
    Ok(understood(call, answer))
}

/// What an answer says of an operation.
pub fn understood(call: &Call, answer: Answer) -> Result<Reply, String> {
    let reply = match (call, answer) {
        (_, Answer::Error(error)) => return Err(error),
        (Call::Set { .. } | Call::Clear, Answer::Text(ok)) if ok == "OK" => Reply::Nil,
        // How many fields of a hash are new.
        (Call::Set { .. }, Answer::Int(_)) => Reply::Nil,
        (Call::Del, Answer::Int(done)) => Reply::Bool(done == 1),
        (Call::Get | Call::Swap { .. }, Answer::Nil) => Reply::Nil,
        // The first of a sorted set, if it has one.
        (Call::Get, Answer::Many(first)) => match &first[..] {
            [] => Reply::Nil,
            [Answer::Text(value)] => Reply::Text(unstuffed(value.clone())),
            other => Reply::Text(format!("not a member: {other:?}")),
        },
        (Call::Get | Call::Swap { .. }, Answer::Text(value)) => Reply::Text(unstuffed(value)),
        (_, answer) => Reply::Text(format!("not an answer: {answer:?}")),
    };
    Ok(reply)
}

/// A value with something behind it to make it long.
pub fn stuffed(value: &str, long: bool) -> String {
    let len = if long { LONG } else { 0 };
    format!("{value}:{len}:{}", "x".repeat(len))
}

/// The value without what makes it long; one that is not whole is shown as it is,
/// which nobody has written.
fn unstuffed(stuffed: String) -> String {
    // From the end: a value may have colons of its own.
    let mut parts = stuffed.rsplitn(3, ':');
    if let (Some(rest), Some(len), Some(value)) = (parts.next(), parts.next(), parts.next())
        && len.parse() == Ok(rest.len())
        && rest.bytes().all(|byte| byte == b'x')
    {
        return value.to_owned();
    }
    stuffed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_whole_is_told_from_every_other() {
        for long in [false, true] {
            for value in ["1.2.3", "0.key:7", "0.key:0"] {
                assert_eq!(unstuffed(stuffed(value, long)), value);
            }
        }
        let mut torn = stuffed("1.2.3", true);
        torn.pop();
        assert_eq!(unstuffed(torn.clone()), torn);
    }
}
