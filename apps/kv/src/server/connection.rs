//! One connection: bytes in, commands, replies out.
//!
//! A connection that does not take its replies is not read from: its output stays under a bound,
//! and its own sending stops once the system's buffers are full.

use std::sync::Arc;
use std::sync::atomic::Ordering::{self, Relaxed};
use std::time::Instant;

use super::buffer::{Flow, Input, Output, Spare};
use super::mail::say_all;
use super::registry::Client;
use super::session::{Identity, Session};
use super::shared::{Shared, Stats};
use super::shipping::door::{Served, serve};
use super::shipping::{Took, take};
use super::standing::{Resumed, resume};
use super::tls::Socket;
use crate::command::dispatch::{decline, dispatch, dispatch_here, waits};
use crate::memory::Memory;
use crate::resp::parse::Parser;
use crate::resp::reply::Reply;

/// Unsent bytes above which no further command is run.
pub(super) const OUTPUT_PAUSE: usize = 1 << 20;
/// Reads before other connections have their turn.
const TURN: usize = 8;

/// What a connection needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To be told when it can read or write.
    Event,
    /// Another turn soon.
    Turn,
    Close,
}

/// Why a connection has stopped running commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// There are none left, or the last one stands aside.
    All,
    /// There is no room for replies.
    Full,
    /// What it has done lets others go on that came before: they run before it answers.
    GaveWay,
}

/// A client's connection.
pub(crate) struct Connection {
    socket: Socket,
    session: Session,
    parser: Parser,
    input: Input,
    output: Output,
    /// Bytes may be waiting in the system's buffer.
    readable: bool,
    /// The other side has ended its sending: read until that shows.
    ended: bool,
    /// Its next command waits for the end of a pause.
    paused: bool,
    /// It is no client's, but another server's.
    link: Option<Box<Served>>,
}

impl Connection {
    pub fn new(socket: Socket, client: Arc<Client>, identity: Identity) -> Self {
        Self {
            link: None,
            socket,
            session: Session::new(client, identity),
            parser: Parser::default(),
            input: Input::default(),
            output: Output::default(),
            readable: true,
            ended: false,
            paused: false,
        }
    }

    /// One over which another server sends commands.
    pub fn link(socket: Socket, client: Arc<Client>, identity: Identity) -> Self {
        Self {
            link: Some(Box::new(Served::new())),
            ..Self::new(socket, client, identity)
        }
    }

    pub fn is_link(&self) -> bool {
        self.link.is_some()
    }

