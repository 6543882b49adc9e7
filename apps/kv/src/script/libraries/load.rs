//! `load` and `loadstring`: of texts only, because compiled code is not checked.

use mlua::{ChunkMode, Function, Lua, MultiValue, Table, Value};

use crate::script::arguments::Arguments;
use crate::script::errors::Cause;

/// Bytes of a text that is loaded, at most.
const MAX_TEXT: usize = 16 << 20;

/// Adds both to the globals `base`; what they load has the globals `env`.
pub(in crate::script) fn install(lua: &Lua, base: &Table, env: &Table) -> mlua::Result<()> {
    let globals = env.clone();
    let loadstring = lua.create_function(move |lua, args: MultiValue| {
        let args = Arguments::new(lua, "loadstring", args);
        let text = args.bytes(1)?;
        let name = args.bytes(2).unwrap_or_else(|_| text.clone());
        loaded(lua, &globals, &text, &name)
    })?;
    base.raw_set("loadstring", loadstring)?;
    let globals = env.clone();
    let load = lua.create_function(move |lua, (pieces, args): (Function, MultiValue)| {
        let name = Arguments::new(lua, "load", args).bytes(1);
        let mut text = Vec::new();
        while let Value::String(piece) = pieces.call::<Value>(())? {
            let piece = piece.as_bytes();
            if piece.is_empty() || text.len() + piece.len() > MAX_TEXT {
                break;
            }
            text.extend_from_slice(&piece);
        }
        let name = name.unwrap_or_else(|_| b"=(load)".to_vec());
        loaded(lua, &globals, &text, &name)
    })?;
    base.raw_set("load", load)
}

/// The function, or nil and what is wrong.
fn loaded(lua: &Lua, env: &Table, text: &[u8], name: &[u8]) -> mlua::Result<(Value, Value)> {
    let name = String::from_utf8_lossy(name).replace('\0', " ");
    let chunk = lua.load(text).set_name(name).set_mode(ChunkMode::Text);
    match chunk.set_environment(env.clone()).into_function() {
        Ok(function) => Ok((Value::Function(function), Value::Nil)),
        Err(error) => {
            let text = match Cause::of(&error) {
                Cause::Lua(text) => text,
                _ => error.to_string(),
            };
            Ok((Value::Nil, Value::String(lua.create_string(text)?)))
        }
    }
}
