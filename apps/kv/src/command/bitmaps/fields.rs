//! BITFIELD: several integers in a string, read and changed in one step.

use super::super::{Call, Failure, NOT_INTEGER, Outcome, SYNTAX};
use super::integers::{Overflow, TOUCHED, Width};
use super::{BAD_OFFSET, BITS, bytes};
use crate::error::{Error, Result};
use crate::memory::{Access, Memory};
use crate::number::parse_i64;
use crate::store::Db;

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Get,
    Set,
    Add,
}

/// What to do with one integer.
struct Step {
    what: What,
    width: Width,
    /// Its first bit.
    offset: u64,
    number: i64,
    overflow: Overflow,
}

impl Step {
    /// The byte it begins in, and the bit there.
    fn place(&self) -> (u64, u32) {
        (self.offset / 8, (self.offset % 8) as u32)
    }

    /// How long a string must be that has it.
    fn end(&self) -> u64 {
        (self.offset + u64::from(self.width.bits)).div_ceil(8)
    }
}

const WHAT: [(&str, What); 3] = [
    ("get", What::Get),
    ("set", What::Set),
    ("incrby", What::Add),
];
const OVERFLOWS: [(&str, Overflow); 3] = [
    ("wrap", Overflow::Wrap),
    ("sat", Overflow::Saturate),
    ("fail", Overflow::Fail),
];

fn width(word: &[u8]) -> std::result::Result<Width, Failure> {
    const BAD: &str = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is \
                       not supported but i64 is.";
    let (signed, most) = match word.first() {
        Some(b'i') => (true, 64),
        Some(b'u') => (false, 63),
        _ => return Err(BAD.into()),
    };
    let bits = parse_i64(&word[1..]).and_then(|bits| u32::try_from(bits).ok());
    match bits.filter(|bits| (1..=most).contains(bits)) {
        Some(bits) => Ok(Width { bits, signed }),
        None => Err(BAD.into()),
    }
}

/// A bit's number, or behind `#` that of an integer.
fn offset(word: &[u8], width: Width) -> std::result::Result<u64, Failure> {
    let (digits, unit) = match word {
        [b'#', digits @ ..] => (digits, u64::from(width.bits)),
        _ => (word, 1),
    };
    let number = parse_i64(digits).and_then(|number| u64::try_from(number).ok());
    let offset = number.and_then(|number| number.checked_mul(unit));
    offset
        .filter(|offset| *offset < BITS)
        .ok_or_else(|| BAD_OFFSET.into())
}

fn parse<M: Memory>(call: &Call<'_, '_, M>) -> std::result::Result<Vec<Step>, Failure> {
    let (mut steps, mut overflow, mut i) = (Vec::new(), Overflow::Wrap, 2);
    while i < call.args.len() {
        let left = call.args.len() - i - 1;
        if call.args.is(i, "overflow") && left >= 1 {
            let named = OVERFLOWS.iter().find(|(name, _)| call.args.is(i + 1, name));
            overflow = named.ok_or("ERR Invalid OVERFLOW type specified")?.1;
            i += 2;
            continue;
        }
        let what = WHAT.iter().find(|(name, _)| call.args.is(i, name));
        let what = what.ok_or(SYNTAX)?.1;
        let words = if what == What::Get { 2 } else { 3 };
        if left < words {
            return Err(SYNTAX.into());
        }
        let width = width(call.word(i + 1))?;
        let offset = offset(call.word(i + 2), width)?;
        let number = match what {
            What::Get => 0,
            What::Set | What::Add => parse_i64(call.word(i + 3)).ok_or(NOT_INTEGER)?,
        };
        steps.push(Step {
            what,
            width,
            offset,
            number,
            overflow,
        });
        i += 1 + words;
    }
    Ok(steps)
}

pub(crate) fn bitfield<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let steps = parse(call)?;
    let key = call.word(1);
    let changes = steps.iter().filter(|step| step.what != What::Get);
    let results = match changes.map(Step::end).max() {
        None => look(&call.db, key, &steps)?,
        Some(len) if len > crate::MAX_VALUE as u64 => return Err(Error::ValueTooLong.into()),
        Some(len) => call.db.together(&[key], Access::Write, |db| {
            // Once it is long enough, changing it needs no memory.
            let last = bytes(&db, key, len - 1, 1)?;
            db.set_range(key, len as usize - 1, &last)?;
            steps.iter().map(|step| run(&db, key, step)).collect()
        })?,
    };
    answer(call, &results);
    Ok(())
}

pub(crate) fn bitfield_ro<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let steps = parse(call)?;
    if steps.iter().any(|step| step.what != What::Get) {
        return Err("ERR BITFIELD_RO only supports the GET subcommand".into());
    }
    let results = look(&call.db, call.word(1), &steps)?;
    answer(call, &results);
    Ok(())
}

fn answer<M: Memory>(call: &mut Call<'_, '_, M>, results: &[Option<i64>]) {
    call.reply.array(results.len());
    for result in results {
        match result {
            Some(number) => call.reply.int(*number),
            None => call.reply.nil(),
        }
    }
}

/// Integers that are only read: the bytes from the first of them to the last, at one moment.
fn look<M: Memory>(db: &Db<'_, M>, key: &[u8], steps: &[Step]) -> Result<Vec<Option<i64>>> {
    let start = steps.iter().map(|step| step.offset / 8).min().unwrap_or(0);
    let end = steps.iter().map(Step::end).max().unwrap_or(0);
    let mut found = Vec::new();
    db.get_range(key, start as i64, end.max(1) as i64 - 1, &mut found)?;
    let get = |step: &Step| {
        let (at, skip) = step.place();
        let from = found.get((at - start) as usize..).unwrap_or_default();
        let mut bytes = [0; TOUCHED];
        let len = from.len().min(TOUCHED);
        bytes[..len].copy_from_slice(&from[..len]);
        Some(step.width.get(&bytes, skip))
    };
    Ok(steps.iter().map(get).collect())
}

/// Does one thing, while the key's bucket is held; `None`: the number did not fit.
fn run<M: Memory>(db: &Db<'_, M>, key: &[u8], step: &Step) -> Result<Option<i64>> {
    let ((at, skip), width) = (step.place(), step.width);
    let len = width.bytes(skip);
    let mut all = [0; TOUCHED];
    all[..len].copy_from_slice(&bytes(db, key, at, len)?);
    let old = width.get(&all, skip);
    let number = match step.what {
        What::Get => return Ok(Some(old)),
        What::Set if width.signed => i128::from(step.number),
        What::Set => i128::from(step.number as u64),
        What::Add => i128::from(old) + i128::from(step.number),
    };
    let Some(new) = width.fit(number, step.overflow) else {
        return Ok(None);
    };
    width.put(&mut all, skip, new);
    db.set_range(key, at as usize, &all[..len])?;
    Ok(Some(if step.what == What::Set { old } else { new }))
}
