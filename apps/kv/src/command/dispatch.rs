//! From words to a reply: may this client send it now, is it known, are there enough words;
//! then run it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{
    Call, Command, Failure, Flags, MAX_REPLY, Outcome, SHOWN, eviction, monitor, scripting,
};
use crate::acl::{Context, permitted};
use crate::error::Error;
use crate::memory::Memory;
use crate::resp::args::Args;
use crate::resp::reply::{Protocol, Reply};
use crate::server::latency::Event;
use crate::server::session::{MAX_QUEUED, MAX_QUEUED_BYTES, Queued, Session, Speech};
use crate::server::shared::{Shared, Stats};
use crate::server::shipping;
use crate::server::standing::stand;
use crate::server::tracking::act_for;
use crate::store::Db;

/// Runs a command and appends its reply. A command that is sent to another node has none yet.
pub(crate) fn dispatch<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Vec<u8>,
) {
    Stats::add(&stats.commands, 1);
    first(shared, stats, session, args, out, Comes::First);
}

/// The same for a command that was sent to another node, and has not run there.
pub(crate) fn dispatch_here<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Vec<u8>,
) {
    first(shared, stats, session, args, out, Comes::Back);
}

/// Why a command is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comes {
    First,
    /// It was sent to another node, and has not run.
    Back,
    /// It stood aside.
    Again,
}

fn first<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Vec<u8>,
    comes: Comes,
) {
    let start = out.len();
    if session.generation != shared.control.users.generation() && !renew(shared, session) {
        return;
    }
    if session.speech == Speech::SkipNext {
        session.speech = Speech::Skip;
    }
    act_for(session.client.id);
    let ran = consider(shared, stats, session, args, out, comes);
    act_for(0);
    match ran {
        Ok(()) if session.shipped.is_some() => return,
        Ok(()) => {}
        Err(Failure::Block(wait)) => {
            out.truncate(start);
            match stand(shared, session, args, wait) {
                Ok(()) => return,
                Err(failure) => write_failure(&failure, session, stats, out),
            }
        }
        Err(failure) => {
            out.truncate(start);
            write_failure(&failure, session, stats, out);
        }
    }
    hush(session, out, start);
}

/// Runs a command that stood aside; `false`: it goes on to.
pub(crate) fn again<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Vec<u8>,
) -> bool {
    let start = out.len();
    act_for(session.client.id);
    session.resumed = true;
    let ran = consider(shared, stats, session, args, out, Comes::Again);
    session.resumed = false;
    act_for(0);
    match ran {
        Ok(()) => {}
        Err(failure)
            if args.is(0, "xreadgroup") && lost_stream(shared, session, args, &failure) =>
        {
            out.truncate(start);
            write_failure(&LOST_STREAM.into(), session, stats, out);
        }
        // A key of another type is not what it waits for.
        Err(Failure::Block(_) | Failure::Store(Error::WrongType)) => {
            out.truncate(start);
            return false;
        }
        Err(failure) => {
            out.truncate(start);
            write_failure(&failure, session, stats, out);
        }
    }
    hush(session, out, start);
    true
}

const LOST_STREAM: &str = "UNBLOCKED the stream key no longer exists";

/// Whether a reader of a group fails because a stream that it waits for is not there any more.
fn lost_stream<M: Memory>(
    shared: &Shared<M>,
    session: &Session,
    args: Args<'_>,
    failure: &Failure,
) -> bool {
    match failure {
        Failure::Store(Error::WrongType) => true,
        Failure::Text(text) if text.starts_with(b"NOGROUP") => {
            let (Some(position), Some(db)) = (
                shared.commands.find(args.at(0)),
                shared.store.db(session.db),
            ) else {
                return false;
            };
            let mut keys = shared.commands.at(position).keys.positions(args);
            keys.any(|at| matches!(db.meta(args.at(at)), Ok(None)))
        }
        _ => false,
    }
}

/// Takes a reply back that the client does not want.
fn hush(session: &mut Session, out: &mut Vec<u8>, start: usize) {
    if let Some(tracked) = session.tracked.as_mut()
        && session.queue.is_none()
    {
        tracked.end_command();
    }
    let queued = session
        .queue
        .as_ref()
        .map_or(-1, |queue| queue.commands.len() as i32);
    session
        .client
        .activity
        .queued
        .store(queued, Ordering::Relaxed);
    // What is told of subscriptions is no reply.
    let told = std::mem::take(&mut session.confirmed);
    if session.speech != Speech::On && !told {
        out.truncate(start);
    }
    if session.speech == Speech::Skip {
        session.speech = Speech::On;
    }
}