    /// Whether it is a link that has not said in time whose it is.
    pub fn is_stranger(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.is_stranger())
    }

    /// The server ends: another one is told that what it has sent since will not run, if it takes
    /// that without a wait.
    pub fn say_bye(&mut self) {
        if let Some(link) = &self.link {
            link.end(&mut self.output);
            self.output.drain(&mut self.socket);
        }
    }

    pub fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    pub fn client(&self) -> &Client {
        &self.session.client
    }

    /// Whether it is to have a turn when a pause may be over.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Takes note of an event.
    pub fn notice(&mut self, readable: bool, ended: bool) {
        self.readable |= readable || ended;
        self.ended |= ended;
    }

    /// When it wants a turn even if nothing happens.
    pub fn due(&self) -> Option<Instant> {
        self.session
            .standing
            .as_ref()
            .map(|standing| standing.due())
    }

    /// Bytes of its own that it keeps for what has come in and is to go out.
    pub fn held(&self) -> usize {
        self.input.held() + self.output.held() + self.parser.held()
    }

    /// Goes on as far as it can, with the worker's buffers.
    pub fn turn<M: Memory>(
        &mut self,
        shared: &Shared<M>,
        stats: &Stats,
        spare: &mut Spare,
    ) -> Next {
        self.input.borrow(spare);
        self.output.borrow(spare);
        let next = self.go_on(shared, stats);
        self.input.settle(spare);
        self.output.settle(spare);
        self.parser.settle();
        self.tell();
        next
    }

    /// The same in the middle of a script that keeps the worker: it is told so, and little else is
    /// done.
    pub fn turn_while_busy<M: Memory>(
        &mut self,
        shared: &Shared<M>,
        stats: &Stats,
        busy: &'static str,
    ) -> Next {
        self.session.busy = Some(busy);
        let next = self.turn(shared, stats, &mut Spare::default());
        self.session.busy = None;
        next
    }

    /// Tells CLIENT LIST how it is.
    fn tell(&self) {
        let now = &self.session.client.activity;
        now.paused.store(self.paused, Ordering::Relaxed);
        for (place, bytes) in [
            (&now.input, self.input.bytes().len()),
            (&now.output, self.output.pending()),
            (&now.held, self.held()),
        ] {
            place.store(bytes as u64, Ordering::Relaxed);
        }
    }

    fn go_on<M: Memory>(&mut self, shared: &Shared<M>, stats: &Stats) -> Next {
        self.say_pushes();
        for _ in 0..TURN {
            let ran = match &mut self.link {
                None => self.run_commands(shared, stats),
                Some(link) => {
                    let buffers = (&mut self.parser, &mut self.input, &mut self.output);
                    serve(shared, stats, link, &mut self.session, buffers)
                }
            };
            if ran == Ran::GaveWay {
                return Next::Turn;
            }
            let blocked = ran == Ran::Full;
            match self.send(stats) {
                Flow::Ended => return Next::Close,
                Flow::Dry if blocked => return Next::Event,
                _ => {}
            }
            let behind = self.socket.is_behind();
            if self.session.closing && self.output.pending() == 0 && !behind {
                return Next::Close;
            }
            if self.paused {
                return Next::Event;
            }
            if blocked {
                continue; // all was sent after all
            }
            // Of one that waits only the end is of interest.
            let waits = self.session.standing.is_some() && !self.ended;
            // What was sent to another node has its reply before the end.
            let waits = waits || self.session.shipped.is_some();
            if self.session.closing || !self.readable || waits {
                return Next::Event;
            }
            if self.receive(stats) == Flow::Ended {
                return Next::Close;
            }
        }
        Next::Turn
    }

    /// Writes what the client has not asked for, unless it does not even take its replies.
    fn say_pushes(&mut self) {
        let session = &self.session;
        let mail = &session.client.mail;
        if !mail.has_pushes.load(Relaxed) || self.output.pending() > OUTPUT_PAUSE {
            return;
        }
        let mut reply = Reply {
            out: &mut self.output.data,
            protocol: session.protocol,
        };
        let subscribed = session.subscribed.count() != 0;
        say_all(&mail.pushes(), &mut reply, subscribed);
    }

    fn send(&mut self, stats: &Stats) -> Flow {
        if self.output.pending() == 0 && !self.socket.is_behind() {
            return Flow::Open;
        }
        let (n, flow) = self.output.drain(&mut self.socket);
        Stats::add(&stats.calls, 1);
        Stats::add(&stats.output, n as u64);
        flow
    }

    fn receive(&mut self, stats: &Stats) -> Flow {
        let (n, flow) = self.input.fill(&mut self.socket);
        Stats::add(&stats.calls, 1);
        Stats::add(&stats.input, n as u64);
        // A short read has emptied the system's buffer, unless the end is in there too.
        // TLS comes in records, of which there may be more.
        let emptied = !self.ended && !self.socket.is_secure();
        if flow == Flow::Dry && (n == 0 || emptied) {
            self.readable = false;
        }
        flow
    }

    /// Runs what has arrived in full.
    ///
    /// Nothing is run, and no reply stays, unless the node is certain to be a member: before, so
    /// that a fenced one answers at once, and again when all has been done and nothing is sent yet.
    fn run_commands<M: Memory>(&mut self, shared: &Shared<M>, stats: &Stats) -> Ran {
        let Self {
            session,
            parser,
            input,
            output,
            paused,
            ..
        } = self;
        (*paused, session.since) = (false, None);
        let arrived = input.bytes().len() as u64;
        session.client.activity.input.store(arrived, Relaxed);
        let mut used = 0;
        let mut ran = Ran::All;
        let urgent = session
            .client
            .seat
            .get()
            .map(|(worker, _)| &shared.desks[*worker].urgent);
        let (start, mut replies) = (output.data.len(), 0);
        let mut may_serve = None;
        while !session.closing {
            if output.pending() > OUTPUT_PAUSE {
                ran = Ran::Full;
                break;
            }
            if session.standing.is_some() {
                if session.busy.is_some() {
                    break;
                }
                let before = output.data.len();
                match may_serve.get_or_insert_with(|| shared.store.confirm()) {
                    Ok(()) => match resume(shared, stats, session, &mut output.data) {
                        Resumed::Waits => break,
                        Resumed::Answered => {}
                    },
                    Err(error) => {
                        session.standing = None;
                        decline(error, stats, session, &mut output.data);
                    }
                }
                replies += usize::from(output.data.len() > before);
                continue;
            }
            if session.shipped.is_some() {
                let before = output.data.len();
                if session.busy.is_some() {
                    break;
                }
                match take(shared, stats, session, &mut output.data) {
                    Took::Waits => break,
                    Took::Answered => {}
                    Took::Here(args) => match may_serve
                        .get_or_insert_with(|| shared.store.confirm())
                    {
                        Ok(()) => {
                            dispatch_here(shared, stats, session, args.args(), &mut output.data);
                        }
                        Err(error) => decline(error, stats, session, &mut output.data),
                    },
                }
                replies += usize::from(output.data.len() > before);
                continue;
            }
            let rest = &input.bytes()[used..];
            match parser.parse(rest, session.limits()) {
                Ok(None) => break,
                Ok(Some(n)) => {
                    let args = parser.args(rest);
                    let may_pause = shared.control.pause.is_on() && session.busy.is_none();
                    if may_pause && waits(shared, session, args) {
                        *paused = true;
                        break;
                    }
                    if args.len() > 0 {
                        let before = output.data.len();
                        let may = match session.busy {
                            // What is said then says nothing of keys.
                            Some(_) => &Ok(()),
                            None => may_serve.get_or_insert_with(|| shared.store.confirm()),
                        };
                        match may {
                            Ok(()) => dispatch(shared, stats, session, args, &mut output.data),
                            Err(error) => decline(error, stats, session, &mut output.data),
                        }
                        replies += usize::from(output.data.len() > before);
                    }
                    used += n;
                    let waits_for_us = urgent.is_some_and(|urgent| urgent.load(Relaxed));
                    if waits_for_us && session.busy.is_none() {
                        ran = Ran::GaveWay;
                        break;
                    }
                }
                Err(error) => {
                    let mut reply = Reply {
                        out: &mut output.data,
                        protocol: session.protocol,
                    };
                    reply.error("ERR", format!("Protocol error: {error}"));
                    session.closing = true;
                }
            }
        }
        input.consume(used);
        if used > 0 {
            session.client.touch();
        }
        if let Some(Ok(())) = may_serve
            && let Err(error) = shared.store.confirm()
        {
            output.data.truncate(start);
            for _ in 0..replies {
                decline(&error, stats, session, &mut output.data);
            }
        }
        ran
    }
}
