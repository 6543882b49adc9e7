//! Lua values as JSON.

use mlua::{Lua, Table, Value};

use super::{DEPTH, Invalid, Settings};
use crate::script::decimal::general;
use crate::script::errors::failed;

/// Bytes of a text, at most.
const MAX_TEXT: usize = 64 << 20;

pub(super) fn text(lua: &Lua, value: &Value, settings: &Settings) -> mlua::Result<mlua::String> {
    let mut encoder = Encoder {
        lua,
        settings,
        out: Vec::new(),
    };
    encoder.value(value, 0)?;
    lua.create_string(encoder.out)
}

struct Encoder<'a> {
    lua: &'a Lua,
    settings: &'a Settings,
    out: Vec<u8>,
}

impl Encoder<'_> {
    fn refused(&self, what: &str, why: &str) -> mlua::Error {
        failed(self.lua, format_args!("Cannot serialise {what}: {why}"))
    }

    fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        match value {
            Value::Nil => self.out.extend(b"null"),
            Value::Boolean(true) => self.out.extend(b"true"),
            Value::Boolean(false) => self.out.extend(b"false"),
            Value::Integer(number) => self.number(*number as f64)?,
            Value::Number(number) => self.number(*number)?,
            Value::String(text) => self.string(&text.as_bytes())?,
            Value::Table(table) => return self.table(table, depth + 1),
            other if *other == Value::NULL => self.out.extend(b"null"),
            other => return Err(self.refused(name(other), "type not supported")),
        }
        Ok(())
    }

    fn number(&mut self, number: f64) -> mlua::Result<()> {
        if !number.is_finite() {
            match self.settings.encode_invalid {
                Invalid::Refused => {
                    return Err(self.refused("number", "must not be NaN or Inf"));
                }
                Invalid::Null => {
                    self.out.extend(b"null");
                    return Ok(());
                }
                Invalid::Written if number.is_nan() => {
                    self.out.extend(b"nan");
                    return Ok(());
                }
                Invalid::Written => {}
            }
        }
        let text = general(number, self.settings.precision);
        self.out.extend(text.bytes());
        Ok(())
    }

    fn string(&mut self, text: &[u8]) -> mlua::Result<()> {
        if self.out.len() + text.len() > MAX_TEXT {
            return Err(failed(self.lua, "Cannot serialise: the text is too long"));
        }
        self.out.push(b'"');
        for byte in text {
            let letter = match byte {
                b'"' | b'\\' | b'/' => *byte,
                8 => b'b',
                b'\t' => b't',
                b'\n' => b'n',
                12 => b'f',
                b'\r' => b'r',
                0..32 | 127 => {
                    self.out.extend(format!("\\u{byte:04x}").bytes());
                    continue;
                }
                _ => {
                    self.out.push(*byte);
                    continue;
                }
            };
            self.out.extend([b'\\', letter]);
        }
        self.out.push(b'"');
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        if depth > self.settings.encode_depth.min(DEPTH) {
            let text = format_args!("Cannot serialise, excessive nesting ({depth})");
            return Err(failed(self.lua, text));
        }
        match self.length(table)? {
            Some(len) => self.array(table, len, depth),
            None => self.object(table, depth),
        }
    }

    /// The last index of an array; `None` of other tables.
    fn length(&self, table: &Table) -> mlua::Result<Option<i64>> {
        let (mut last, mut count) = (0, 0);
        for pair in table.pairs::<Value, Value>() {
            match pair?.0 {
                Value::Integer(key) if key > 0 => last = last.max(key),
                _ => return Ok(None),
            }
            count += 1;
        }
        let Settings {
            sparse_ratio,
            sparse_safe,
            sparse_convert,
            ..
        } = *self.settings;
        if sparse_ratio > 0 && last > count * sparse_ratio && last > sparse_safe {
            return match sparse_convert {
                true => Ok(None),
                false => Err(self.refused("table", "excessively sparse array")),
            };
        }
        Ok((count > 0).then_some(last))
    }

    fn array(&mut self, table: &Table, len: i64, depth: usize) -> mlua::Result<()> {
        self.out.push(b'[');
        for i in 1..=len {
            if i > 1 {
                self.out.push(b',');
            }
            if self.out.len() > MAX_TEXT {
                return Err(failed(self.lua, "Cannot serialise: the text is too long"));
            }
            self.value(&table.raw_get(i)?, depth)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        self.out.push(b'{');
        let mut first = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            if !std::mem::take(&mut first) {
                self.out.push(b',');
            }
            match &key {
                Value::String(key) => self.string(&key.as_bytes())?,
                Value::Integer(_) | Value::Number(_) => {
                    self.out.push(b'"');
                    self.value(&key, depth)?;
                    self.out.push(b'"');
                }
                other => {
                    let why = "table key must be a number or string";
                    return Err(self.refused(name(other), why));
                }
            }
            self.out.push(b':');
            self.value(&value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::LightUserData(_) | Value::Error(_) => "userdata",
        other => other.type_name(),
    }
}
