//! FCALL and FUNCTION: functions that the rack knows, in libraries.

use std::sync::Arc;

use super::help::help;
use super::scripting::{counted, execute};
use super::{Call, Failure, Outcome, Subcommand};
use crate::glob;
use crate::memory::Memory;
use crate::rdb::{Cause, dump};
use crate::resp::args::Args;
use crate::resp::reply::Reply;
use crate::script::functions::{Functions, LentFunctions, Library, VERSION, library_name};
use crate::script::running::{Called, Entered, LOADING, Running};
use crate::server::shared::Shared;
use crate::store::{Db, Plan, SetOptions};

/// Where the libraries are, in the database that no client sees.
pub(super) const LIBRARIES: &[u8] = b"functions:libraries";

const BAD_POLICY: &str =
    "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.";

pub(super) fn fcall<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call_function(call, false)
}

pub(super) fn fcall_ro<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call_function(call, true)
}

fn call_function<M: Memory>(call: &mut Call<'_, '_, M>, read_only: bool) -> Outcome {
    with(call, |call, functions| {
        let function = functions.find(call.word(1));
        let function = function.ok_or("ERR Function not found")?.clone();
        let keys = counted(call.args, "ERR Bad number of keys provided")?;
        let name = (&function.name[..], Some(called(functions, call.args)));
        let engine = &mut functions.engine;
        execute(call, engine, &function.callback, name, keys, read_only)
    })
}

/// What others are told of a call.
fn called(functions: &Functions, args: Args<'_>) -> Called {
    let libraries = &functions.libraries;
    Called {
        words: Some(args.into()),
        libraries: libraries.len(),
        functions: libraries.iter().map(|l| l.functions.len()).sum(),
    }
}

/// Lets `f` use the libraries as they are now.
fn with<M: Memory>(
    call: &mut Call<'_, '_, M>,
    f: impl FnOnce(&mut Call<'_, '_, M>, &mut Functions) -> Outcome,
) -> Outcome {
    let mut functions = loaded(call.shared, call.db)?;
    let outcome = f(call, &mut functions.state);
    functions.keep();
    outcome
}

/// The libraries as they are now, as this thread's worker has them, or will.
fn loaded<M: Memory>(shared: &Shared<M>, db: Db<'_, M>) -> Result<LentFunctions, Failure> {
    let internal = db.internal();
    let mut version = Vec::new();
    internal.get_range(LIBRARIES, 0, VERSION as i64 - 1, &mut version)?;
    match Functions::take(&version) {
        Some(functions) => Ok(functions),
        None => Ok(read(&internal, &loading(shared).running)?.lend()),
    }
}

/// Whether a function says that it only reads.
pub(super) fn only_reads<M: Memory>(shared: &Shared<M>, name: &[u8]) -> Result<bool, Failure> {
    let functions = loaded(shared, shared.store.first())?;
    let found = functions.state.find(name);
    let only_reads = found.is_some_and(|function| function.callback.permissions.no_writes());
    functions.keep();
    Ok(only_reads)
}

fn read<M: Memory>(internal: &Db<'_, M>, running: &Arc<Running>) -> Result<Functions, Failure> {
    let mut value = Vec::new();
    internal.get(LIBRARIES, &mut value)?;
    Functions::load(&value, running)
}

pub(super) const fn subcommands<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("load", 3..=usize::MAX, load),
            ("delete", 3..=3, delete),
            ("flush", 2..=3, flush),
            ("list", 2..=usize::MAX, list),
            ("dump", 2..=2, dump),
            ("restore", 3..=4, restore),
            ("stats", 2..=2, stats),
            ("kill", 2..=2, kill),
            ("help", 2..=2, help),
        ]
    }
}

/// Libraries are about to be loaded.
fn loading<M: Memory>(shared: &Shared<M>) -> Entered<'_> {
    let busy_after = shared.control.settings.busy_after();
    let called = Some(Called::default());
    shared.scripts.enter(called, LOADING, busy_after)
}

/// Changes the libraries in one step: `f` says which texts there are from now on.
fn change<M: Memory>(
    call: &Call<'_, '_, M>,
    f: impl FnOnce(&[Library]) -> Result<Vec<Vec<u8>>, Failure>,
) -> Outcome {
    let running = loading(call.shared);
    let apply = |internal: Db<'_, M>| {
        let have = read(&internal, &running.running)?;
        let codes = f(&have.libraries)?;
        let codes: Vec<&[u8]> = codes.iter().map(Vec::as_slice).collect();
        let value = Functions::value(&codes)?;
        // They must load at every node: whether they do is found out here.
        let loaded = Functions::load(&value, &running.running)?;
        internal.set_with(LIBRARIES, &value, SetOptions::default())?;
        loaded.lend().keep();
        Ok(())
    };
    if !call.db.scope.is_alone() {
        return apply(call.db.internal());
    }
    let held = call
        .shared
        .store
        .transaction([LIBRARIES], Plan::default())?;
    let db = held.db(0).ok_or("ERR DB index is out of range")?;
    apply(db.internal())
}

fn load<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let last = call.args.len() - 1;
    if let Some(at) = (2..last).find(|at| !call.args.is(*at, "replace")) {
        let word = String::from_utf8_lossy(call.word(at));
        return Err(format!("ERR Unknown option given: {word}").into());
    }
    let (replace, code) = (last > 2, call.word(last));
    let (name, _) = library_name(code)?;
    change(call, |libraries| {
        let others = libraries
            .iter()
            .filter(|library| !replace || library.name != name);
        let mut codes: Vec<_> = others.map(|library| library.code.clone()).collect();
        codes.push(code.to_vec());
        Ok(codes)
    })?;
    call.reply.bulk(name);
    Ok(())
}

