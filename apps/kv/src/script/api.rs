//! The table `redis` of scripts.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::Arguments;
use super::convert::{self, DIGITS};
use super::decimal::general;
use super::engine::Now;
use super::errors::{Stop, raised, replied};
use super::sha1;
use crate::command::REDIS_VERSION;
use crate::number::push_i64;
use crate::resp::args::{Args, Span};

/// Integers below are written with all their digits.
const EXACT: u64 = 10u64.pow(DIGITS as u32);

/// What runs a script's commands.
pub(crate) trait Host {
    /// Runs a command and appends its reply, which may be an error.
    fn command(&mut self, words: Args<'_>, resp3: bool, out: &mut Vec<u8>) -> Result<(), Stop>;

    /// Whether there is such a command, and the client may send it.
    fn allows(&self, words: Args<'_>) -> Option<bool>;
}

/// Numbers of levels and of replication, by their names.
const CONSTANTS: [(&str, i64); 9] = [
    ("LOG_DEBUG", 0),
    ("LOG_VERBOSE", 1),
    ("LOG_NOTICE", 2),
    ("LOG_WARNING", 3),
    ("REPL_NONE", 0),
    ("REPL_AOF", 1),
    ("REPL_SLAVE", 2),
    ("REPL_REPLICA", 2),
    ("REPL_ALL", 3),
];

/// The table, without what runs commands.
pub(super) fn table(lua: &Lua, now: &Arc<Now>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, value) in CONSTANTS {
        table.raw_set(name, value)?;
    }
    table.raw_set("REDIS_VERSION", REDIS_VERSION)?;
    table.raw_set("REDIS_VERSION_NUM", version_number())?;
    table.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    table.raw_set("error_reply", lua.create_function(error_reply)?)?;
    table.raw_set("status_reply", lua.create_function(status_reply)?)?;
    table.raw_set("log", lua.create_function(log)?)?;
    let now = now.clone();
    let setresp = lua.create_function(move |lua, args| setresp(lua, args, &now.resp3))?;
    table.raw_set("setresp", setresp)?;
    let set_repl = lua.create_function(set_repl)?;
    table.raw_set("set_repl", set_repl)?;
    let yes = lua.create_function(|_, _: MultiValue| Ok(true))?;
    table.raw_set("replicate_commands", yes)?;
    let no = lua.create_function(|_, _: MultiValue| Ok(false))?;
    table.raw_set("breakpoint", no)?;
    let nothing = lua.create_function(|_, _: MultiValue| Ok(()))?;
    table.raw_set("debug", nothing)?;
    Ok(table)
}

/// 7.0.15 as 0x07000f.
fn version_number() -> i64 {
    let parts = REDIS_VERSION
        .split('.')
        .map(|part| part.parse().unwrap_or(0));
    parts.fold(0, |number, part: i64| number << 8 | part)
}

fn sha1hex(lua: &Lua, args: MultiValue) -> mlua::Result<Value> {
    if args.len() != 1 {
        return Err(raised("ERR wrong number of arguments"));
    }
    let text = Arguments::new(lua, "sha1hex", args)
        .bytes(1)
        .unwrap_or_default();
    lua.create_string(sha1::hex(&text)).map(Value::String)
}

/// The only argument, as text.
fn only_text(args: &MultiValue) -> Option<Vec<u8>> {
    match (args.len(), args.front()) {
        (1, Some(Value::String(text))) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

const NOT_TEXT: &[u8] = b"ERR wrong number or type of arguments";

/// An error that a script may return: with a code, if it names one behind a dash.
fn error_reply(lua: &Lua, args: MultiValue) -> mlua::Result<Value> {
    let Some(text) = only_text(&args) else {
        return convert::failure(lua, NOT_TEXT, false);
    };
    let text = text.strip_prefix(b"-").unwrap_or(&text);
    let text = text.trim_ascii_end();
    match text.contains(&b' ') {
        true => convert::failure(lua, text, false),
        false => convert::failure(lua, &[b"ERR ", text].concat(), false),
    }
}

fn status_reply(lua: &Lua, args: MultiValue) -> mlua::Result<Value> {
    let Some(text) = only_text(&args) else {
        return convert::failure(lua, NOT_TEXT, false);
    };
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set("ok", lua.create_string(text)?)?;
    Ok(Value::Table(table))
}

/// There is no log to write to: the arguments are checked.
fn log(_: &Lua, args: MultiValue) -> mlua::Result<()> {
    if args.len() < 2 {
        return Err(raised("ERR redis.log() requires two arguments or more."));
    }
    let level = match args.front() {
        Some(Value::Integer(level)) => *level as f64,
        Some(Value::Number(level)) => *level,
        _ => return Err(raised("ERR First argument must be a number (log level).")),
    };
    match (0.0..4.0).contains(&level) {
        true => Ok(()),
        false => Err(raised("ERR Invalid debug level.")),
    }
}

fn setresp(_: &Lua, args: MultiValue, resp3: &AtomicBool) -> mlua::Result<()> {
    if args.len() != 1 {
        return Err(raised("ERR redis.setresp() requires one argument."));
    }
    match args.front() {
        Some(Value::Integer(2)) => resp3.store(false, Relaxed),
        Some(Value::Integer(3)) => resp3.store(true, Relaxed),
        _ => return Err(raised("ERR RESP version must be 2 or 3.")),
    }
    Ok(())
}

/// There are no replicas: the argument is checked.
fn set_repl(_: &Lua, args: MultiValue) -> mlua::Result<()> {
    match (args.len(), args.front()) {
        (1, Some(Value::Integer(0..=3))) => Ok(()),
        (1, _) => Err(raised(
            "ERR Invalid replication flags. Please use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        )),
        _ => Err(raised("ERR redis.set_repl() requires one argument.")),
    }
}

/// Runs the commands of one script, with buffers that all of them use.
pub(super) struct Caller<'h> {
    host: &'h mut dyn Host,
    resp3: &'h AtomicBool,
    bytes: Vec<u8>,
    spans: Vec<Span>,
    out: Vec<u8>,
}

impl<'h> Caller<'h> {
    pub fn new(host: &'h mut dyn Host, resp3: &'h AtomicBool) -> Self {
        Self {
            host,
            resp3,
            bytes: Vec::new(),
            spans: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Takes in the words of a command.
    fn read(&mut self, words: &MultiValue) -> Result<(), &'static str> {
        self.bytes.clear();
        self.spans.clear();
        if words.is_empty() {
            return Err("ERR Please specify at least one argument for this redis lib call");
        }
        for word in words {
            let start = self.bytes.len() as u32;
            match word {
                Value::String(text) => self.bytes.extend_from_slice(&text.as_bytes()),
                Value::Integer(number) if number.unsigned_abs() < EXACT => {
                    push_i64(*number, &mut self.bytes);
                }
                Value::Integer(number) => {
                    self.bytes.extend(general(*number as f64, DIGITS).bytes());
                }
                Value::Number(number) => self.bytes.extend(general(*number, DIGITS).bytes()),
                _ => return Err("ERR Lua redis lib command arguments must be strings or integers"),
            }
            if self.bytes.len() > 2 * crate::MAX_VALUE {
                return Err("ERR the command is too long");
            }
            self.spans.push((start, self.bytes.len() as u32));
        }
        Ok(())
    }

    /// Runs the command whose words have been read.
    fn run(&mut self) -> Result<(), Stop> {
        self.out.clear();
        let words = Args::new(&self.bytes, &self.spans);
        self.host
            .command(words, self.resp3.load(Relaxed), &mut self.out)
    }
}

/// `redis.acl_check_cmd`.
pub(super) fn acl_check_cmd(caller: &RefCell<Caller<'_>>, words: MultiValue) -> mlua::Result<bool> {
    let busy = |_| raised("ERR a command of the script runs already");
    let mut caller = caller.try_borrow_mut().map_err(busy)?;
    caller.read(&words).map_err(raised)?;
    let words = Args::new(&caller.bytes, &caller.spans);
    let unknown = || raised("ERR Invalid command passed to redis.acl_check_cmd()");
    caller.host.allows(words).ok_or_else(unknown)
}

/// `redis.call`, which raises errors, and `redis.pcall`, which returns them.
pub(super) fn call(
    lua: &Lua,
    caller: &RefCell<Caller<'_>>,
    words: MultiValue,
    raises: bool,
) -> mlua::Result<Value> {
    let busy = |_| raised("ERR a command of the script runs already");
    let mut caller = caller.try_borrow_mut().map_err(busy)?;
    if let Err(text) = caller.read(&words) {
        return match raises {
            true => Err(raised(text)),
            false => convert::failure(lua, text.as_bytes(), false),
        };
    }
    caller.run().map_err(mlua::Error::external)?;
    if raises && let [b'-', text @ .., b'\r', b'\n'] = &caller.out[..] {
        return Err(replied(text));
    }
    convert::to_lua(lua, &mut &caller.out[..])
}
