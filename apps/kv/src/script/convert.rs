//! Replies as Lua values, and Lua values as replies.

use mlua::{Lua, Table, Value};

use super::decimal::{general, truncated};
use crate::command::Failure;
use crate::number::parse_i64;
use crate::resp::reply::{Protocol, Reply};

/// How deep arrays may lie in arrays.
const MAX_DEPTH: usize = 200;

/// Digits of a number that a script gives to a command or returns as a double.
pub(super) const DIGITS: usize = 17;

/// Takes a reply of a command off the front of `bytes`.
pub(super) fn to_lua(lua: &Lua, bytes: &mut &[u8]) -> mlua::Result<Value> {
    let (kind, line) = head(bytes);
    let number = || parse_i64(line).unwrap_or(-1);
    match kind {
        b':' => Ok(Value::Number(number() as f64)),
        b'$' => match number() {
            -1 => Ok(Value::Boolean(false)),
            len => Ok(Value::String(lua.create_string(take(bytes, len))?)),
        },
        b'*' if number() == -1 => Ok(Value::Boolean(false)),
        b'*' | b'>' => sequence(lua, bytes, number()),
        b'+' => field(lua, "ok", lua.create_string(line)?),
        b'-' => failure(lua, line, true),
        b'_' => Ok(Value::Nil),
        b'#' => Ok(Value::Boolean(line == b"t")),
        b',' => field(lua, "double", double(line)),
        b'(' => field(lua, "big_number", lua.create_string(line)?),
        b'=' => verbatim(lua, take(bytes, number())),
        b'%' => map(lua, bytes, number()),
        b'~' => set(lua, bytes, number()),
        b'|' => {
            for _ in 0..2 * number().max(0) {
                to_lua(lua, bytes)?;
            }
            to_lua(lua, bytes)
        }
        _ => Ok(Value::Nil),
    }
}

/// The kind of the next value, and the rest of its line.
fn head<'a>(bytes: &mut &'a [u8]) -> (u8, &'a [u8]) {
    let end = bytes.iter().position(|b| *b == b'\r');
    let line = take_raw(bytes, end.unwrap_or(bytes.len()));
    take_raw(bytes, 2);
    line.split_first()
        .map_or((0, line), |(kind, rest)| (*kind, rest))
}

fn take_raw<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (front, rest) = bytes.split_at(len.min(bytes.len()));
    *bytes = rest;
    front
}

/// A string of so many bytes.
fn take<'a>(bytes: &mut &'a [u8], len: i64) -> &'a [u8] {
    let text = take_raw(bytes, usize::try_from(len).unwrap_or(0));
    take_raw(bytes, 2);
    text
}

fn double(line: &[u8]) -> f64 {
    let text = std::str::from_utf8(line).unwrap_or("nan");
    text.parse().unwrap_or(f64::NAN)
}

fn field(lua: &Lua, name: &str, value: impl mlua::IntoLua) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, value)?;
    Ok(Value::Table(table))
}

/// That an error was counted already, in the table that it is to scripts.
const COUNTED: &str = "ignore_error_stats_update";

/// An error as scripts see it. `counted`: for INFO.
pub(super) fn failure(lua: &Lua, text: &[u8], counted: bool) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set("err", lua.create_string(text)?)?;
    if counted {
        table.raw_set(COUNTED, true)?;
    }
    Ok(Value::Table(table))
}

fn verbatim(lua: &Lua, text: &[u8]) -> mlua::Result<Value> {
    let (format, string) = text.split_at(text.len().min(3));
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set("format", lua.create_string(format)?)?;
    table.raw_set(
        "string",
        lua.create_string(string.get(1..).unwrap_or_default())?,
    )?;
    field(lua, "verbatim_string", table)
}

fn sequence(lua: &Lua, bytes: &mut &[u8], len: i64) -> mlua::Result<Value> {
    let len = usize::try_from(len).unwrap_or(0);
    let table = lua.create_table_with_capacity(len.min(bytes.len()), 0)?;
    for i in 1..=len {
        table.raw_set(i, to_lua(lua, bytes)?)?;
    }
    Ok(Value::Table(table))
}

fn map(lua: &Lua, bytes: &mut &[u8], len: i64) -> mlua::Result<Value> {
    let pairs = lua.create_table()?;
    for _ in 0..len.max(0) {
        let key = to_lua(lua, bytes)?;
        pairs.raw_set(key, to_lua(lua, bytes)?)?;
    }
    field(lua, "map", pairs)
}

fn set(lua: &Lua, bytes: &mut &[u8], len: i64) -> mlua::Result<Value> {
    let members = lua.create_table()?;
    for _ in 0..len.max(0) {
        members.raw_set(to_lua(lua, bytes)?, true)?;
    }
    field(lua, "set", members)
}

/// What a script fails with that returns such a table.
pub(super) fn returned(value: &Value) -> mlua::Result<Option<Failure>> {
    let Value::Table(table) = value else {
        return Ok(None);
    };
    match table.raw_get::<Value>("err")? {
        Value::String(text) => failed(table, error_line(&text.as_bytes())).map(Some),
        _ => Ok(None),
    }
}

/// A script's failure, which is counted unless that has been done where it comes from.
pub(super) fn failed(table: &Table, line: Vec<u8>) -> mlua::Result<Failure> {
    let counted = table.raw_get::<Value>(COUNTED)?.as_boolean();
    Ok(Failure::Script {
        line,
        counted: counted == Some(true),
    })
}

