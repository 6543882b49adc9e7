//! HSCAN and SSCAN: a collection whose entries are in the order of their hashes, step by step.
//!
//! The cursor is the hash that comes next. Entries with one hash are returned together,
//! so what stays from a scan's start to its end is returned, once.

use super::{Call, Failure, NOT_INTEGER, Outcome, SYNTAX};
use crate::glob;
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::store::Kind;
use crate::store::collection::{HASH, unhashed};

/// Entries that one step may be asked for.
const LARGEST_COUNT: i64 = 1 << 20;
/// Entries that one step looks at if it is not told.
const COUNT: u64 = 10;

/// What a step looks for.
pub(super) struct Options<'a> {
    pub pattern: Option<&'a [u8]>,
    pub count: u64,
}

impl Options<'_> {
    pub fn wants(&self, member: &[u8]) -> bool {
        let matches = |pattern| glob::matches(pattern, member, false);
        self.pattern.is_none_or(matches)
    }
}

/// The cursor, which is the third word, and the options behind it.
pub(super) fn parse<'a, M: Memory>(call: &Call<'a, '_, M>) -> Result<(u64, Options<'a>), Failure> {
    let cursor = std::str::from_utf8(call.word(2)).ok();
    let cursor = cursor.and_then(|word| word.parse::<u64>().ok());
    let cursor = cursor.ok_or("ERR invalid cursor")?;
    let mut options = Options {
        pattern: None,
        count: COUNT,
    };
    for i in (3..call.args.len()).step_by(2) {
        let value = call.args.get(i + 1).ok_or(SYNTAX)?;
        if call.args.is(i, "match") {
            options.pattern = Some(value);
        } else if call.args.is(i, "count") {
            let count = parse_i64(value).ok_or(NOT_INTEGER)?;
            if count < 1 {
                return Err(SYNTAX.into());
            }
            options.count = count.min(LARGEST_COUNT) as u64;
        } else {
            return Err(SYNTAX.into());
        }
    }
    Ok((cursor, options))
}

/// Replies with a cursor and some members, each with the value of its entry if asked for.
pub(super) fn scan<M: Memory>(
    call: &mut Call<'_, '_, M>,
    kind: Kind,
    tree: usize,
    values: bool,
) -> Outcome {
    let (cursor, options) = parse(call)?;
    let (key, mut found) = (call.word(1), Vec::new());
    let next = call.db.view(key, kind, |collection| {
        found.clear();
        let Ok(first) = u32::try_from(cursor) else {
            return Ok(0);
        };
        let (from, _) = collection.rank(tree, &first.to_be_bytes())?;
        let all = collection.is_small(tree);
        let (mut seen, mut last, mut next) = (0, None, 0);
        collection.walk(tree, from, |entry, bytes| {
            let hash = entry.first_chunk::<HASH>().copied();
            if !all && seen >= options.count && hash != last {
                next = u64::from(u32::from_be_bytes(hash.unwrap_or_default()));
                return false;
            }
            (seen, last) = (seen + 1, hash);
            if options.wants(unhashed(entry)) {
                found.push(unhashed(entry).to_vec());
                found.extend(values.then(|| bytes.to_vec()));
            }
            true
        })?;
        Ok(next)
    })?;
    call.reply.array(2);
    call.reply.bulk(next.unwrap_or(0).to_string().as_bytes());
    call.reply.array(found.len());
    found.iter().for_each(|word| call.reply.bulk(word));
    Ok(())
}
