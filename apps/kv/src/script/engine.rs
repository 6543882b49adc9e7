//! Lua, as a script has it: a state, the scripts it has compiled, and what they may use.
//!
//! A state outlives scripts, and scripts share nothing in it that they can change. The threads of a
//! worker have its states in turns (`shelf.rs`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use mlua::{
    ChunkMode, Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState,
};

use super::api::{self, Host};
use super::convert::{self, Writer};
use super::errors::{Cause, Stop, raised};
use super::header::{Header, Permissions};
use super::libraries;
use super::running::Running;
use super::sha1::Sha;
use super::shelf::States;
use crate::command::Failure;
use crate::lock::lock;
use crate::resp::reply::Reply;

/// Scripts that a state keeps compiled.
const MAX_COMPILED: usize = 1024;
/// Bytes of memory that the scripts of a state have together, their texts as compiled included.
const MAX_HEAP: usize = 256 << 20;
/// Bytes above which a state is swept when a script has ended.
const SWEEP_ABOVE: usize = 16 << 20;
/// Instructions between two looks at whether the script is to end.
const STRIDE: u32 = 10_000;

/// What is so of the script that runs. Nobody waits for its locks: one thread at a time has a
/// state.
#[derive(Default)]
pub(super) struct Now {
    running: Mutex<Option<Arc<Running>>>,
    /// Where it was stopped.
    stopped: Mutex<Option<String>>,
    /// It has chosen version 3 of the protocol for its commands' replies.
    pub resp3: AtomicBool,
}

/// A script, compiled.
#[derive(Clone)]
pub(crate) struct Compiled {
    function: Function,
    /// It is a library's function, which gets its words as arguments.
    callback: bool,
    pub permissions: Permissions,
}

/// A state of Lua.
pub(crate) struct Engine {
    lua: Lua,
    /// The globals of scripts.
    env: Table,
    /// What shows through them.
    base: Table,
    redis: Table,
    start: Function,
    start_function: Function,
    /// Begins to load a library, with what registers functions, or is done with it.
    loading: Function,
    /// Scripts by name. Their functions are in `functions`: of values that Rust holds there can be
    /// some thousand only.
    compiled: HashMap<Sha, Permissions>,
    functions: Table,
    now: Arc<Now>,
    /// A panic has gone through it.
    broken: bool,
}

impl Compiled {
    /// A function of a library.
    pub(super) fn callback(function: Function, permissions: Permissions) -> Self {
        Self {
            function,
            callback: true,
            permissions,
        }
    }
}

/// How a script ended.
pub(crate) enum Ended {
    /// Its reply is written.
    Replied,
    /// It is to run again.
    Again,
}

impl Engine {
    /// Lets `f` use a state of this thread's worker that no other script uses.
    pub fn with<R>(f: impl FnOnce(&mut Engine) -> Result<R, Failure>) -> Result<R, Failure> {
        let engines = &States::ours().engines;
        let mut lent = match engines.take(|_| true) {
            Some(lent) => lent,
            None => engines.lend(Engine::new().map_err(|error| unusable(&error))?),
        };
        let result = f(&mut lent.state);
        if lent.state.is_whole() {
            engines.put_back(lent);
        }
        result
    }

    pub(super) fn new() -> mlua::Result<Self> {
        let parts = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(parts, LuaOptions::default())?;
        lua.set_memory_limit(MAX_HEAP)?;
        let now = Arc::new(Now::default());
        let (native, env, base) = (lua.globals(), lua.create_table()?, lua.create_table()?);
        let redis = api::table(&lua, &now)?;
        let shared = lua.create_table()?;
        for name in ["string", "table", "math", "coroutine"] {
            shared.raw_set(name, native.raw_get::<Table>(name)?)?;
        }
        shared.raw_set("redis", &redis)?;
        libraries::install(&lua, &shared)?;
        libraries::load::install(&lua, &base, &env)?;
        let fix = lua.create_function(|lua, (problem, text)| fix(lua, problem, text))?;
        let fatal = lua.create_function(|_, value: Value| Ok(Cause::stop(&value).is_some()))?;
        let placed = lua.create_function(placed)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=rackmem");
        let parts = (native, &env, &base, shared, fix, fatal, placed);
        let (start, start_function, loading): (Function, Function, Function) =
            prelude.call(parts)?;
        lua.set_globals(env.clone())?;
        watch(&lua, &now)?;
        let functions = lua.create_table()?;
        Ok(Self {
            lua,
            env,
            base,
            redis,
            start,
            start_function,
            loading,
            compiled: HashMap::new(),
            functions,
            now,
            broken: false,
        })
    }

