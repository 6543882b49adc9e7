//! Libraries of functions, as a state of Lua has them loaded.
//!
//! All nodes have the same libraries, which are one value: a number that is another one after every
//! change, and the text of each library. A state whose number is not that one is of no use any
//! more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mlua::{Function, MultiValue, Table, Value};

use super::engine::{Compiled, Engine, unusable};
use super::errors::raised;
use super::header::Permissions;
use super::running::Running;
use super::shelf::{Lent, States};
use crate::command::Failure;
use crate::lock::lock;

/// Bytes of all libraries, at most.
const MAX_CODE: usize = 16 << 20;
/// Functions of all libraries, at most.
const MAX_FUNCTIONS: usize = 2048;
/// Bytes before a library's text: its length.
const LENGTH: usize = 4;
/// Bytes of the number that tells one state of the libraries from another.
pub(crate) const VERSION: usize = 8;

const BAD_NAME: &str = "ERR Library names can only contain letters, numbers, or underscores(_) \
and must be at least one character long";

/// Libraries that a thread has, until it keeps them for the next call of a thread of its worker.
pub(crate) type LentFunctions = Lent<Functions>;

impl LentFunctions {
    pub fn keep(self) {
        if self.state.engine.is_whole() {
            States::ours().functions.put_back(self);
        }
    }
}

/// A function of a library.
#[derive(Clone)]
pub(crate) struct Registered {
    pub name: Vec<u8>,
    pub description: Option<Vec<u8>>,
    pub callback: Compiled,
}

/// A library.
pub(crate) struct Library {
    pub name: Vec<u8>,
    pub code: Vec<u8>,
    pub functions: Vec<Registered>,
}

/// The libraries, loaded.
pub(crate) struct Functions {
    pub engine: Engine,
    version: Vec<u8>,
    pub libraries: Vec<Library>,
    /// By the function's name in lower case: the library and the place in it.
    places: HashMap<Vec<u8>, (usize, usize)>,
}

impl Functions {
    /// Those that this thread's worker has loaded and not lent, if they are of this version.
    pub fn take(version: &[u8]) -> Option<LentFunctions> {
        let is_current = |functions: &Self| functions.version == version;
        States::ours().functions.take(is_current)
    }

    /// Lends them to this thread, which has loaded them.
    pub fn lend(self) -> LentFunctions {
        States::ours().functions.lend(self)
    }

    /// None.
    fn new(version: &[u8]) -> Result<Self, Failure> {
        Ok(Self {
            engine: Engine::new().map_err(|error| unusable(&error))?,
            version: version.to_vec(),
            libraries: Vec::new(),
            places: HashMap::new(),
        })
    }

    /// Loads them from the value that they are kept as.
    pub fn load(value: &[u8], running: &Arc<Running>) -> Result<Self, Failure> {
        let (version, mut rest) = value.split_at(value.len().min(VERSION));
        let mut functions = Self::new(version)?;
        while let Some((len, behind)) = rest.split_first_chunk::<LENGTH>() {
            let len = (u32::from_le_bytes(*len) as usize).min(behind.len());
            let (code, behind) = behind.split_at(len);
            functions.add(code, running)?;
            rest = behind;
        }
        Ok(functions)
    }

    /// The value that they are kept as, with a number that they did not have.
    pub fn value(codes: &[&[u8]]) -> Result<Vec<u8>, Failure> {
        let mut value = fastrand::u64(..).to_le_bytes().to_vec();
        for code in codes {
            value.extend((code.len() as u32).to_le_bytes());
            value.extend_from_slice(code);
        }
        match value.len() <= MAX_CODE {
            true => Ok(value),
            false => Err("ERR the libraries are too long".into()),
        }
    }

    /// The function of this name, in any case.
    pub fn find(&self, name: &[u8]) -> Option<&Registered> {
        let (library, place) = *self.places.get(&name.to_ascii_lowercase())?;
        self.libraries.get(library)?.functions.get(place)
    }

    /// Adds a library.
    fn add(&mut self, code: &[u8], running: &Arc<Running>) -> Result<(), Failure> {
        let (name, len) = library_name(code)?;
        if self.libraries.iter().any(|library| library.name == name) {
            let name = String::from_utf8_lossy(name);
            return Err(format!("ERR Library '{name}' already exists").into());
        }
        let found = Arc::new(Mutex::new(Vec::new()));
        let register = {
            let found = found.clone();
            let register = move |_: &mlua::Lua, args| register(args, &mut lock(&found));
            let register = self.engine.lua().create_function(register);
            register.map_err(|error| unusable(&error))?
        };
        self.engine
            .load_library(&code[len..], register, running.clone())?;
        let functions = std::mem::take(&mut *lock(&found));
        if self.places.len() + functions.len() > MAX_FUNCTIONS {
            return Err("ERR there are too many functions".into());
        }
        if functions.is_empty() {
            return Err("ERR No functions registered".into());
        }
        for (place, function) in functions.iter().enumerate() {
            let function: &Registered = function;
            let key = function.name.to_ascii_lowercase();
            if self.places.contains_key(&key) {
                let name = String::from_utf8_lossy(&function.name);
                return Err(format!("ERR Function {name} already exists").into());
            }
            self.places.insert(key, (self.libraries.len(), place));
        }
        self.libraries.push(Library {
            name: name.to_vec(),
            code: code.to_vec(),
            functions,
        });
        Ok(())
    }
}

