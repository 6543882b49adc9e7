//! `bit`: operations on 32-bit integers.

use mlua::{Lua, MultiValue, Table};

use crate::script::arguments::Arguments;

/// A function of two integers that `bit` folds over its arguments, or applies to two.
type Binary = fn(i32, i32) -> i32;

/// Functions of one argument or more.
const FOLDS: [(&str, Binary); 3] = [
    ("band", |a, b| a & b),
    ("bor", |a, b| a | b),
    ("bxor", |a, b| a ^ b),
];

/// Functions of an integer and a number of places.
const SHIFTS: [(&str, Binary); 5] = [
    ("lshift", |a, n| ((a as u32) << (n & 31)) as i32),
    ("rshift", |a, n| (a as u32 >> (n & 31)) as i32),
    ("arshift", |a, n| a >> (n & 31)),
    ("rol", |a, n| a.rotate_left(n as u32 & 31)),
    ("ror", |a, n| a.rotate_right(n as u32 & 31)),
];

/// A function of one integer.
type Unary = fn(i32) -> i32;

/// Functions of one integer.
const UNARY: [(&str, Unary); 3] = [
    ("tobit", |a| a),
    ("bnot", |a| !a),
    ("bswap", |a| a.swap_bytes()),
];

/// The table.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, f) in UNARY {
        let function = lua.create_function(move |lua, args: MultiValue| {
            Ok(f(integer(&Arguments::new(lua, name, args), 1)?))
        })?;
        table.raw_set(name, function)?;
    }
    for (name, f) in FOLDS {
        let function = lua.create_function(move |lua, args: MultiValue| {
            let args = Arguments::new(lua, name, args);
            let first = integer(&args, 1)?;
            (2..=args.len()).try_fold(first, |sum, i| Ok(f(sum, integer(&args, i)?)))
        })?;
        table.raw_set(name, function)?;
    }
    for (name, f) in SHIFTS {
        let function = lua.create_function(move |lua, args: MultiValue| {
            let args = Arguments::new(lua, name, args);
            Ok(f(integer(&args, 1)?, integer(&args, 2)?))
        })?;
        table.raw_set(name, function)?;
    }
    table.raw_set("tohex", lua.create_function(tohex)?)?;
    Ok(table)
}

/// An argument as an integer, rounded, modulo 2^32.
fn integer(args: &Arguments<'_>, position: usize) -> mlua::Result<i32> {
    Ok(args.number(position)?.round_ties_even() as i64 as i32)
}

fn tohex(lua: &Lua, args: MultiValue) -> mlua::Result<String> {
    let args = Arguments::new(lua, "tohex", args);
    let value = integer(&args, 1)? as u32;
    let digits = match args.len() {
        0 | 1 => 8,
        _ => integer(&args, 2)?,
    };
    let hex = match digits < 0 {
        true => format!("{value:08X}"),
        false => format!("{value:08x}"),
    };
    let digits = digits.unsigned_abs().min(8) as usize;
    Ok(hex[8 - digits..].into())
}
