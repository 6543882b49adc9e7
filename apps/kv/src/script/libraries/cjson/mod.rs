//! `cjson`: JSON.

mod decode;
mod encode;

use std::sync::{Arc, Mutex};

use mlua::{Lua, MultiValue, Table, Value};

use crate::lock::lock;
use crate::script::arguments::Arguments;

/// How deep tables may lie in tables, whatever a script says.
const DEPTH: usize = 1000;
/// What a script may set a number to.
const MAX_SETTING: f64 = i32::MAX as f64;

/// What a script may set.
#[derive(Clone, Copy, Debug)]
struct Settings {
    encode_depth: usize,
    decode_depth: usize,
    /// Digits of numbers.
    precision: usize,
    /// A sparse array becomes an object, rather than an error.
    sparse_convert: bool,
    /// An array is sparse if its last index is more than so many times its elements, 0 for never,
    sparse_ratio: i64,
    /// and above this.
    sparse_safe: i64,
    /// Numbers that JSON does not have, in both directions.
    encode_invalid: Invalid,
    decode_invalid: bool,
}

/// What to write for a number that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Invalid {
    Refused,
    Written,
    Null,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            encode_depth: DEPTH,
            decode_depth: DEPTH,
            precision: 14,
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_invalid: Invalid::Refused,
            decode_invalid: true,
        }
    }
}

/// Of one state of Lua, which one thread has at a time.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Settings>>);

impl Shared {
    fn get(&self) -> Settings {
        *lock(&self.0)
    }

    fn set(&self, settings: Settings) {
        *lock(&self.0) = settings;
    }
}

/// The table, with settings of its own.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let settings = Shared::default();
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    table.raw_set("null", Value::NULL)?;
    let shared = settings.clone();
    let encode = lua.create_function(move |lua, args: MultiValue| {
        let args = Arguments::new(lua, "encode", args);
        match (args.len(), args.get(1)) {
            (1, Some(value)) => encode::text(lua, value, &shared.get()),
            _ => Err(args.bad(1, "expected 1 argument")),
        }
    })?;
    table.raw_set("encode", encode)?;
    let shared = settings.clone();
    let decode = lua.create_function(move |lua, args: MultiValue| {
        let args = Arguments::new(lua, "decode", args);
        match args.len() {
            1 => decode::value(lua, &args.bytes(1)?, &shared.get()),
            _ => Err(args.bad(1, "expected 1 argument")),
        }
    })?;
    table.raw_set("decode", decode)?;
    table.raw_set("new", lua.create_function(|lua, ()| self::table(lua))?)?;
    install_settings(lua, &table, &settings)?;
    Ok(table)
}

/// A setting that is an integer: its function, its range, and how it is read and set.
type Integer = (&'static str, (f64, f64), fn(&mut Settings) -> &mut usize);

const INTEGERS: [Integer; 3] = [
    ("encode_max_depth", (1.0, MAX_SETTING), |s| {
        &mut s.encode_depth
    }),
    ("decode_max_depth", (1.0, MAX_SETTING), |s| {
        &mut s.decode_depth
    }),
    ("encode_number_precision", (1.0, 14.0), |s| &mut s.precision),
];

fn install_settings(lua: &Lua, table: &Table, settings: &Shared) -> mlua::Result<()> {
    for (name, range, field) in INTEGERS {
        let shared = settings.clone();
        let function = lua.create_function(move |lua, args: MultiValue| {
            let args = Arguments::new(lua, name, args);
            let mut settings = shared.get();
            let have = *field(&mut settings) as f64;
            let value = ranged(&args, 1, have, range)?;
            *field(&mut settings) = value as usize;
            shared.set(settings);
            Ok(value)
        })?;
        table.raw_set(name, function)?;
    }
    let shared = settings.clone();
    let sparse = lua.create_function(move |lua, args: MultiValue| {
        let args = Arguments::new(lua, "encode_sparse_array", args);
        let mut settings = shared.get();
        settings.sparse_convert = switch(&args, settings.sparse_convert)?;
        let range = (0.0, MAX_SETTING);
        settings.sparse_ratio = ranged(&args, 2, settings.sparse_ratio as f64, range)? as i64;
        settings.sparse_safe = ranged(&args, 3, settings.sparse_safe as f64, range)? as i64;
        shared.set(settings);
        let Settings {
            sparse_convert,
            sparse_ratio,
            sparse_safe,
            ..
        } = settings;
        Ok((sparse_convert, sparse_ratio, sparse_safe))
    })?;
    table.raw_set("encode_sparse_array", sparse)?;
    let shared = settings.clone();
    let invalid = lua.create_function(move |lua, args: MultiValue| {
        let args = Arguments::new(lua, "encode_invalid_numbers", args);
        let mut settings = shared.get();
        settings.encode_invalid = match args.get(1) {
            Some(Value::String(text)) if *text.as_bytes() == b"null"[..] => Invalid::Null,
            _ => match switch(&args, settings.encode_invalid == Invalid::Written)? {
                true => Invalid::Written,
                false if args.len() == 0 => settings.encode_invalid,
                false => Invalid::Refused,
            },
        };
        shared.set(settings);
        Ok(match settings.encode_invalid {
            Invalid::Refused => Value::Boolean(false),
            Invalid::Written => Value::Boolean(true),
            Invalid::Null => Value::String(lua.create_string("null")?),
        })
    })?;
    table.raw_set("encode_invalid_numbers", invalid)?;
    let shared = settings.clone();
    let invalid = lua.create_function(move |lua, args: MultiValue| {
        let args = Arguments::new(lua, "decode_invalid_numbers", args);
        let mut settings = shared.get();
        settings.decode_invalid = switch(&args, settings.decode_invalid)?;
        shared.set(settings);
        Ok(settings.decode_invalid)
    })?;
    table.raw_set("decode_invalid_numbers", invalid)?;
    let keep = lua.create_function(|_, args: MultiValue| {
        Ok(!matches!(args.front(), Some(Value::Boolean(false))))
    })?;
    table.raw_set("encode_keep_buffer", keep)
}

/// An integer argument in a range; what is set already when it is absent.
fn ranged(
    args: &Arguments<'_>,
    position: usize,
    have: f64,
    (low, high): (f64, f64),
) -> mlua::Result<f64> {
    let value = args.optional_number(position, have)?.trunc();
    match (low..=high).contains(&value) {
        true => Ok(value),
        false => Err(args.bad(
            position,
            format_args!("expected integer between {low:.0} and {high:.0}"),
        )),
    }
}

/// The first argument as a boolean, or as the words `on` and `off`.
fn switch(args: &Arguments<'_>, have: bool) -> mlua::Result<bool> {
    match args.get(1) {
        None | Some(Value::Nil) => Ok(have),
        Some(Value::Boolean(value)) => Ok(*value),
        Some(Value::String(text)) if *text.as_bytes() == b"on"[..] => Ok(true),
        Some(Value::String(text)) if *text.as_bytes() == b"off"[..] => Ok(false),
        Some(_) => Err(args.bad(1, "invalid option")),
    }
}