    /// The script of this name, if this worker has it.
    pub fn find(&self, sha: &Sha) -> Option<Compiled> {
        let permissions = *self.compiled.get(sha)?;
        let name = self.lua.create_string(sha).ok()?;
        Some(Compiled {
            function: self.functions.raw_get(name).ok()?,
            callback: false,
            permissions,
        })
    }

    /// Compiles a script, and keeps it.
    pub fn compile(&mut self, sha: &Sha, text: &[u8]) -> Result<Compiled, Failure> {
        let header = Header::of(text)?;
        let chunk = self.lua.load(&text[header.len..]).set_name("@user_script");
        let chunk = chunk
            .set_mode(ChunkMode::Text)
            .set_environment(self.env.clone());
        let function = chunk.into_function().map_err(|error| uncompiled(&error))?;
        let compiled = Compiled {
            function,
            callback: false,
            permissions: header.permissions,
        };
        if self.compiled.len() >= MAX_COMPILED {
            self.compiled.clear();
            self.functions.clear().map_err(|error| unusable(&error))?;
        }
        let name = self.lua.create_string(sha);
        name.and_then(|name| self.functions.raw_set(name, &compiled.function))
            .map_err(|error| unusable(&error))?;
        self.compiled.insert(*sha, compiled.permissions);
        Ok(compiled)
    }

