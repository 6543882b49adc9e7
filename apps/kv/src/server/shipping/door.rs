//! Where other servers' commands come in, and how they run.
//!
//! A link is a connection like a client's, with its worker, its turns and its buffers, and in no
//! list of clients. Its commands are those that a server on the other side has found to be allowed;
//! they run as the commands of a client here do, and are counted, shown and timed there.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::frame::{self, Flags, Hello, Request};
use super::{Shipping, only_key, runs_anywhere};
use crate::command::Outcome;
use crate::command::dispatch::{run_shipped, say_failure};
use crate::memory::Memory;
use crate::resp::parse::{Limits, Parser};
use crate::resp::reply::Reply;
use crate::server::buffer::{Input, Output};
use crate::server::connection::{OUTPUT_PAUSE, Ran};
use crate::server::session::Session;
use crate::server::shared::{Shared, Stats};

/// Links that a door lets in: one for each worker that a rack can have.
const MAX_INSIDE: usize = 32 * 64;
/// How long one may take to say who it is.
const SAYS: Duration = Duration::from_secs(5);
/// A reply above this had better not be fetched again and again by the command.
const LONG_REPLY: usize = 64 << 10;
const LIMITS: Limits = Limits {
    words: frame::MAX_WORDS,
    word: frame::MAX_REQUEST,
    command: frame::MAX_REQUEST,
};

/// What is particular to a connection that is a link.
pub(crate) struct Served {
    /// The node that it comes from, once that is known.
    from: Option<u16>,
    since: Instant,
}

impl Served {
    pub fn new() -> Self {
        Self {
            from: None,
            since: Instant::now(),
        }
    }

    /// Whether it has not said in time who it is.
    pub fn is_stranger(&self) -> bool {
        self.from.is_none() && self.since.elapsed() >= SAYS
    }

    /// Nothing more is run of what comes, and the other side is told.
    pub fn end(&self, output: &mut Output) {
        if self.from.is_some() {
            frame::bye(&mut output.data);
        }
    }
}

impl Shipping {
    /// One more link is at the door. Whether there is room.
    pub fn admit(&self) -> bool {
        let more = |inside| (inside < MAX_INSIDE).then_some(inside + 1);
        self.inside.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// One is gone.
    pub fn gone(&self) {
        self.inside.fetch_sub(1, Relaxed);
    }

    /// Whether somebody may send commands.
    fn knows(&self, hello: &Hello, nodes: usize) -> bool {
        let said = hello.token ^ self.token;
        let differs = said | u128::from(hello.store ^ self.store);
        differs == 0 && hello.to == self.me && usize::from(hello.from) < nodes
    }
}

/// Runs what has come over a link.
pub(crate) fn serve<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    link: &mut Served,
    session: &mut Session,
    (parser, input, output): (&mut Parser, &mut Input, &mut Output),
) -> Ran {
    let Some(shipping) = shared.shipping.as_ref() else {
        session.closing = true;
        return Ran::All;
    };
    if link.from.is_none() {
        match Hello::read(input.bytes()) {
            Ok(None) => return Ran::All,
            Ok(Some(hello)) if shipping.knows(&hello, shared.store.memory().nodes()) => {
                input.consume(frame::HELLO);
                link.from = Some(hello.from);
                frame::welcome(&mut output.data);
            }
            _ => {
                Stats::add(&stats.rejected, 1);
                session.closing = true;
                return Ran::All;
            }
        }
    }
    let from = link.from.unwrap_or_default();
    if input.bytes().is_empty() {
        return Ran::All;
    }
    // Who leaves has the buckets elsewhere before long, and who may not serve runs nothing.
    if shared.store.leaves() || shared.store.confirm().is_err() {
        link.end(output);
        session.closing = true;
        return Ran::All;
    }
    let urgent = session.client.seat.get();
    let urgent = urgent.map(|(worker, _)| &shared.desks[*worker].urgent);
    let (start, mut used, mut ran) = (output.data.len(), 0, Ran::All);
    while !session.closing {
        if output.pending() > OUTPUT_PAUSE {
            ran = Ran::Full;
            break;
        }
        let request = match Request::read(&input.bytes()[used..]) {
            Ok(None) => break,
            Ok(Some(request)) => request,
            Err(_) => {
                session.closing = true;
                break;
            }
        };
        used += request.len;
        if session.busy.is_some() {
            // A script keeps the worker: who has asked need not wait for it.
            let start = frame::begin_reply(&mut output.data);
            frame::end_reply(&mut output.data, start, Flags::NOT_RUN);
            continue;
        }
        if !answer(
            shared, stats, shipping, session, parser, &request, from, output,
        ) {
            session.closing = true;
        }
        if urgent.is_some_and(|urgent| urgent.load(Relaxed)) {
            ran = Ran::GaveWay;
            break;
        }
    }
    input.consume(used);
    if shared.store.confirm().is_err() {
        // What has run may not be told, and nobody knows what became of it.
        output.data.truncate(start);
        session.closing = true;
    }
    ran
}

/// Runs a command and writes its reply. Whether it was a command.
#[allow(clippy::too_many_arguments)]
fn answer<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    shipping: &Shipping,
    session: &mut Session,
    parser: &mut Parser,
    request: &Request<'_>,
    from: u16,
    output: &mut Output,
) -> bool {
    let whole = parser.parse(request.command, &LIMITS);
    if whole != Ok(Some(request.command.len())) {
        return false;
    }
    let args = parser.args(request.command);
    let found = shared.commands.find(args.at(0));
    let command = found.map(|position| shared.commands.at(position));
    let Some((command, key)) = command
        .filter(|command| command.takes(args.len()) && runs_anywhere(command))
        .and_then(|command| Some((command, only_key(command, args)?)))
    else {
        return false;
    };
    let Some(db) = shared.store.db(request.db) else {
        return false;
    };
    session.db = request.db;
    session.protocol = request.protocol;
    let start = frame::begin_reply(&mut output.data);
    // This thread alone counts here. What the client has found is counted where it is.
    let (hits, misses) = (stats.hits.load(Relaxed), stats.misses.load(Relaxed));
    let outcome: Outcome = run_shipped(shared, stats, session, db, command, args, &mut output.data);
    let hit = stats.hits.swap(hits, Relaxed) != hits;
    let missed = stats.misses.swap(misses, Relaxed) != misses;
    Stats::add(&stats.shipped_served, 1);
    shipping.served.fetch_add(1, Relaxed);
    let failed = outcome.is_err();
    if let Err(failure) = outcome {
        output.data.truncate(start + frame::REPLY);
        let protocol = session.protocol;
        say_failure(
            &failure,
            &mut Reply {
                out: &mut output.data,
                protocol,
            },
        );
    }
    let reads = !command.flags.has(crate::command::Flags::WRITE);
    let bucket = db.bucket_of(key);
    let bring = bucket.is_some_and(|bucket| shipping.uses.note(bucket, from, reads));
    let long = output.data.len() - start > LONG_REPLY;
    let flags = Flags::default()
        .with(Flags::BRING, bring || long)
        .with(Flags::HIT, hit)
        .with(Flags::MISS, missed)
        .with(Flags::FAILED, failed);
    frame::end_reply(&mut output.data, start, flags);
    true
}
