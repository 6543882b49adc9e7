//! EVAL, EVALSHA and SCRIPT: programs whose commands take effect together.
//!
//! A script holds the buckets of the keys that it is given, as EXEC does, and of others as it
//! touches them: at once where nobody can wait in a circle or the bucket is free, otherwise by
//! running again with the key known, which nobody notices: what it has written is undone before.

use super::dispatch::{MAY_WRITE, run, write_failure};
use super::eviction;
use super::functions;
use super::help::help;
use super::{Call, Command, Failure, Flags, NOT_INTEGER, Outcome, Subcommand};
use crate::acl::{Context, permitted};
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::resp::args::Args;
use crate::resp::reply::Protocol;
use crate::script::api::Host;
use crate::script::engine::{Compiled, Ended, Engine};
use crate::script::errors::Stop;
use crate::script::header::Header;
use crate::script::running::{Called, LONGEST, Running};
use crate::script::sha1::{self, Sha};
use crate::server::session::{Session, Unheld};
use crate::server::shared::{Shared, Stats};
use crate::server::tracking::Tracked;
use crate::store::{Db, Plan, SetOptions, Transaction};
use std::time::{Duration, Instant};

/// Runs of a script that keeps touching keys nobody has told of; then it runs holding all keys.
pub(super) const MAX_RUNS: usize = 8;
/// How long a script waits for a bucket out of turn, if it can run again instead.
pub(super) const SHORT_WAIT: Duration = Duration::from_millis(5);
/// And if it cannot, because it has written what cannot be undone.
pub(super) const LONG_WAIT: Duration = Duration::from_secs(1);
/// Bytes of a script's text, at most.
const MAX_TEXT: usize = 16 << 20;

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";
const READ_ONLY: &str = "ERR Write commands are not allowed from read-only scripts.";
const NOT_READ_ONLY: &str = "ERR Can not execute a script with write flag using *_ro command.";
const NOT_FROM_SCRIPT: &str = "ERR This Redis command is not allowed from script";
const OUT_OF_REACH: &str = "ERR the script has written more than can be undone, or flushed, and \
touches a key that it has not declared and does not hold; what it has written stays";

pub(super) fn eval<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    eval_text(call, false)
}

pub(super) fn eval_ro<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    eval_text(call, true)
}

pub(super) fn evalsha<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    eval_sha(call, false)
}

pub(super) fn evalsha_ro<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    eval_sha(call, true)
}

fn eval_text<M: Memory>(call: &mut Call<'_, '_, M>, read_only: bool) -> Outcome {
    let keys = key_count(call.args)?;
    let text = call.word(1);
    let sha = sha1::hex(text);
    Engine::with(|engine| {
        let found = engine.find(&sha);
        let is_new = found.is_none();
        let script = match found {
            Some(script) => script,
            None => engine.compile(&sha, checked(text)?)?,
        };
        if keep(&call.db.scripts(), &sha, text)? || is_new {
            call.shared.scripts.note(sha);
        }
        execute(call, engine, &script, (&sha, None), keys, read_only)
    })
}

fn eval_sha<M: Memory>(call: &mut Call<'_, '_, M>, read_only: bool) -> Outcome {
    let keys = key_count(call.args)?;
    let sha = sha1::named(call.word(1)).ok_or(NO_SCRIPT)?;
    let scripts = call.db.scripts();
    Engine::with(|engine| {
        let script = match engine.find(&sha) {
            Some(script) => {
                scripts.meta(&sha)?.ok_or(NO_SCRIPT)?;
                script
            }
            None => {
                let mut text = Vec::new();
                if !scripts.get(&sha, &mut text)? {
                    return Err(NO_SCRIPT.into());
                }
                call.shared.scripts.note(sha);
                engine.compile(&sha, &text)?
            }
        };
        execute(call, engine, &script, (&sha, None), keys, read_only)
    })
}

/// How many of the words from the third on are keys.
fn key_count(args: Args<'_>) -> Result<usize, Failure> {
    counted(args, NOT_INTEGER)
}

