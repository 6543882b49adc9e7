//! BITCOUNT and BITPOS.

use std::ops::Range;

use super::super::{Call, Failure, Outcome, SYNTAX};
use crate::memory::Memory;
use crate::store::value::Reach;

/// The part of a string that a command is about.
#[derive(Clone, Copy)]
struct Part {
    first: i64,
    last: i64,
    /// Whether these count bits, not bytes.
    bits: bool,
}

impl Part {
    const WHOLE: Part = Part {
        first: 0,
        last: -1,
        bits: false,
    };

    /// From the words from `at` on: the first, the last, the unit.
    fn parse<M: Memory>(call: &Call<'_, '_, M>, at: usize) -> Result<Part, Failure> {
        let first = call.integer(at)?;
        let bits = match call.args.len() - at {
            ..=2 => false,
            3 if call.args.is(at + 2, "bit") => true,
            3 if call.args.is(at + 2, "byte") => false,
            _ => return Err(SYNTAX.into()),
        };
        let last = match call.args.get(at + 1) {
            Some(_) => call.integer(at + 1)?,
            None => -1,
        };
        Ok(Part { first, last, bits })
    }

    /// The bits, of a string of `len` bytes.
    fn of(&self, len: usize) -> Range<usize> {
        let unit = if self.bits { 1 } else { 8 };
        let len = (len * 8 / unit) as i64;
        let from_start = |at: i64| if at < 0 { len.saturating_add(at) } else { at };
        let first = from_start(self.first).max(0);
        let last = from_start(self.last).max(0).min(len - 1);
        if first > last {
            return 0..0;
        }
        first as usize * unit..(last as usize + 1) * unit
    }

    /// Bytes that hold all of it and can be told before the string's length is known, and how many
    /// are before them.
    fn reach(&self) -> (Reach, usize) {
        let unit = if self.bits { 8 } else { 1 };
        match (self.first / unit, self.last / unit) {
            (first, last) if self.first >= 0 && self.last >= 0 => {
                (Reach::Span(first, last), first as usize)
            }
            _ => (Reach::All, 0),
        }
    }
}

/// The bytes of a part: which bits of them belong to it, and how many bits are before.
struct Bits<'a> {
    bytes: &'a [u8],
    range: Range<usize>,
    before: usize,
}

/// Shows `f` a part of a string; `None`: there is no such key.
fn look<M: Memory, R>(
    call: &Call<'_, '_, M>,
    part: Part,
    mut f: impl FnMut(Bits<'_>) -> R,
) -> Result<Option<R>, Failure> {
    let (reach, skipped) = part.reach();
    let (mut bytes, before) = (Vec::new(), skipped.saturating_mul(8));
    let seen = call.db.read(call.word(1), reach, |meta, value| {
        bytes.clear();
        value.append_to(&mut bytes);
        let range = part.of(meta.len);
        let range = match range.is_empty() {
            true => 0..0,
            false => range.start - before..range.end - before,
        };
        f(Bits {
            bytes: &bytes,
            range,
            before,
        })
    })?;
    Ok(seen)
}

impl Bits<'_> {
    /// The bytes that the range touches, with `outside` in bits that do not belong to it.
    fn touched(&self, outside: bool) -> impl Iterator<Item = (usize, u8)> + '_ {
        let Range { start, end } = self.range;
        (start / 8..end.div_ceil(8)).map(move |i| {
            let before = start.saturating_sub(i * 8);
            let behind = ((i + 1) * 8).saturating_sub(end);
            let inside = (0xff >> before) & (0xff << behind) as u8;
            let byte = if outside {
                self.bytes[i] | !inside
            } else {
                self.bytes[i] & inside
            };
            (i, byte)
        })
    }

    fn ones(&self) -> usize {
        let ones = |(_, byte): (usize, u8)| byte.count_ones() as usize;
        self.touched(false).map(ones).sum()
    }

    /// The first bit that is `one`.
    fn first(&self, one: bool) -> Option<usize> {
        let skip = if one { 0 } else { 0xff };
        let (i, byte) = self.touched(!one).find(|(_, byte)| *byte != skip)?;
        Some(i * 8 + (byte ^ skip).leading_zeros() as usize)
    }
}

pub(crate) fn bitcount<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let part = match call.args.len() {
        2 => Ok(Part::WHOLE),
        3 | 6.. => Err(SYNTAX.into()),
        // Both numbers come before the unit.
        _ => call.integer(3).and_then(|_| Part::parse(call, 2)),
    };
    // As in Redis, these words matter only for a key that is there.
    let count = look(call, *part.as_ref().unwrap_or(&Part::WHOLE), |bits| {
        bits.ones()
    })?;
    call.found(count.is_some());
    if count.is_some() {
        if call.args.len() < 6
            && let (Ok(first), Ok(last)) = (call.integer(2), call.integer(3))
            && (last..0).contains(&first)
            && first != last
        {
            call.reply.int(0);
            return Ok(());
        }
        part?;
    }
    call.reply.count(count.unwrap_or(0));
    Ok(())
}

pub(crate) fn bitpos<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let one = match call.integer(2)? {
        0 => false,
        1 => true,
        _ => return Err("ERR The bit argument must be 1 or 0.".into()),
    };
    let part = match call.args.len() {
        3 => Ok(Part::WHOLE),
        7.. => Err(SYNTAX.into()),
        _ => Part::parse(call, 3),
    };
    // Zeros follow a string, unless it was said where to end.
    let zeros_follow = !one && call.args.len() < 5;
    let position = look(call, *part.as_ref().unwrap_or(&Part::WHOLE), |bits| {
        let end = zeros_follow && !bits.range.is_empty();
        let found = bits.first(one).or(end.then_some(bits.range.end));
        found.map(|at| (at + bits.before) as i64)
    })?;
    call.found(position.is_some());
    match position {
        None => call.reply.int(-i64::from(one)),
        Some(position) => {
            part?;
            call.reply.int(position.unwrap_or(-1));
        }
    }
    Ok(())
}