fn delete<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let name = call.word(2);
    change(call, |libraries| {
        let others = libraries.iter().filter(|library| library.name != name);
        let codes: Vec<_> = others.map(|library| library.code.clone()).collect();
        match codes.len() < libraries.len() {
            true => Ok(codes),
            false => Err("ERR Library not found".into()),
        }
    })?;
    call.reply.ok();
    Ok(())
}

fn flush<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.args.len() == 3 && !call.args.is(2, "sync") && !call.args.is(2, "async") {
        return Err("ERR FUNCTION FLUSH only supports SYNC|ASYNC option".into());
    }
    change(call, |_| Ok(Vec::new()))?;
    call.reply.ok();
    Ok(())
}

fn dump<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    with(call, |call, functions| {
        let texts = functions.libraries.iter().map(|library| &library.code[..]);
        call.reply.bulk(&dump::libraries_payload(texts));
        Ok(())
    })
}

/// What becomes of the libraries that there are when others are restored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// They go.
    Flush,
    /// They stay, and none may have the name of a restored one.
    Append,
    /// They stay, but for those of a restored one's name.
    Replace,
}

/// FUNCTION RESTORE payload [FLUSH | APPEND | REPLACE]
fn restore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let policy = match call.args.len() {
        3 => Policy::Append,
        _ if call.args.is(3, "flush") => Policy::Flush,
        _ if call.args.is(3, "append") => Policy::Append,
        _ if call.args.is(3, "replace") => Policy::Replace,
        _ => return Err(BAD_POLICY.into()),
    };
    let texts = dump::libraries(call.word(2)).map_err(|error| match error.cause {
        Cause::Malformed(_) => "ERR given type is not a function",
        _ => "ERR DUMP payload version or checksum are wrong",
    })?;
    change(call, |libraries| {
        let names = texts.iter().map(|text| Ok(library_name(text)?.0));
        let names = names.collect::<Result<Vec<_>, Failure>>()?;
        let is_restored = |library: &&Library| names.contains(&&library.name[..]);
        let first = libraries.iter().find(is_restored);
        if let Some(library) = first.filter(|_| policy == Policy::Append) {
            let name = String::from_utf8_lossy(&library.name);
            return Err(format!("ERR Library {name} already exists").into());
        }
        let kept = libraries
            .iter()
            .filter(|library| policy != Policy::Flush && !is_restored(library));
        let kept = kept.map(|library| library.code.clone());
        Ok(kept.chain(texts.iter().cloned()).collect())
    })?;
    call.reply.ok();
    Ok(())
}

/// FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]
fn list<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (mut pattern, mut code, mut at) = (None, false, 2);
    while at < call.args.len() {
        if call.args.is(at, "withcode") && !code {
            code = true;
        } else if call.args.is(at, "libraryname") && pattern.is_none() {
            at += 1;
            let word = call.args.get(at);
            pattern = Some(word.ok_or("ERR library name argument was not given")?);
        } else {
            let word = String::from_utf8_lossy(call.word(at));
            return Err(format!("ERR Unknown argument {word}").into());
        }
        at += 1;
    }
    with(call, |call, functions| {
        let wanted = |library: &&Library| {
            pattern.is_none_or(|pattern| glob::matches(pattern, &library.name, true))
        };
        let libraries: Vec<_> = functions.libraries.iter().filter(wanted).collect();
        call.reply.array(libraries.len());
        for library in libraries {
            describe(library, code, &mut call.reply);
        }
        Ok(())
    })
}

fn describe(library: &Library, code: bool, reply: &mut Reply<'_>) {
    reply.map(if code { 4 } else { 3 });
    reply.bulk(b"library_name");
    reply.bulk(&library.name);
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(&function.name);
        reply.bulk(b"description");
        reply.maybe(function.description.as_deref());
        reply.bulk(b"flags");
        let flags = function.callback.permissions.names();
        let flags: Vec<_> = flags.collect();
        reply.set(flags.len());
        flags.iter().for_each(|flag| reply.simple(flag));
    }
    if code {
        reply.bulk(b"library_code");
        reply.bulk(&library.code);
    }
}

fn stats<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let running = call.shared.scripts.function();
    if let Some(busy) = call.session.busy {
        // In the middle of a script nothing is looked up.
        let running = running.ok_or(busy)?;
        let known = running.function.as_ref().ok_or(busy)?;
        show(
            &mut call.reply,
            Some(&running),
            (known.libraries, known.functions),
        );
        return Ok(());
    }
    with(call, |call, functions| {
        let libraries = &functions.libraries;
        let count = libraries.iter().map(|l| l.functions.len()).sum();
        show(
            &mut call.reply,
            running.as_deref(),
            (libraries.len(), count),
        );
        Ok(())
    })
}

/// The reply of FUNCTION STATS.
fn show(reply: &mut Reply<'_>, running: Option<&Running>, (libraries, count): (usize, usize)) {
    reply.map(2);
    reply.bulk(b"running_script");
    let called = running.and_then(|running| Some((running, running.function.as_ref()?)));
    match called.and_then(|(running, called)| Some((running, called.words.as_ref()?.args()))) {
        None => reply.nil(),
        Some((running, words)) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(words.at(1));
            reply.bulk(b"command");
            reply.array(words.len());
            words.from(0).for_each(|word| reply.bulk(word));
            reply.bulk(b"duration_ms");
            reply.int(running.millis() as i64);
        }
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.count(libraries);
    reply.bulk(b"functions_count");
    reply.count(count);
}

fn kill<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.shared.scripts.kill(true)?;
    call.reply.ok();
    Ok(())
}