/// Answers a command with an error, unrun or as if it had not been:
/// what it has done may not be told.
pub(crate) fn decline(error: &Error, stats: &Stats, session: &mut Session, out: &mut Vec<u8>) {
    if let Some(queue) = &mut session.queue {
        queue.failed = true;
    }
    Stats::add(&stats.errors, 1);
    let mut reply = Reply {
        out,
        protocol: session.protocol,
    };
    stats.counts.error(error.code().as_bytes());
    reply.error(error.code(), error.to_string());
}

/// The users have changed. Whether there still is the session's; otherwise it ends.
fn renew<M: Memory>(shared: &Shared<M>, session: &mut Session) -> bool {
    match shared.control.users.renew(&session.identity()) {
        Some(identity) => session.act_as(identity),
        None => session.closing = true,
    }
    !session.closing
}

fn consider<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Vec<u8>,
    comes: Comes,
) -> Outcome {
    let position = match find(shared, session, args) {
        Ok(position) => position,
        Err(failure) => {
            if let Some(position) = shared.commands.find(args.at(0)) {
                let catalog = shared.control.users.catalog();
                let unit = catalog.unit(position, args);
                stats.counts.rejected(unit, catalog.units.len());
            }
            return Err(refuse(session, args, failure));
        }
    };
    let command = shared.commands.at(position);
    if let Some(busy) = session.busy
        && !runs_meanwhile(command.name, args)
    {
        let catalog = shared.control.users.catalog();
        let unit = catalog.unit(position, args);
        stats.counts.rejected(unit, catalog.units.len());
        return Err(refuse(session, args, busy.into()));
    }
    listens_only(session, command)?;
    eviction::make_room(shared, stats, session, command, args)
        .map_err(|failure| refuse(session, args, failure))?;
    if session.queue.is_some() && !command.flags.has(Flags::CONTROL) {
        return enqueue(session, command, position, args, out);
    }
    let Some(db) = shared.store.db(session.db) else {
        return Err("ERR DB index is out of range".into());
    };
    let mut asked = match comes {
        Comes::First => shipping::asked(shared, session, command),
        _ => None,
    };
    if let Some(asked) = &mut asked
        && asked.send(shared, session, db, position, args)
    {
        eviction::note_uses(shared, &db, command, args);
        return Ok(());
    }
    let shown = comes != Comes::Again && shared.hub.monitors.any();
    // Scripts before what they call, others when they have run.
    let shown_first = shown && monitor::is_script(command.name);
    if shown_first {
        monitor::show(shared, session, position, args, false);
    }
    let start = out.len();
    let waits = rackmem::waiting::waits();
    let outcome = timed(shared, stats, session, db, position, args, out);
    if let Some(asked) = asked {
        let waited = rackmem::waiting::waits() != waits;
        asked.ran(command, db, args, waited);
    }
    if shown && !shown_first {
        monitor::show(shared, session, position, args, false);
    }
    // What fails for want of memory has done nothing, but a script may have.
    let outcome = match command.flags.has(Flags::NOSCRIPT) {
        true => outcome,
        false => with_room(shared, stats, outcome, || {
            out.truncate(start);
            timed(shared, stats, session, db, position, args, out)
        })?,
    };
    // What has run in a transaction cannot be tried again; the next one finds room.
    if std::mem::take(&mut session.full) {
        eviction::evict(shared, stats)?;
    }
    outcome
}

/// What runs while a script keeps the worker for long, with the second word if there must be one:
/// what neither touches keys nor waits for anybody.
const MEANWHILE: [(&str, &str); 11] = [
    ("auth", ""),
    ("discard", ""),
    ("function", "kill"),
    ("function", "stats"),
    ("hello", ""),
    ("multi", ""),
    ("quit", ""),
    ("reset", ""),
    ("script", "kill"),
    ("shutdown", "nosave"),
    ("unwatch", ""),
];

fn runs_meanwhile(name: &str, args: Args<'_>) -> bool {
    let mut named = MEANWHILE.iter().filter(|(known, _)| *known == name);
    named.any(|(_, word)| word.is_empty() || args.len() > 1 && args.is(1, word))
}

/// Commands that may change something though they are not marked so.
pub(super) const MAY_WRITE: [&str; 6] =
    ["publish", "spublish", "eval", "evalsha", "fcall", "pfcount"];