/// The same; what to say when the word is not a number.
pub(super) fn counted(args: Args<'_>, not_a_number: &'static str) -> Result<usize, Failure> {
    let count = parse_i64(args.at(2)).ok_or(not_a_number)?;
    if count < 0 {
        return Err("ERR Number of keys can't be negative".into());
    }
    let count = usize::try_from(count).ok().filter(|n| *n <= args.len() - 3);
    count.ok_or_else(|| "ERR Number of keys can't be greater than number of args".into())
}

fn checked(text: &[u8]) -> Result<&[u8], Failure> {
    match text.len() <= MAX_TEXT {
        true => Ok(text),
        false => Err("ERR the script is too long".into()),
    }
}

/// Lets all nodes know a script. Whether they did not.
fn keep<M: Memory>(scripts: &Db<'_, M>, sha: &Sha, text: &[u8]) -> Result<bool, Failure> {
    let is_new = scripts.meta(sha)?.is_none();
    if is_new {
        scripts.set_with(sha, text, SetOptions::default())?;
    }
    Ok(is_new)
}

/// Whether a script's command runs a script that says that it only reads.
pub(super) fn only_reads<M: Memory>(
    shared: &Shared<M>,
    command: &Command<M>,
    args: Args<'_>,
) -> bool {
    if !command.takes(args.len()) {
        return false;
    }
    let mut stored = Vec::new();
    let text = match command.name {
        "eval" => args.at(1),
        "evalsha" => {
            let found = sha1::named(args.at(1))
                .map(|sha| shared.store.first().scripts().get(&sha, &mut stored));
            if !matches!(found, Some(Ok(true))) {
                return false;
            }
            &stored
        }
        "fcall" => return matches!(functions::only_reads(shared, args.at(1)), Ok(true)),
        _ => return false,
    };
    Header::of(text).is_ok_and(|header| header.permissions.no_writes())
}

/// What a script's command touches besides the keys of the script, in the database of scripts:
/// names of scripts, which lie in the same buckets as keys of the same names.
pub(super) fn names<M: Memory>(command: &Command<M>, args: Args<'_>) -> Vec<Vec<u8>> {
    let named = |word| sha1::named(word).map(|sha| sha.to_vec());
    match command.name {
        "eval" | "eval_ro" => vec![sha1::hex(args.at(1)).to_vec()],
        "evalsha" | "evalsha_ro" => named(args.at(1)).into_iter().collect(),
        "script" if args.is(1, "load") => vec![sha1::hex(args.at(2)).to_vec()],
        "script" if args.is(1, "exists") => args.from(2).filter_map(named).collect(),
        "fcall" | "fcall_ro" | "function" => vec![functions::LIBRARIES.to_vec()],
        _ => Vec::new(),
    }
}

/// Whether a command flushes the scripts.
pub(super) fn flushes<M: Memory>(command: &Command<M>, args: Args<'_>) -> bool {
    command.name == "script" && args.is(1, "flush")
}

/// Runs a script, or a function, and again as long as it touches what is not held.
pub(super) fn execute<M: Memory>(
    call: &mut Call<'_, '_, M>,
    engine: &mut Engine,
    script: &Compiled,
    (name, called): (&[u8], Option<Called>),
    keys: usize,
    read_only: bool,
) -> Outcome {
    let no_writes = script.permissions.no_writes();
    if read_only && script.permissions.declared && !no_writes {
        return Err(NOT_READ_ONLY.into());
    }
    let may_grow = script.permissions.allows_oom() || !call.session.over;
    if script.permissions.declared && !no_writes && !may_grow {
        return Err(eviction::REFUSED.into());
    }
    let session = (call.session.db, call.session.protocol);
    let busy_after = call.shared.control.settings.busy_after();
    let entered = call.shared.scripts.enter(called, LONGEST, busy_after);
    let read_only = read_only || no_writes;
    let tracked = call.session.tracked.take();
    call.session.scripted = true;
    let outcome = attempts(
        call,
        engine,
        name,
        script,
        (keys, read_only, may_grow),
        tracked.as_deref(),
        &entered.running,
    );
    (call.session.tracked, call.session.scripted) = (tracked, false);
    if call.session.db != session.0 {
        call.session.select(session.0);
    }
    call.session.protocol = session.1;
    outcome
}