    /// Runs a script and writes what it returns.
    pub fn run<'w>(
        &mut self,
        script: &Compiled,
        name: &str,
        (keys, args): (
            impl Iterator<Item = &'w [u8]>,
            impl Iterator<Item = &'w [u8]>,
        ),
        (host, running): (&mut dyn Host, Arc<Running>),
        reply: &mut Reply<'_>,
    ) -> Result<Ended, Failure> {
        *lock(&self.now.running) = Some(running);
        self.now.resp3.store(false, Relaxed);
        let ended = self.run_prepared(script, name, (keys, args), host, reply);
        *lock(&self.now.running) = None;
        self.tidy();
        ended
    }

    fn run_prepared<'w>(
        &mut self,
        script: &Compiled,
        name: &str,
        (keys, args): (
            impl Iterator<Item = &'w [u8]>,
            impl Iterator<Item = &'w [u8]>,
        ),
        host: &mut dyn Host,
        reply: &mut Reply<'_>,
    ) -> Result<Ended, Failure> {
        let words = self.words(keys, args).map_err(|error| unusable(&error))?;
        // Where Rust would hold too many of Lua's values at once, mlua panics.
        let called = catch_unwind(AssertUnwindSafe(|| self.call(script, words, host)));
        let Ok(returned) = called else {
            self.broken = true;
            return Err("ERR Lua: too many values at once".into());
        };
        let returned = returned.map_err(|error| unusable(&error))?;
        let mut returned = returned.into_iter();
        let done = matches!(returned.next(), Some(Value::Boolean(true)));
        let value = returned.next().unwrap_or(Value::Nil);
        match Cause::stop(&value) {
            Some(Stop::Again) => return Ok(Ended::Again),
            Some(stop) => {
                let place = lock(&self.now.stopped).take().unwrap_or_default();
                return Err(format!("{stop} script: {name}{place}").into());
            }
            None => {}
        }
        if !done {
            return Err(unfinished(&value, name).map_err(|error| unusable(&error))?);
        }
        if let Some(failure) = convert::returned(&value).map_err(|error| unusable(&error))? {
            return Err(failure);
        }
        let resp3 = self.now.resp3.load(Relaxed);
        let written = Writer { reply, resp3 }.value(&value, 0);
        written.map_err(|error| unusable(&error))?;
        Ok(Ended::Replied)
    }

    /// Keys and other arguments as tables.
    fn words<'w>(
        &self,
        keys: impl Iterator<Item = &'w [u8]>,
        args: impl Iterator<Item = &'w [u8]>,
    ) -> mlua::Result<(Table, Table)> {
        let lua = &self.lua;
        let (key_table, arg_table) = (lua.create_table()?, lua.create_table()?);
        for (i, key) in keys.enumerate() {
            key_table.raw_set(i + 1, lua.create_string(key)?)?;
        }
        for (i, arg) in args.enumerate() {
            arg_table.raw_set(i + 1, lua.create_string(arg)?)?;
        }
        Ok((key_table, arg_table))
    }

    fn call(
        &self,
        script: &Compiled,
        (keys, args): (Table, Table),
        host: &mut dyn Host,
    ) -> mlua::Result<MultiValue> {
        let resp3 = &self.now.resp3;
        let caller = RefCell::new(api::Caller::new(host, resp3));
        self.lua.scope(|scope| {
            let call = scope.create_function(|lua, words| api::call(lua, &caller, words, true))?;
            let pcall =
                scope.create_function(|lua, words| api::call(lua, &caller, words, false))?;
            let allows = scope.create_function(|_, words| api::acl_check_cmd(&caller, words))?;
            self.redis.raw_set("acl_check_cmd", allows)?;
            self.redis.raw_set("call", call)?;
            self.redis.raw_set("pcall", pcall)?;
            if script.callback {
                return self.start_function.call((&script.function, keys, args));
            }
            self.base.raw_set("KEYS", keys)?;
            self.base.raw_set("ARGV", args)?;
            self.start.call(&script.function)
        })
    }

    /// Runs a library, which registers its functions with `redis.register_function`.
    pub(super) fn load_library(
        &self,
        code: &[u8],
        register: Function,
        running: Arc<Running>,
    ) -> Result<(), Failure> {
        let chunk = self.lua.load(code).set_name("@user_function");
        let chunk = chunk
            .set_mode(ChunkMode::Text)
            .set_environment(self.env.clone());
        let library = chunk.into_function().map_err(|error| {
            let text = lua_text(&error);
            Failure::from(format!("ERR Error compiling function: {text}"))
        })?;
        *lock(&self.now.running) = Some(running);
        let loaded = self
            .loading
            .call::<()>(register)
            .and_then(|()| self.start.call::<MultiValue>(library));
        *lock(&self.now.running) = None;
        let late = self
            .lua
            .create_function(|_, _: MultiValue| -> mlua::Result<()> {
                let text =
                    "ERR redis.register_function can only be called on FUNCTION LOAD command";
                Err(raised(text))
            });
        let removed = late.and_then(|late| self.loading.call::<()>((Value::Nil, late)));
        self.tidy();
        removed.map_err(|error| unusable(&error))?;
        let mut loaded = loaded.map_err(|error| unusable(&error))?.into_iter();
        let done = matches!(loaded.next(), Some(Value::Boolean(true)));
        let problem = loaded.next().unwrap_or(Value::Nil);
        if done {
            return Ok(());
        }
        let text = match &problem {
            Value::Table(table) => match table.raw_get::<Value>("err") {
                Ok(Value::String(text)) => text.to_string_lossy(),
                _ => "ERR unknown error".into(),
            },
            Value::Error(error) => lua_text(error),
            _ => "ERR unknown error".into(),
        };
        Err(format!("ERR Error registering functions: {text}").into())
    }

    /// Whether it can be used again.
    pub(super) fn is_whole(&self) -> bool {
        !self.broken
    }

    /// The state, to make functions for it.
    pub(super) fn lua(&self) -> &Lua {
        &self.lua
    }

    /// Undoes what a script may have done to the state.
    fn tidy(&self) {
        self.lua.gc_restart();
        if self.lua.used_memory() > SWEEP_ABOVE {
            // Fails only when a finalizer does, and there are none.
            let _ = self.lua.gc_collect();
        }
    }
}

/// Looks now and then whether the script that runs is to end.
fn watch(lua: &Lua, now: &Arc<Now>) -> mlua::Result<()> {
    let now = now.clone();
    let stride = HookTriggers::new().every_nth_instruction(STRIDE);
    lua.set_global_hook(stride, move |_, frame| {
        // What is done besides may last: it is not held meanwhile.
        let Some(running) = lock(&now.running).clone() else {
            return Ok(VmState::Continue);
        };
        running.pause();
        match running.verdict() {
            Some(stop) => {
                let source = frame.source().source.filter(|source| *source != "=rackmem");
                let place = source.zip(frame.current_line());
                let place = place.map(|(source, line)| format!(", on {source}:{line}."));
                *lock(&now.stopped) = place;
                Err(mlua::Error::external(stop))
            }
            None => Ok(VmState::Continue),
        }
    })
}

