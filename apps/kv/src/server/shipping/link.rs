//! One link to another node's server: its state, what is on its way, and who waits for what.
//!
//! Replies come in the order of what was sent. When a link is lost, a command that cannot have
//! arrived in full runs here, and so does one that only reads; of others nobody knows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::Registry;
use mio::net::TcpStream;

use super::frame::{self, Flags, Said};
use crate::resp::args::Args;
use crate::resp::reply::Protocol;
use crate::server::buffer::{Flow, Input, Output};
use crate::server::registry::Client;
use crate::server::shared::Stats;

/// Bytes that wait to be sent over a link: above that commands run here.
const MAX_UNSENT: usize = 1 << 20;
/// Commands that wait for their replies on a link.
const MAX_WAITING: usize = 1 << 12;
/// How long none is tried after one was lost.
pub(super) const APART: Duration = Duration::from_secs(1);
/// A link over which no reply comes for so long, while one is due, is lost. A command waits for a
/// bucket no longer than a store's patience.
const SILENT: Duration = Duration::from_secs(15);

/// What has become of a command that was sent.
#[derive(Debug)]
pub(crate) enum Answer {
    Said(Flags, Vec<u8>),
    /// It has not run.
    NotRun,
    /// Its link was lost.
    Unknown,
}

/// A command that was sent.
struct Waiting {
    client: Arc<Client>,
    /// Where it ends in all that was ever to be sent over the link.
    end: u64,
    since: Instant,
}

pub(super) enum State {
    /// None is tried before then.
    Apart(Option<Instant>),
    /// Somebody looks where the door is.
    Looking(Instant),
    Coming(TcpStream, Instant),
    Open(TcpStream),
}

/// Connections that have got something, by their places and numbers.
pub(crate) type Calls = Vec<(usize, u64)>;

pub(super) struct Link {
    pub state: State,
    input: Input,
    pub output: Output,
    /// Bytes that were ever to be sent, and that were.
    pub queued: u64,
    pub written: u64,
    waiting: VecDeque<Waiting>,
    heard: Instant,
}

impl Link {
    pub fn new() -> Self {
        Self {
            state: State::Apart(None),
            input: Input::default(),
            output: Output::default(),
            queued: 0,
            written: 0,
            waiting: VecDeque::new(),
            heard: Instant::now(),
        }
    }

    /// It is over. Says what has become of what was sent.
    pub fn lose(&mut self, registry: &Registry, said_bye: bool, calls: &mut Calls) {
        let state = State::Apart(Some(Instant::now() + APART));
        if let State::Coming(mut socket, _) | State::Open(mut socket) =
            std::mem::replace(&mut self.state, state)
        {
            // It is closed in any case.
            let _ = registry.deregister(&mut socket);
        }
        for Waiting { client, end, .. } in std::mem::take(&mut self.waiting) {
            let answer = match said_bye || self.written < end {
                true => Answer::NotRun,
                false => Answer::Unknown,
            };
            tell(&client, answer, calls);
        }
        *self = Self {
            state: std::mem::replace(&mut self.state, State::Apart(None)),
            ..Self::new()
        };
    }

    pub fn write(&mut self, stats: &Stats) -> Flow {
        let (State::Open(socket) | State::Coming(socket, _)) = &mut self.state else {
            return Flow::Dry;
        };
        if self.output.pending() == 0 {
            return Flow::Open;
        }
        let (n, flow) = self.output.drain(socket);
        self.written += n as u64;
        Stats::add(&stats.calls, 1);
        Stats::add(&stats.output, n as u64);
        flow
    }

    /// Reads what has come. Whether the link is over; `Some(true)`: its other side has said so.
    pub fn read(&mut self, stats: &Stats, calls: &mut Calls) -> Option<bool> {
        loop {
            let (State::Open(socket) | State::Coming(socket, _)) = &mut self.state else {
                return None;
            };
            let (n, flow) = self.input.fill(socket);
            Stats::add(&stats.calls, 1);
            Stats::add(&stats.input, n as u64);
            if let over @ Some(_) = self.take(calls) {
                return over;
            }
            match flow {
                Flow::Open => {}
                Flow::Dry => return None,
                Flow::Ended => return Some(false),
            }
        }
    }

    /// Hands out what has come in full. The same.
    fn take(&mut self, calls: &mut Calls) -> Option<bool> {
        if let State::Coming(..) = self.state {
            match frame::is_welcome(self.input.bytes()) {
                None => return None,
                Some(false) => return Some(false),
                Some(true) => self.input.consume(frame::WELCOME),
            }
            if let State::Coming(socket, _) = std::mem::replace(&mut self.state, State::Apart(None))
            {
                self.state = State::Open(socket);
            }
        }
        loop {
            let (flags, reply, n) = match Said::read(self.input.bytes()) {
                Ok(None) => return None,
                Ok(Some(Said::Reply(flags, reply, n))) => (flags, reply.to_vec(), n),
                Ok(Some(Said::Bye)) => return Some(true),
                Err(_) => return Some(false),
            };
            let Some(Waiting { client, .. }) = self.waiting.pop_front() else {
                return Some(false); // nobody has asked
            };
            self.input.consume(n);
            self.heard = Instant::now();
            let answer = match flags.has(Flags::NOT_RUN) {
                true => Answer::NotRun,
                false => Answer::Said(flags, reply),
            };
            tell(&client, answer, calls);
        }
    }

    /// Whether it is on its way, or something is under way over it.
    pub fn awaits_something(&self) -> bool {
        match self.state {
            State::Apart(_) => false,
            State::Looking(_) | State::Coming(..) => true,
            State::Open(_) => !self.waiting.is_empty() || self.output.pending() > 0,
        }
    }

    /// Whether a command can be sent.
    pub fn takes(&self) -> bool {
        matches!(self.state, State::Open(_))
            && self.output.pending() < MAX_UNSENT
            && self.waiting.len() < MAX_WAITING
    }

    /// Puts a command behind those that are to be sent.
    pub fn send(&mut self, client: &Arc<Client>, (db, protocol): (u8, Protocol), args: Args<'_>) {
        let before = self.output.data.len();
        frame::request(db, protocol, args, &mut self.output.data);
        self.queued += (self.output.data.len() - before) as u64;
        self.waiting.push_back(Waiting {
            client: client.clone(),
            end: self.queued,
            since: Instant::now(),
        });
    }

    /// Whether it has been silent for too long.
    pub fn is_overdue(&self, now: Instant) -> bool {
        match &self.state {
            State::Looking(until) | State::Coming(_, until) => now >= *until,
            State::Open(_) => self.waiting.front().is_some_and(|first| {
                now.saturating_duration_since(first.since.max(self.heard)) >= SILENT
            }),
            State::Apart(_) => false,
        }
    }
}

/// Leaves an answer for a connection.
fn tell(client: &Client, answer: Answer, calls: &mut Calls) {
    client.mail.answer(answer);
    if let Some((_, place)) = client.seat.get() {
        calls.push((*place, client.id));
    }
}
