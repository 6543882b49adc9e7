//! `cmsgpack`: MessagePack.

use mlua::{Lua, MultiValue, Table, Value};

use crate::script::arguments::Arguments;
use crate::script::errors::failed;

/// How deep tables lie in tables that are packed; what lies deeper is nil.
const MAX_PACKED_DEPTH: usize = 16;
/// How deep values lie in values that are unpacked.
const MAX_DEPTH: usize = 200;

/// The table.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    let all = |lua: &Lua, args: MultiValue| {
        let args = Arguments::new(lua, "unpack", args);
        unpack(&args, 0.0, 0.0, false)
    };
    table.raw_set("unpack", lua.create_function(all)?)?;
    let one = |lua: &Lua, args: MultiValue| {
        let args = Arguments::new(lua, "unpack_one", args);
        let offset = args.optional_number(2, 0.0)?;
        unpack(&args, 1.0, offset, true)
    };
    table.raw_set("unpack_one", lua.create_function(one)?)?;
    let limited = |lua: &Lua, args: MultiValue| {
        let args = Arguments::new(lua, "unpack_limit", args);
        let (limit, offset) = (args.number(2)?, args.optional_number(3, 0.0)?);
        unpack(&args, limit, offset, true)
    };
    table.raw_set("unpack_limit", lua.create_function(limited)?)?;
    Ok(table)
}

fn pack(lua: &Lua, args: MultiValue) -> mlua::Result<mlua::String> {
    if args.is_empty() {
        return Err(failed(
            lua,
            "bad argument #0 to 'pack' (MessagePack pack needs input.)",
        ));
    }
    let mut out = Vec::new();
    for value in &args {
        put(value, &mut out, 0)?;
    }
    lua.create_string(out)
}