/// An error as a script's own code sees it: as a table, or as its text.
fn fix(lua: &Lua, problem: Value, text: bool) -> mlua::Result<Value> {
    let problem = match &problem {
        Value::Error(error) => match Cause::of(error) {
            Cause::Raised(error) if text => Value::String(lua.create_string(error.text)?),
            Cause::Raised(error) => convert::failure(lua, &error.text, error.counted)?,
            Cause::Stop(stop) => return Err(mlua::Error::external(stop)),
            Cause::Lua(error) => Value::String(lua.create_string(error)?),
        },
        Value::String(error) => Value::String(without_prelude(lua, error)?),
        _ => problem,
    };
    match &problem {
        Value::Table(table) if text => match table.raw_get::<Value>("err")? {
            Value::Nil => Ok(problem),
            error => Ok(error),
        },
        _ => Ok(problem),
    }
}

/// Without the place in the prelude, which is not of interest to scripts.
fn without_prelude(lua: &Lua, error: &mlua::String) -> mlua::Result<mlua::String> {
    let text = error.as_bytes();
    match text.strip_prefix(b"rackmem:") {
        Some(rest) => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            lua.create_string(rest[digits..].strip_prefix(b": ").unwrap_or(rest))
        }
        None => Ok(error.clone()),
    }
}

/// An error that ends a script, with where it was raised.
fn placed(lua: &Lua, problem: Value) -> mlua::Result<Value> {
    if Cause::stop(&problem).is_some() {
        return Ok(problem);
    }
    let table = match fix(lua, problem, false)? {
        Value::Table(table) => table,
        other => {
            let text = libraries::shown(lua, &other)?;
            let table = lua.create_table()?;
            table.raw_set("err", lua.create_string([b"ERR ", &text[..]].concat())?)?;
            table
        }
    };
    for level in 1.. {
        let frame = lua.inspect_stack(level, |frame| {
            let source = frame.source().source.map(|source| source.into_owned());
            (source.unwrap_or_default(), frame.current_line())
        });
        let Some((source, line)) = frame else {
            break;
        };
        if let Some(line) = line.filter(|_| source != "=rackmem") {
            table.raw_set("source", source)?;
            table.raw_set("line", line)?;
            break;
        }
    }
    Ok(Value::Table(table))
}

/// The reply to a script that has failed with `problem`.
fn unfinished(problem: &Value, name: &str) -> mlua::Result<Failure> {
    let Value::Table(problem) = problem else {
        return Ok(match problem {
            Value::String(text) => [b"ERR ", &text.as_bytes()[..]].concat().into(),
            _ => "ERR unknown error".into(),
        });
    };
    let text = match problem.raw_get::<Value>("err")? {
        Value::String(text) => text.as_bytes().to_vec(),
        _ => b"ERR unknown error".to_vec(),
    };
    let mut text = text.strip_prefix(b"-").unwrap_or(&text).to_vec();
    text.extend_from_slice(format!(" script: {name}").as_bytes());
    if let Value::String(source) = problem.raw_get("source")? {
        text.extend_from_slice(b", on ");
        text.extend_from_slice(&source.as_bytes());
        if let Value::Integer(line) = problem.raw_get("line")? {
            text.extend_from_slice(format!(":{line}").as_bytes());
        }
        text.push(b'.');
    }
    convert::failed(problem, text)
}

fn uncompiled(error: &mlua::Error) -> Failure {
    let text = lua_text(error);
    format!("ERR Error compiling script (new function): {text}").into()
}

fn lua_text(error: &mlua::Error) -> String {
    match Cause::of(error) {
        Cause::Lua(text) => text,
        Cause::Raised(raised) => raised.to_string(),
        Cause::Stop(stop) => stop.to_string(),
    }
}

/// Lua itself has failed, which is out of memory when it does.
pub(super) fn unusable(error: &mlua::Error) -> Failure {
    match Cause::of(error) {
        Cause::Raised(raised) => raised.text.into(),
        Cause::Stop(stop) => stop.to_string().into(),
        Cause::Lua(text) => format!("ERR Lua: {text}").into(),
    }
}