/// An error's text as a line of a reply, without the dash.
fn error_line(text: &[u8]) -> Vec<u8> {
    let line = one_line(text);
    line.strip_prefix(b"-").map(<[u8]>::to_vec).unwrap_or(line)
}

/// Writes what a script returns.
pub(super) struct Writer<'r, 'o> {
    pub reply: &'r mut Reply<'o>,
    /// The script has chosen version 3 of the protocol.
    pub resp3: bool,
}

impl Writer<'_, '_> {
    /// Writes a value.
    pub fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        match value {
            Value::String(text) => self.reply.bulk(&text.as_bytes()),
            Value::Boolean(value) => self.boolean(*value),
            Value::Integer(number) => self.reply.int(truncated(*number as f64)),
            Value::Number(number) => self.reply.int(truncated(*number)),
            Value::Table(_) if depth == MAX_DEPTH => {
                self.reply.error("ERR", "reached lua stack limit");
            }
            Value::Table(table) => return self.table(table, depth + 1),
            _ => self.reply.nil(),
        }
        Ok(())
    }

    fn speaks_3(&self) -> bool {
        self.reply.protocol == Protocol::Resp3
    }

    fn boolean(&mut self, value: bool) {
        match (self.resp3, value) {
            (false, false) => self.reply.nil(),
            (false, true) => self.reply.int(1),
            (true, value) if !self.speaks_3() => self.reply.flag(value),
            (true, true) => self.line("#t"),
            (true, false) => self.line("#f"),
        }
    }

    fn line(&mut self, text: &str) {
        self.reply.out.extend_from_slice(text.as_bytes());
        self.reply.out.extend_from_slice(b"\r\n");
    }

    /// One of the tables that stand for something else, or an array.
    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        if let Value::String(text) = table.raw_get::<Value>("err")? {
            self.reply.out.push(b'-');
            self.reply.out.extend(error_line(&text.as_bytes()));
            self.line("");
            return Ok(());
        }
        if let Value::String(text) = table.raw_get::<Value>("ok")? {
            self.reply.out.push(b'+');
            let text = one_line(&text.as_bytes());
            self.reply.out.extend_from_slice(&text);
            self.line("");
            return Ok(());
        }
        match table.raw_get::<Value>("double")? {
            Value::Integer(number) => return self.double(number as f64),
            Value::Number(number) => return self.double(number),
            _ => {}
        }
        if let Value::Table(pairs) = table.raw_get::<Value>("map")? {
            return self.map(&pairs, depth);
        }
        if let Value::Table(members) = table.raw_get::<Value>("set")? {
            return self.set(&members, depth);
        }
        if let Value::String(number) = table.raw_get::<Value>("big_number")? {
            let number = one_line(&number.as_bytes());
            match self.speaks_3() {
                true => {
                    self.reply.out.push(b'(');
                    self.reply.out.extend_from_slice(&number);
                    self.line("");
                }
                false => self.reply.bulk(&number),
            }
            return Ok(());
        }
        if let Value::Table(parts) = table.raw_get::<Value>("verbatim_string")?
            && let Value::String(string) = parts.raw_get::<Value>("string")?
            && let Value::String(format) = parts.raw_get::<Value>("format")?
        {
            self.verbatim(&format.as_bytes(), &string.as_bytes());
            return Ok(());
        }
        self.array(table, depth)
    }

    fn double(&mut self, number: f64) -> mlua::Result<()> {
        let text = general(number, DIGITS);
        match self.speaks_3() {
            true => self.line(&format!(",{text}")),
            false => self.reply.bulk(text.as_bytes()),
        }
        Ok(())
    }

    fn verbatim(&mut self, format: &[u8], string: &[u8]) {
        if !self.speaks_3() {
            return self.reply.bulk(string);
        }
        let mut kind = *b"   ";
        let len = format.len().min(kind.len());
        kind[..len].copy_from_slice(&format[..len]);
        self.line(&format!("={}", string.len() + 4));
        self.reply.out.extend_from_slice(&kind);
        self.reply.out.push(b':');
        self.reply.out.extend_from_slice(string);
        self.line("");
    }

    fn map(&mut self, pairs: &Table, depth: usize) -> mlua::Result<()> {
        self.reply.map(count(pairs)?);
        pairs.for_each(|key: Value, value: Value| {
            self.value(&key, depth)?;
            self.value(&value, depth)
        })
    }

    fn set(&mut self, members: &Table, depth: usize) -> mlua::Result<()> {
        self.reply.set(count(members)?);
        members.for_each(|member: Value, _: Value| self.value(&member, depth))
    }

    /// The elements before the first that is nil.
    fn array(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        // Twice, one at a time: Rust can hold only some thousand of Lua's values at once.
        let mut len = 0;
        while !table.raw_get::<Value>(len + 1)?.is_nil() {
            len += 1;
        }
        self.reply.array(len);
        (1..=len).try_for_each(|i| self.value(&table.raw_get(i)?, depth))
    }
}

/// Pairs of a table.
fn count(table: &Table) -> mlua::Result<usize> {
    let mut len = 0;
    table.for_each(|_: Value, _: Value| {
        len += 1;
        Ok(())
    })?;
    Ok(len)
}

/// Without line ends.
fn one_line(text: &[u8]) -> Vec<u8> {
    let space = |b: &u8| if matches!(b, b'\r' | b'\n') { b' ' } else { *b };
    text.iter().map(space).collect()
}