fn put(value: &Value, out: &mut Vec<u8>, depth: usize) -> mlua::Result<()> {
    match value {
        Value::Boolean(value) => out.push(0xc2 | u8::from(*value)),
        Value::Integer(number) => put_integer(*number, out),
        Value::Number(number) => put_number(*number, out),
        Value::String(text) => {
            let text = text.as_bytes();
            match text.len() {
                len @ 0..32 => out.push(0xa0 | len as u8),
                len => put_length(len, [Some(0xd9), Some(0xda), Some(0xdb)], out),
            }
            out.extend_from_slice(&text);
        }
        Value::Table(table) if depth < MAX_PACKED_DEPTH => put_table(table, out, depth + 1)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

/// A length behind the kind that has 8, 16 or 32 bits of it.
fn put_length(len: usize, [short, middle, long]: [Option<u8>; 3], out: &mut Vec<u8>) {
    if let (Some(kind), Ok(len)) = (short, u8::try_from(len)) {
        out.extend([kind, len]);
    } else if let (Some(kind), Ok(len)) = (middle, u16::try_from(len)) {
        out.push(kind);
        out.extend(len.to_be_bytes());
    } else {
        out.extend(long);
        out.extend((len as u32).to_be_bytes());
    }
}

fn put_integer(number: i64, out: &mut Vec<u8>) {
    let bytes = number.to_be_bytes();
    let (kind, len) = match number {
        -32..=127 => return out.push(number as u8),
        128..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -128.. => (0xd0, 1),
        -0x8000.. => (0xd1, 2),
        -0x8000_0000.. => (0xd2, 4),
        _ => (0xd3, 8),
    };
    out.push(kind);
    out.extend_from_slice(&bytes[8 - len..]);
}

/// A number that is no integer, with 32 bits if these suffice.
fn put_number(number: f64, out: &mut Vec<u8>) {
    if number == number.trunc() && number.abs() < 9e18 {
        return put_integer(number as i64, out);
    }
    match f64::from(number as f32) == number {
        true => {
            out.push(0xca);
            out.extend((number as f32).to_be_bytes());
        }
        false => {
            out.push(0xcb);
            out.extend(number.to_be_bytes());
        }
    }
}

/// An array if its keys are 1 and so on, without a gap.
fn put_table(table: &Table, out: &mut Vec<u8>, depth: usize) -> mlua::Result<()> {
    // Twice through the table, one pair at a time: only some thousand values can be held at once.
    let (mut len, mut last) = (0_usize, Some(0));
    table.for_each(|key: Value, _: Value| {
        len += 1;
        last = match (last, key) {
            (Some(last), Value::Integer(key)) if key > 0 => Some(key.max(last)),
            _ => None,
        };
        Ok(())
    })?;
    if last == Some(len as i64) {
        match len {
            0..16 => out.push(0x90 | len as u8),
            _ => put_length(len, [None, Some(0xdc), Some(0xdd)], out),
        }
        return (1..=len).try_for_each(|i| put(&table.raw_get(i)?, out, depth));
    }
    match len {
        0..16 => out.push(0x80 | len as u8),
        _ => put_length(len, [None, Some(0xde), Some(0xdf)], out),
    }
    table.for_each(|key: Value, value: Value| {
        put(&key, out, depth)?;
        put(&value, out, depth)
    })
}

/// Up to `limit` values, 0 for all, and with `tells` where the next one begins before them.
fn unpack(args: &Arguments<'_>, limit: f64, offset: f64, tells: bool) -> mlua::Result<MultiValue> {
    let (lua, data) = (args.lua, args.bytes(1)?);
    if limit < 0.0 || offset < 0.0 {
        return Err(failed(
            lua,
            format_args!(
                "Invalid request to unpack with offset of {offset:.0} and limit of {}.",
                data.len()
            ),
        ));
    }
    let (limit, start) = (limit as usize, offset as usize);
    if start > data.len() {
        let len = data.len();
        let text = format_args!("Start offset {start} greater than input length {len}.");
        return Err(failed(lua, text));
    }
    let mut reader = Reader {
        lua,
        data: &data,
        at: start,
    };
    let mut values = Vec::new();
    while reader.at < data.len() && (limit == 0 || values.len() < limit) {
        values.push(reader.value(0)?);
    }
    if tells {
        let next = if reader.at == data.len() {
            -1.0
        } else {
            reader.at as f64
        };
        values.insert(0, Value::Number(next));
    }
    Ok(MultiValue::from_vec(values))
}

/// Reads values one after the other.
struct Reader<'a> {
    lua: &'a Lua,
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> mlua::Result<&'a [u8]> {
        let end = self.at.checked_add(len);
        let piece = end.and_then(|end| self.data.get(self.at..end));
        let piece = piece.ok_or_else(|| failed(self.lua, "Missing bytes in input."))?;
        self.at += len;
        Ok(piece)
    }

    /// A big-endian number of so many bytes.
    fn unsigned(&mut self, len: usize) -> mlua::Result<u64> {
        let bytes = self.take(len)?;
        Ok(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    fn signed(&mut self, len: usize) -> mlua::Result<f64> {
        let shift = 64 - 8 * len as u32;
        Ok(((self.unsigned(len)? << shift) as i64 >> shift) as f64)
    }

    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        let kind = self.take(1)?[0];
        let number = |number: f64| Ok(Value::Number(number));
        match kind {
            0x00..0x80 => number(f64::from(kind)),
            0xe0.. => number(f64::from(kind as i8)),
            0x80..0x90 => self.map(usize::from(kind & 15), depth),
            0x90..0xa0 => self.array(usize::from(kind & 15), depth),
            0xa0..0xc0 => self.text(usize::from(kind & 31)),
            0xc0 => Ok(Value::Nil),
            0xc2 | 0xc3 => Ok(Value::Boolean(kind == 0xc3)),
            0xca => number(f64::from(f32::from_bits(self.unsigned(4)? as u32))),
            0xcb => number(f64::from_bits(self.unsigned(8)?)),
            0xcc..=0xcf => number(self.unsigned(1 << (kind - 0xcc))? as f64),
            0xd0..=0xd3 => number(self.signed(1 << (kind - 0xd0))?),
            0xd9..=0xdb => {
                let len = self.unsigned(1 << (kind - 0xd9))?;
                self.text(len as usize)
            }
            0xdc | 0xdd => {
                let len = self.unsigned(2 << (kind - 0xdc))?;
                self.array(len as usize, depth)
            }
            0xde | 0xdf => {
                let len = self.unsigned(2 << (kind - 0xde))?;
                self.map(len as usize, depth)
            }
            _ => Err(failed(self.lua, "Bad data format in input.")),
        }
    }

    fn text(&mut self, len: usize) -> mlua::Result<Value> {
        let text = self.take(len)?;
        Ok(Value::String(self.lua.create_string(text)?))
    }

    fn deeper(&self, depth: usize) -> mlua::Result<usize> {
        match depth < MAX_DEPTH {
            true => Ok(depth + 1),
            false => Err(failed(self.lua, "Bad data format in input.")),
        }
    }

    fn array(&mut self, len: usize, depth: usize) -> mlua::Result<Value> {
        let (table, depth) = (self.lua.create_table()?, self.deeper(depth)?);
        for i in 1..=len {
            table.raw_set(i, self.value(depth)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, len: usize, depth: usize) -> mlua::Result<Value> {
        let (table, depth) = (self.lua.create_table()?, self.deeper(depth)?);
        for _ in 0..len {
            let key = self.value(depth)?;
            let value = self.value(depth)?;
            if key.is_nil() || key.as_f64().is_some_and(f64::is_nan) {
                return Err(failed(self.lua, "Bad data format in input."));
            }
            table.raw_set(key, value)?;
        }
        Ok(Value::Table(table))
    }
}