fn attempts<M: Memory>(
    call: &mut Call<'_, '_, M>,
    engine: &mut Engine,
    name: &[u8],
    script: &Compiled,
    (keys, read_only, may_grow): (usize, bool, bool),
    tracked: Option<&Tracked>,
    running: &std::sync::Arc<Running>,
) -> Outcome {
    let (args, db) = (call.args, call.session.db);
    let name = String::from_utf8_lossy(name).into_owned();
    let limit = call.shared.store.key_limit();
    let mut needs = Needs::default();
    for run in 0.. {
        needs.plan.whole |= run >= MAX_RUNS;
        let held = match call.db.scope.is_alone() {
            false => Holding::Given(call.db),
            true => {
                let more = needs.keys.iter().map(Vec::as_slice);
                let all = args
                    .from(3)
                    .take(keys)
                    .chain(more)
                    .filter(|key| key.len() <= limit);
                let mut transaction = call.shared.store.transaction(all, needs.plan)?;
                if !read_only {
                    transaction.keep_journal();
                }
                Holding::Own(transaction)
            }
        };
        call.session.db = db;
        let mut commands = Commands {
            shared: call.shared,
            stats: call.stats,
            session: call.session,
            held,
            read_only,
            may_grow,
            unnoted: tracked.map(|tracked| (tracked, args, keys)),
            running,
            needs: &mut needs,
        };
        let words = (args.from(3).take(keys), args.from(3 + keys));
        let host = (&mut commands as &mut dyn Host, running.clone());
        let ended = engine.run(script, &name, words, host, &mut call.reply)?;
        if matches!(ended, Ended::Replied) {
            break;
        }
        if let Holding::Own(transaction) = &commands.held
            && std::mem::take(&mut commands.needs.wrote)
        {
            transaction.undo()?;
            running.forget_writes();
        }
        // EXEC holds more, or begins anew.
        if call.session.unheld.is_some() {
            return Err(OUT_OF_REACH.into());
        }
    }
    Ok(())
}

/// What a script has touched without having declared it.
#[derive(Default)]
struct Needs {
    keys: Vec<Vec<u8>>,
    plan: Plan,
    /// It has written in this run, which is to be undone before another.
    wrote: bool,
}

