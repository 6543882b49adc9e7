//! The libraries of scripts that are not Lua's own.

mod bit;
mod cjson;
mod cmsgpack;
pub(super) mod load;
mod random;
mod structs;

use mlua::{Lua, Table, Value};

/// Adds them to the tables that scripts share.
pub(super) fn install(lua: &Lua, shared: &Table) -> mlua::Result<()> {
    random::install(lua, &shared.raw_get("math")?)?;
    shared.raw_set("bit", bit::table(lua)?)?;
    shared.raw_set("struct", structs::table(lua)?)?;
    shared.raw_set("cmsgpack", cmsgpack::table(lua)?)?;
    shared.raw_set("cjson", cjson::table(lua)?)
}

/// A value as `tostring` shows it.
pub(super) fn shown(lua: &Lua, value: &Value) -> mlua::Result<Vec<u8>> {
    Ok(match value {
        Value::Nil => b"nil".to_vec(),
        Value::Boolean(value) => value.to_string().into_bytes(),
        Value::String(_) | Value::Integer(_) | Value::Number(_) => {
            let text = lua.coerce_string(value.clone())?;
            text.map(|text| text.as_bytes().to_vec())
                .unwrap_or_default()
        }
        other => other.type_name().into(),
    })
}