/// Whether a command has to wait for the end of the pause that there is. CLIENT, which can end it,
/// never does.
pub(crate) fn waits<M: Memory>(shared: &Shared<M>, session: &Session, args: Args<'_>) -> bool {
    let Some(position) = shared.commands.find(args.at(0)) else {
        return false;
    };
    let writes = |position: usize, args: Args<'_>| {
        let command = shared.commands.at(position);
        let may_write = MAY_WRITE.contains(&command.name);
        command.flags.has(Flags::WRITE)
            || may_write && !scripting::only_reads(shared, command, args)
    };
    let queue = session.queue.iter().flat_map(|queue| &queue.commands);
    let queue_writes = args.is(0, "exec")
        && queue
            .into_iter()
            .any(|queued| writes(queued.command, queued.args.args()));
    let all = shared.control.pause.is_for_all() && !args.is(0, "client");
    all || queue_writes || writes(position, args)
}

/// Runs the command at `position` of the table; counts it, and keeps it if it is slow.
pub(crate) fn timed<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    db: Db<'_, M>,
    position: usize,
    args: Args<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let (command, control) = (shared.commands.at(position), &shared.control);
    let catalog = control.users.catalog();
    let unit = catalog.unit(position, args);
    session
        .client
        .activity
        .unit
        .store(unit as u32, Ordering::Relaxed);
    let began = session.since.take().unwrap_or_else(Instant::now);
    let outcome = run(shared, stats, session, db, command, args, out);
    let ended = Instant::now();
    session.since = Some(ended);
    let took = ended.saturating_duration_since(began);
    let units = catalog.units.len();
    let failed = matches!(&outcome, Err(failure) if !matches!(failure, Failure::Block(_)));
    let calls = u64::from(!session.resumed);
    stats.counts.ran(unit, units, calls, took, failed);
    keep_slow(shared, session, command, args, took);
    outcome
}

/// Keeps a command that was slow.
pub(crate) fn keep_slow<M: Memory>(
    shared: &Shared<M>,
    session: &Session,
    command: &Command<M>,
    args: Args<'_>,
    took: Duration,
) {
    let control = &shared.control;
    let limit = control.settings.slower_than();
    if limit >= 0 && took.as_micros() >= limit.unsigned_abs().into() && command.name != "exec" {
        let kept = control.settings.slowlog_len();
        control.slowlog.add(args, took, &session.client, kept);
    }
    let event = match command.flags.has(Flags::FAST) {
        true => Event::FastCommand,
        false => Event::Command,
    };
    let threshold = control.settings.latency_threshold();
    control.latency.note(event, took, threshold);
}

/// Runs a command that another node's server has sent, which has seen to all that is about its
/// client; what fails for want of memory runs again when there is some.
pub(crate) fn run_shipped<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    db: Db<'_, M>,
    command: &'static Command<M>,
    args: Args<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let start = out.len();
    act_for(0);
    let outcome = run(shared, stats, session, db, command, args, out);
    with_room(shared, stats, outcome, || {
        out.truncate(start);
        run(shared, stats, session, db, command, args, out)
    })?
}

/// What comes of a command at last that has come to `outcome`: as long as it fails for want of
/// memory, keys go and it runs `again`.
///
/// # Errors
/// No key could go.
fn with_room<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    mut outcome: Outcome,
    mut again: impl FnMut() -> Outcome,
) -> Result<Outcome, Failure> {
    for _ in 0..eviction::MAX_ROUNDS {
        if !eviction::is_full(&outcome) || !eviction::evict(shared, stats)? {
            break;
        }
        outcome = again();
    }
    Ok(outcome)
}

/// What a client of version 2 may send that has subscribed to something.
const LISTENER: [&str; 9] = [
    "subscribe",
    "unsubscribe",
    "psubscribe",
    "punsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "ping",
    "quit",
    "reset",
];

/// Such a client could not tell other replies from messages.
fn listens_only<M: Memory>(session: &Session, command: &Command<M>) -> Outcome {
    if session.subscribed.count() == 0
        || session.protocol == Protocol::Resp3
        || LISTENER.contains(&command.name)
    {
        return Ok(());
    }
    Err(format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
         allowed in this context",
        command.name
    )
    .into())
}

/// A command that is refused spoils the transaction it was meant for; EXEC itself ends it.
fn refuse(session: &mut Session, args: Args<'_>, failure: Failure) -> Failure {
    match (&mut session.queue, failure) {
        (queue, Failure::Text(text)) if args.is(0, "exec") && session.trusted => {
            *queue = None;
            session.watched.clear();
            let mut whole = b"EXECABORT Transaction discarded because of: ".to_vec();
            whole.extend_from_slice(text.strip_prefix(b"ERR ").unwrap_or(&text));
            whole.into()
        }
        (Some(queue), failure) => {
            queue.failed = true;
            failure
        }
        (None, failure) => failure,
    }
}

