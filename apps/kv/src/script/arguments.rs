//! The arguments of a library's function, checked as Lua's own libraries check theirs.

use mlua::{Lua, MultiValue, Value};

use super::errors::bad_argument;

/// The arguments of a call of `function`.
pub(crate) struct Arguments<'l> {
    pub lua: &'l Lua,
    pub function: &'static str,
    values: MultiValue,
}

impl<'l> Arguments<'l> {
    pub fn new(lua: &'l Lua, function: &'static str, values: MultiValue) -> Self {
        Self {
            lua,
            function,
            values,
        }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The argument at `position`, counted from 1; `None` when there are not so many.
    pub fn get(&self, position: usize) -> Option<&Value> {
        self.values.get(position.checked_sub(1)?)
    }

    /// An error about the argument at `position`.
    pub fn bad(&self, position: usize, why: impl std::fmt::Display) -> mlua::Error {
        bad_argument(self.lua, position, self.function, why)
    }

    fn expected(&self, position: usize, what: &str) -> mlua::Error {
        let got = self.get(position).map_or("no value", |value| match value {
            Value::Integer(_) | Value::Number(_) => "number",
            Value::LightUserData(_) | Value::Error(_) => "userdata",
            value => value.type_name(),
        });
        self.bad(position, format_args!("{what} expected, got {got}"))
    }

    /// A number, or text that reads as one.
    pub fn number(&self, position: usize) -> mlua::Result<f64> {
        match self.get(position) {
            Some(Value::Integer(number)) => Ok(*number as f64),
            Some(Value::Number(number)) => Ok(*number),
            Some(text @ Value::String(_)) => {
                let number = self.lua.coerce_number(text.clone())?;
                number.ok_or_else(|| self.expected(position, "number"))
            }
            _ => Err(self.expected(position, "number")),
        }
    }

    /// A number if there is one.
    pub fn optional_number(&self, position: usize, otherwise: f64) -> mlua::Result<f64> {
        match self.get(position) {
            None | Some(Value::Nil) => Ok(otherwise),
            Some(_) => self.number(position),
        }
    }

    /// Text, or a number as text.
    pub fn bytes(&self, position: usize) -> mlua::Result<Vec<u8>> {
        let value = self.get(position).cloned().unwrap_or(Value::Nil);
        let text = match value {
            Value::String(_) | Value::Integer(_) | Value::Number(_) => {
                self.lua.coerce_string(value)?
            }
            _ => None,
        };
        let text = text.ok_or_else(|| self.expected(position, "string"))?;
        Ok(text.as_bytes().to_vec())
    }
}
