//! `struct`: values in binary, laid out as a format says.

use mlua::{Lua, MultiValue, Table, Value};

use crate::script::arguments::Arguments;
use crate::script::errors::failed;

/// Bytes of the longest integer.
const MAX_INTEGER: usize = 32;
/// Bytes that integers are aligned to when `!` does not say.
const MAX_ALIGN: usize = 8;
/// Bytes of all that is packed, at most.
const MAX_PACKED: usize = 64 << 20;

/// The table.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    table.raw_set("size", lua.create_function(size)?)?;
    Ok(table)
}

/// One thing that a format asks for.
enum Item {
    /// So many zeros.
    Padding,
    Integer {
        bytes: usize,
        signed: bool,
    },
    Float {
        bytes: usize,
    },
    /// Text up to a zero.
    Text,
    /// So many bytes; none: as many as the value has, or as the number before says.
    Bytes(usize),
}

/// Reads a format.
struct Format<'a> {
    args: &'a Arguments<'a>,
    rest: &'a [u8],
    big: bool,
    align: usize,
}

impl<'a> Format<'a> {
    fn new(args: &'a Arguments<'a>, text: &'a [u8]) -> Self {
        Self {
            args,
            rest: text,
            big: false,
            align: 1,
        }
    }

    /// Digits, if any are next.
    fn number(&mut self) -> mlua::Result<Option<usize>> {
        let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        if digits == 0 {
            return Ok(None);
        }
        let text = std::str::from_utf8(number).unwrap_or_default();
        let number = text.parse().ok().filter(|n| *n <= MAX_PACKED);
        number
            .map(Some)
            .ok_or_else(|| failed(self.args.lua, "integral size overflow"))
    }

    fn integer(&mut self, otherwise: usize, signed: bool) -> mlua::Result<Item> {
        let bytes = self.number()?.unwrap_or(otherwise);
        if bytes > MAX_INTEGER {
            let text = format_args!("integral size {bytes} is larger than limit of {MAX_INTEGER}");
            return Err(failed(self.args.lua, text));
        }
        Ok(Item::Integer { bytes, signed })
    }

    /// The next thing to pack, and the zeros before it for its alignment.
    fn next(&mut self, at: usize) -> mlua::Result<Option<(Item, usize)>> {
        let whole = |bytes, signed| Item::Integer { bytes, signed };
        while let Some((letter, rest)) = self.rest.split_first() {
            self.rest = rest;
            let item = match letter {
                b' ' => continue,
                b'>' => {
                    self.big = true;
                    continue;
                }
                b'<' => {
                    self.big = false;
                    continue;
                }
                b'!' => {
                    let align = self.number()?.unwrap_or(MAX_ALIGN);
                    if !align.is_power_of_two() {
                        let text = format_args!("alignment {align} is not a power of 2");
                        return Err(failed(self.args.lua, text));
                    }
                    self.align = align;
                    continue;
                }
                b'x' => Item::Padding,
                b'b' => whole(1, true),
                b'B' => whole(1, false),
                b'h' => whole(2, true),
                b'H' => whole(2, false),
                b'l' => whole(8, true),
                b'L' | b'T' => whole(8, false),
                b'i' => self.integer(4, true)?,
                b'I' => self.integer(4, false)?,
                b'f' => Item::Float { bytes: 4 },
                b'd' => Item::Float { bytes: 8 },
                b's' => Item::Text,
                b'c' => Item::Bytes(self.number()?.unwrap_or(1)),
                other => {
                    let shown = char::from(*other);
                    let why = format_args!("invalid format option '{shown}'");
                    return Err(self.args.bad(1, why));
                }
            };
            let zeros = self.padding(&item, at)?;
            return Ok(Some((item, zeros)));
        }
        Ok(None)
    }

    fn padding(&self, item: &Item, at: usize) -> mlua::Result<usize> {
        let (Item::Integer { bytes, .. } | Item::Float { bytes }) = *item else {
            return Ok(0);
        };
        let align = bytes.min(self.align);
        if align <= 1 {
            return Ok(0);
        }
        Ok(at.next_multiple_of(align) - at)
    }

    /// Little-endian bytes in the order asked for.
    fn ordered(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.big {
            bytes.reverse();
        }
        bytes
    }
}