/// The command, if the client may send it.
fn find<M: Memory>(
    shared: &Shared<M>,
    session: &Session,
    args: Args<'_>,
) -> Result<usize, Failure> {
    let position = shared
        .commands
        .find(args.at(0))
        .ok_or_else(|| unknown(args))?;
    let command = shared.commands.at(position);
    command.check(args)?;
    if !session.trusted && !command.flags.has(Flags::OPEN) {
        return Err("NOAUTH Authentication required.".into());
    }
    let context = match session.queue {
        Some(_) => Context::Transaction,
        None => Context::Client,
    };
    permitted(shared, session, position, args, context)?;
    Ok(position)
}

fn unknown(args: Args<'_>) -> Failure {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(&args.at(0)[..args.at(0).len().min(SHOWN)]);
    text.extend_from_slice(b"', with args beginning with: ");
    let first = text.len();
    for word in args.from(1) {
        let Some(left) = (first + SHOWN)
            .checked_sub(text.len())
            .filter(|left| *left != 0)
        else {
            break;
        };
        text.push(b'\'');
        text.extend_from_slice(&word[..word.len().min(left)]);
        text.extend_from_slice(b"' ");
    }
    text.into()
}

/// Runs a command in `db`; a failure is for the caller to write.
pub(crate) fn run<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    db: Db<'_, M>,
    command: &'static Command<M>,
    args: Args<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let start = out.len();
    let protocol = session.protocol;
    if let Some(tracked) = session.tracked.as_ref()
        && command.flags.has(Flags::READ)
        && !monitor::is_script(command.name)
    {
        let keys = command.keys.positions(args).map(|i| args.at(i));
        tracked.note(db, keys)?;
    }
    eviction::note_uses(shared, &db, command, args);
    let reply = Reply { out, protocol };
    let mut call = Call {
        shared,
        stats,
        session,
        db,
        args,
        reply,
        command,
        joined: Vec::new(),
    };
    match events_of(shared, command) {
        0 => (command.run)(&mut call)?,
        wanted => super::events::run(&mut call, wanted)?,
    }
    if out.len() - start > MAX_REPLY {
        return Err(Error::ReplyTooLong.into());
    }
    Ok(())
}

/// The classes of events that are to be told of what this command changes.
fn events_of<M: Memory>(shared: &Shared<M>, command: &Command<M>) -> u64 {
    match command.flags.has(Flags::WRITE) {
        // A store that cannot be read says so in the command.
        true => shared.store.events().unwrap_or(0),
        false => 0,
    }
}

/// Replies with an error.
pub(crate) fn write_failure(
    failure: &Failure,
    session: &Session,
    stats: &Stats,
    out: &mut Vec<u8>,
) {
    let is_news = !matches!(
        failure,
        Failure::Block(_) | Failure::Script { counted: true, .. }
    );
    Stats::add(&stats.errors, u64::from(is_news));
    match failure {
        Failure::Store(error) => stats.counts.error(error.code().as_bytes()),
        Failure::Text(text) => stats.counts.error(coded(text).0),
        Failure::Script { line, .. } if is_news => stats.counts.error(coded(line).0),
        Failure::Script { .. } | Failure::Block(_) => {}
    }
    let protocol = session.protocol;
    say_failure(failure, &mut Reply { out, protocol });
}

/// The same, not counted.
pub(crate) fn say_failure(failure: &Failure, reply: &mut Reply<'_>) {
    match failure {
        Failure::Store(error) => reply.error(error.code(), error.to_string()),
        Failure::Text(text) => {
            let (code, text) = coded(text);
            reply.error(code, text);
        }
        Failure::Script { line, .. } => {
            reply.out.push(b'-');
            reply.out.extend_from_slice(line);
            reply.out.extend_from_slice(b"\r\n");
        }
        Failure::Block(wait) => wait.otherwise.say(reply),
    }
}

/// An error's code, and the rest.
pub(crate) fn coded(text: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = text.splitn(2, |byte| *byte == b' ');
    match (parts.next(), parts.next()) {
        (Some(code), Some(text)) => (code, text),
        _ => (b"ERR", text),
    }
}

/// Keeps a command for EXEC.
fn enqueue<M: Memory>(
    session: &mut Session,
    command: &Command<M>,
    position: usize,
    args: Args<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let protocol = session.protocol;
    let Some(queue) = session.queue.as_mut() else {
        return Ok(());
    };
    if command.flags.has(Flags::NOT_QUEUED) {
        queue.failed = true;
        return Err("ERR Command not allowed inside a transaction".into());
    }
    if queue.commands.len() == MAX_QUEUED || queue.bytes + args.size() > MAX_QUEUED_BYTES {
        queue.failed = true;
        return Err("ERR the transaction is too long".into());
    }
    queue.bytes += args.size();
    queue.commands.push(Queued {
        command: position,
        args: args.into(),
    });
    Reply { out, protocol }.simple("QUEUED");
    Ok(())
}