/// A library's name by its first line, and the line's length.
pub(crate) fn library_name(code: &[u8]) -> Result<(&[u8], usize), Failure> {
    if !code.starts_with(b"#!") {
        return Err("ERR Missing library metadata".into());
    }
    let end = code.iter().position(|b| *b == b'\n');
    let len = end.ok_or("ERR Invalid library metadata")?;
    let mut words = code[2..len].split(|b| b.is_ascii_whitespace());
    let engine = words.next().unwrap_or_default();
    let words = words.filter(|word| !word.is_empty());
    if !engine.eq_ignore_ascii_case(b"lua") {
        let engine = String::from_utf8_lossy(engine);
        return Err(format!("ERR Engine '{engine}' not found").into());
    }
    let mut name = None;
    for word in words {
        let Some(value) = word.strip_prefix(b"name=") else {
            let word = String::from_utf8_lossy(word);
            return Err(format!("ERR Invalid metadata value given: {word}").into());
        };
        if name.replace(unquoted(value)).is_some() {
            let text = "ERR Invalid metadata value, name argument was given multiple times";
            return Err(text.into());
        }
    }
    let name = name.ok_or("ERR Library name was not given")?;
    match is_name(name) {
        true => Ok((name, len)),
        false => Err(BAD_NAME.into()),
    }
}

/// A word without the quotes around it.
fn unquoted(word: &[u8]) -> &[u8] {
    match word {
        [first @ (b'"' | b'\''), inner @ .., last] if first == last => inner,
        _ => word,
    }
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

fn is_text(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(number) => Some(number.to_string().into_bytes()),
        _ => None,
    }
}

/// `redis.register_function`.
fn register(args: MultiValue, found: &mut Vec<Registered>) -> mlua::Result<()> {
    let registered = match (args.len(), args.front(), args.get(1)) {
        (1, Some(Value::Table(named)), _) => by_names(named)?,
        (1, ..) => {
            return Err(raised(
                "ERR calling redis.register_function with a single argument is only applicable to \
                 Lua table (representing named arguments).",
            ));
        }
        (2, Some(name), Some(callback)) => {
            let name = is_text(name).ok_or_else(|| {
                raised("ERR first argument to redis.register_function must be a string")
            })?;
            let Value::Function(callback) = callback else {
                let text = "ERR second argument to redis.register_function must be a function";
                return Err(raised(text));
            };
            Registered {
                name,
                description: None,
                callback: Compiled::callback(callback.clone(), Permissions::PLAIN),
            }
        }
        _ => {
            return Err(raised(
                "ERR wrong number of arguments to redis.register_function",
            ));
        }
    };
    if !is_name(&registered.name) {
        return Err(raised(BAD_NAME));
    }
    let same = |other: &Registered| other.name.eq_ignore_ascii_case(&registered.name);
    if found.iter().any(same) {
        return Err(raised("ERR Function already exists in the library"));
    }
    found.push(registered);
    Ok(())
}

/// A function whose parts are named.
fn by_names(named: &Table) -> mlua::Result<Registered> {
    let (mut name, mut description) = (None, None);
    let mut callback: Option<Function> = None;
    let mut permissions = Permissions::PLAIN;
    for pair in named.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let key = is_text(&key).ok_or_else(|| {
            raised("ERR named argument key given to redis.register_function is not a string")
        })?;
        match (&key[..], &value) {
            (b"function_name", value) => {
                let text = "ERR function_name argument given to redis.register_function must be a \
                            string";
                name = Some(is_text(value).ok_or_else(|| raised(text))?);
            }
            (b"description", value) => {
                let text = "ERR description argument given to redis.register_function must be a \
                            string";
                description = Some(is_text(value).ok_or_else(|| raised(text))?);
            }
            (b"callback", Value::Function(function)) => callback = Some(function.clone()),
            (b"callback", _) => {
                let text = "ERR callback argument given to redis.register_function must be a \
                            function";
                return Err(raised(text));
            }
            (b"flags", Value::Table(flags)) => {
                for flag in flags.sequence_values::<Value>() {
                    let known = is_text(&flag?).and_then(|flag| permissions.with(&flag));
                    permissions = known.ok_or_else(|| raised("ERR unknown flag given"))?;
                }
            }
            (b"flags", _) => {
                let text = "ERR flags argument to redis.register_function must be a table \
                            representing function flags";
                return Err(raised(text));
            }
            _ => {
                let text = "ERR unknown argument given to redis.register_function";
                return Err(raised(text));
            }
        }
    }
    let missing = "ERR redis.register_function must get a function name argument";
    let name = name.ok_or_else(|| raised(missing))?;
    let missing = "ERR redis.register_function must get a callback argument";
    let callback = callback.ok_or_else(|| raised(missing))?;
    Ok(Registered {
        name,
        description,
        callback: Compiled::callback(callback, permissions),
    })
}