/// What is held for a script.
#[allow(clippy::large_enum_variant)] // there is one at a time, on the stack
enum Holding<'a, M: Memory> {
    Own(Transaction<'a, M>),
    /// By EXEC, for all its commands.
    Given(Db<'a, M>),
}

/// Runs a script's commands.
struct Commands<'a, 'c, M: Memory> {
    shared: &'a Shared<M>,
    stats: &'a Stats,
    session: &'c mut Session,
    held: Holding<'a, M>,
    read_only: bool,
    /// What adds something is not refused.
    may_grow: bool,
    /// The client keeps copies of the keys that it has declared, so many of these words from the
    /// fourth on, as soon as the script reads anything.
    unnoted: Option<(&'c Tracked, Args<'c>, usize)>,
    running: &'c Running,
    needs: &'c mut Needs,
}

/// Why a command does not run.
enum Refused {
    Stop(Stop),
    Failure(Failure),
}

impl<F: Into<Failure>> From<F> for Refused {
    fn from(failure: F) -> Self {
        Self::Failure(failure.into())
    }
}

impl<M: Memory> Host for Commands<'_, '_, M> {
    fn command(&mut self, words: Args<'_>, resp3: bool, out: &mut Vec<u8>) -> Result<(), Stop> {
        self.session.protocol = match resp3 {
            true => Protocol::Resp3,
            false => Protocol::Resp2,
        };
        let failure = match self.try_command(words, out) {
            Ok(()) => return Ok(()),
            Err(Refused::Stop(stop)) => return Err(stop),
            Err(Refused::Failure(failure)) => failure,
        };
        out.clear();
        write_failure(&failure, self.session, self.stats, out);
        Ok(())
    }

    fn allows(&self, words: Args<'_>) -> Option<bool> {
        let position = self.shared.commands.find(words.at(0))?;
        Some(permitted(self.shared, self.session, position, words, Context::Script).is_ok())
    }
}

/// Why a script may not read streams as it asks: it cannot wait.
fn waits_for_streams(name: &str, words: Args<'_>) -> Option<String> {
    if !["xread", "xreadgroup"].contains(&name) {
        return None;
    }
    // GROUP is followed by two names.
    let first = if words.is(1, "group") { 4 } else { 1 };
    let mut options = (first..words.len()).take_while(|at| !words.is(*at, "streams"));
    let refusal = format!("ERR {name} command is not allowed with BLOCK option from scripts");
    options.any(|at| words.is(at, "block")).then_some(refusal)
}

impl<M: Memory> Commands<'_, '_, M> {
    fn try_command(&mut self, words: Args<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
        let position = self.shared.commands.find(words.at(0));
        let position = position.ok_or("ERR Unknown Redis command called from script")?;
        let command = self.shared.commands.at(position);
        let catalog = self.shared.control.users.catalog();
        let unit = catalog.unit(position, words);
        if let Err(failure) = self.check(position, words) {
            self.stats.counts.rejected(unit, catalog.units.len());
            return Err(failure.into());
        }
        self.reach(command, words)?;
        // What others are to be told is undone as well.
        if command.flags.has(Flags::WRITE) || command.group == "pubsub" {
            self.needs.wrote = true;
            self.running.note_write();
        }
        let db = match &self.held {
            Holding::Own(transaction) => transaction.db(self.session.db),
            Holding::Given(db) => {
                db.begin_step();
                db.select(self.session.db)
            }
        };
        let db = db.ok_or("ERR DB index is out of range")?;
        if command.flags.has(Flags::READ)
            && let Some((tracked, args, keys)) = self.unnoted.take()
        {
            tracked.note(db, args.from(3).take(keys))?;
        }
        let began = Instant::now();
        let (shared, stats) = (self.shared, self.stats);
        let done = run(shared, stats, self.session, db, command, words, out);
        let failed = matches!(&done, Err(failure) if !matches!(failure, Failure::Block(_)));
        stats
            .counts
            .ran(unit, catalog.units.len(), 1, began.elapsed(), failed);
        done?;
        if self.shared.hub.monitors.any() {
            super::monitor::show(self.shared, self.session, position, words, true);
        }
        Ok(())
    }

    /// Whether the script may run a command.
    fn check(&self, position: usize, words: Args<'_>) -> Outcome {
        let command = self.shared.commands.at(position);
        if !command.takes(words.len()) {
            return Err("ERR Wrong number of args calling Redis command from script".into());
        }
        command.check(words)?;
        permitted(self.shared, self.session, position, words, Context::Script)?;
        if command.flags.has(Flags::NOSCRIPT) {
            return Err(NOT_FROM_SCRIPT.into());
        }
        if command.name == "cluster" && words.is(1, "reset") {
            return Err(NOT_FROM_SCRIPT.into());
        }
        if let Some(refusal) = waits_for_streams(command.name, words) {
            return Err(refusal.into());
        }
        let writes = command.flags.has(Flags::WRITE) || MAY_WRITE.contains(&command.name);
        if self.read_only && writes {
            return Err(READ_ONLY.into());
        }
        if !self.may_grow && eviction::grows(command) {
            return Err(eviction::REFUSED.into());
        }
        Ok(())
    }

    /// Makes sure that what a command touches is held.
    fn reach(&mut self, command: &Command<M>, words: Args<'_>) -> Result<(), Refused> {
        let transaction = match &mut self.held {
            Holding::Own(transaction) => transaction,
            Holding::Given(db) => {
                let Some(mut unheld) = unheld(db, command, words)? else {
                    return Ok(());
                };
                unheld.wrote = self.needs.wrote;
                if unheld.wrote && !db.can_undo() {
                    return Err(OUT_OF_REACH.into());
                }
                self.session.unheld = Some(unheld);
                return Err(Refused::Stop(Stop::Again));
            }
        };
        let last = self.needs.wrote && !transaction.can_undo();
        let wait = if last { LONG_WAIT } else { SHORT_WAIT };
        let mut reached = true;
        if command.flags.has(Flags::FLUSH) && !transaction.may_flush() {
            // After a flush nothing is undone, so nothing may be missing.
            (self.needs.plan.flush, self.needs.plan.whole) = (true, true);
            reached = false;
        }
        let whole = command.flags.has(Flags::WHOLE) || command.keys.are_incomplete(words);
        if whole && !transaction.holds_all() {
            self.needs.plan.whole = true;
            reached &= last && transaction.hold_all(wait)?;
        }
        let limit = self.shared.store.key_limit();
        for i in command.keys.positions(words) {
            let key = words.at(i);
            if key.len() > limit || transaction.holds(key)? {
                continue;
            }
            if !transaction.hold_also(key, wait)? {
                self.needs.keys.push(key.to_vec());
                reached = false;
            }
        }
        match (reached, last) {
            (true, _) => Ok(()),
            (false, false) => Err(Refused::Stop(Stop::Again)),
            (false, true) => Err(OUT_OF_REACH.into()),
        }
    }
}

/// What a command touches that is not held for it.
fn unheld<M: Memory>(
    db: &Db<'_, M>,
    command: &Command<M>,
    words: Args<'_>,
) -> Result<Option<Box<Unheld>>, Failure> {
    let mut unheld = Unheld::default();
    unheld.plan.flush = command.flags.has(Flags::FLUSH) && !db.may_flush();
    let whole = command.flags.has(Flags::WHOLE) || command.keys.are_incomplete(words);
    unheld.plan.whole = (whole || unheld.plan.flush) && !db.holds_all();
    for i in command.keys.positions(words) {
        let key = words.at(i);
        if !db.holds(key)? {
            unheld.keys.push(key.to_vec());
        }
    }
    let any = unheld.plan.flush || unheld.plan.whole || !unheld.keys.is_empty();
    Ok(any.then(|| Box::new(unheld)))
}

pub(super) const fn subcommands<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("load", 3..=3, load),
            ("exists", 3..=usize::MAX, exists),
            ("flush", 2..=3, flush),
            ("kill", 2..=2, kill),
            ("help", 2..=2, help),
        ]
    }
}

fn load<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let text = checked(call.word(2))?;
    let sha = sha1::hex(text);
    Engine::with(|engine| match engine.find(&sha) {
        Some(_) => Ok(()),
        None => engine.compile(&sha, text).map(|_| ()),
    })?;
    keep(&call.db.scripts(), &sha, text)?;
    call.shared.scripts.note(sha);
    call.reply.bulk(&sha);
    Ok(())
}

fn exists<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let scripts = call.db.scripts();
    call.reply.array(call.args.len() - 2);
    for word in call.args.from(2) {
        let known = match sha1::named(word) {
            Some(sha) => scripts.meta(&sha)?.is_some(),
            None => false,
        };
        call.reply.flag(known);
    }
    Ok(())
}

fn flush<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.args.len() == 3 && !call.args.is(2, "sync") && !call.args.is(2, "async") {
        return Err("ERR SCRIPT FLUSH only support SYNC|ASYNC option".into());
    }
    call.db.scripts().flush()?;
    call.shared.scripts.forget_all();
    call.reply.ok();
    Ok(())
}

fn kill<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.shared.scripts.kill(false)?;
    call.reply.ok();
    Ok(())
}