fn pack(lua: &Lua, mut args: MultiValue) -> mlua::Result<mlua::String> {
    args.push_back(Value::Nil);
    let args = Arguments::new(lua, "pack", args);
    let text = args.bytes(1)?;
    let (mut format, mut out, mut next) = (Format::new(&args, &text), Vec::new(), 2);
    while let Some((item, zeros)) = format.next(out.len())? {
        out.resize(out.len() + zeros, 0);
        match item {
            Item::Padding => {
                out.push(0);
                continue;
            }
            Item::Integer { bytes, .. } => {
                let value = args.number(next)?;
                let value = match value < 0.0 {
                    true => i128::from(value as i64),
                    false => i128::from(value as u64),
                };
                let sign = if value < 0 { 0xff } else { 0 };
                let mut little = value.to_le_bytes().to_vec();
                little.resize(bytes.max(16), sign);
                little.truncate(bytes);
                out.extend(format.ordered(little));
            }
            Item::Float { bytes: 4 } => {
                let value = args.number(next)? as f32;
                out.extend(format.ordered(value.to_le_bytes().to_vec()));
            }
            Item::Float { .. } => {
                let value = args.number(next)?;
                out.extend(format.ordered(value.to_le_bytes().to_vec()));
            }
            Item::Text => {
                out.extend(args.bytes(next)?);
                out.push(0);
            }
            Item::Bytes(count) => {
                let value = args.bytes(next)?;
                let count = if count == 0 { value.len() } else { count };
                let value = value.get(..count);
                out.extend(value.ok_or_else(|| args.bad(next + 1, "string too short"))?);
            }
        }
        if out.len() > MAX_PACKED {
            return Err(args.bad(1, "result too long"));
        }
        next += 1;
    }
    lua.create_string(out)
}

fn unpack(lua: &Lua, args: MultiValue) -> mlua::Result<MultiValue> {
    let args = Arguments::new(lua, "unpack", args);
    let (text, data) = (args.bytes(1)?, args.bytes(2)?);
    let first = args.optional_number(3, 1.0)?;
    if first < 1.0 {
        return Err(args.bad(3, "offset must be 1 or greater"));
    }
    let mut at = first as usize - 1;
    let (mut format, mut values) = (Format::new(&args, &text), Vec::new());
    let short = || args.bad(2, "data string too short");
    while let Some((item, zeros)) = format.next(at)? {
        at = at.saturating_add(zeros);
        let bytes = match item {
            Item::Padding => 1,
            Item::Integer { bytes, .. } | Item::Float { bytes } => bytes,
            Item::Bytes(0) => match values.pop() {
                Some(Value::Number(count)) if count >= 0.0 => count as usize,
                _ => return Err(failed(lua, "format 'c0' needs a previous size")),
            },
            Item::Bytes(count) => count,
            Item::Text => {
                let rest = data.get(at..).ok_or_else(short)?;
                let end = rest.iter().position(|b| *b == 0);
                end.ok_or_else(|| failed(lua, "unfinished string in data"))?
            }
        };
        let end = at.checked_add(bytes).ok_or_else(short)?;
        let piece = data.get(at..end).ok_or_else(short)?;
        at = end;
        match item {
            Item::Padding => continue,
            Item::Integer { signed, .. } => {
                let little = format.ordered(piece.to_vec());
                values.push(Value::Number(integer(&little, signed)));
            }
            Item::Float { .. } => {
                let little = format.ordered(piece.to_vec());
                values.push(Value::Number(float(&little)));
            }
            Item::Bytes(_) => values.push(Value::String(lua.create_string(piece)?)),
            Item::Text => {
                values.push(Value::String(lua.create_string(piece)?));
                at += 1;
            }
        }
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(MultiValue::from_vec(values))
}

/// An integer of little-endian bytes; of long ones, what fits 64 bits.
fn integer(bytes: &[u8], signed: bool) -> f64 {
    let negative = signed && bytes.last().is_some_and(|b| b & 0x80 != 0);
    let mut word = [if negative { 0xff } else { 0 }; 8];
    let len = bytes.len().min(word.len());
    word[..len].copy_from_slice(&bytes[..len]);
    match signed {
        true => i64::from_le_bytes(word) as f64,
        false => u64::from_le_bytes(word) as f64,
    }
}

fn float(bytes: &[u8]) -> f64 {
    match *bytes {
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => f64::NAN,
    }
}

fn size(lua: &Lua, args: MultiValue) -> mlua::Result<f64> {
    let args = Arguments::new(lua, "size", args);
    let text = args.bytes(1)?;
    let (mut format, mut total) = (Format::new(&args, &text), 0usize);
    while let Some((item, zeros)) = format.next(total)? {
        let bytes = match item {
            Item::Padding => 1,
            Item::Integer { bytes, .. } | Item::Float { bytes } => bytes,
            Item::Text => return Err(args.bad(1, "option 's' has no fixed size")),
            Item::Bytes(0) => return Err(args.bad(1, "option 'c0' has no fixed size")),
            Item::Bytes(count) => count,
        };
        total = total.saturating_add(zeros).saturating_add(bytes);
    }
    Ok(total as f64)
}
