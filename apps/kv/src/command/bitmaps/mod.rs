//! Strings as rows of bits, the highest of each byte first.
//!
//! A change reads and writes the bytes that it touches only, inside of the key's bucket.

mod combine;
mod count;
mod fields;
mod integers;

use super::{Call, Failure, Outcome};
use crate::error::{Error, Result};
use crate::memory::{Access, Memory};
use crate::number::parse_i64;
use crate::store::Db;

pub(super) use combine::bitop;
pub(super) use count::{bitcount, bitpos};
pub(super) use fields::{bitfield, bitfield_ro};

const BAD_OFFSET: &str = "ERR bit offset is not an integer or out of range";
/// Bits that a string of Redis may have.
const BITS: u64 = 1 << 32;

/// The number of a bit.
fn offset(word: &[u8]) -> std::result::Result<u64, Failure> {
    let number = parse_i64(word).and_then(|number| u64::try_from(number).ok());
    let number = number.filter(|offset| *offset < BITS);
    number.ok_or_else(|| BAD_OFFSET.into())
}

/// Copies `len` bytes from `at` on; those that are not there are zeros.
fn bytes<M: Memory>(db: &Db<'_, M>, key: &[u8], at: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    db.get_range(key, at as i64, (at + len as u64) as i64 - 1, &mut bytes)?;
    bytes.resize(len, 0);
    Ok(bytes)
}

pub(super) fn setbit<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (key, offset) = (call.word(1), offset(call.word(2))?);
    let on = match call.word(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err("ERR bit is not an integer or out of range".into()),
    };
    let (at, mask) = (offset / 8, 0x80 >> (offset % 8));
    if at >= crate::MAX_VALUE as u64 {
        return Err(Error::ValueTooLong.into());
    }
    let was = call.db.together(&[key], Access::Write, |db| {
        let old = bytes(&db, key, at, 1)?[0];
        let new = if on { old | mask } else { old & !mask };
        db.set_range(key, at as usize, &[new])?;
        Ok(old & mask != 0)
    })?;
    call.reply.flag(was);
    Ok(())
}

pub(super) fn getbit<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let offset = offset(call.word(2))?;
    let byte = bytes(&call.db, call.word(1), offset / 8, 1)?[0];
    call.reply.flag(byte & (0x80 >> (offset % 8)) != 0);
    Ok(())
}
