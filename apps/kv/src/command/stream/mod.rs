//! Streams: entries with rising numbers, and groups that consume them.

mod add;
mod group;
mod info;
mod pending;
mod range;
mod read;

use super::{Call, Failure, MAX_REPLY};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::resp::reply::Reply;
use crate::store::Kind;
use crate::store::collection::Collection;
use crate::store::collection::stream::{Id, fields};

pub(super) use add::{xadd, xdel, xlen, xsetid, xtrim};
pub(super) use group::{of_xgroup, xack};
pub(super) use info::of_xinfo;
pub(super) use pending::{xautoclaim, xclaim, xpending};
pub(super) use range::{xrange, xrevrange};
pub(super) use read::{xread, xreadgroup};

const BAD_ID: &str = "ERR Invalid stream ID specified as stream command argument";

/// What commands say about a store's value and about their own words.
type Fallible<R> = std::result::Result<R, Failure>;

/// A number of a stream's entry; without its second half that is `seq`.
fn parse_id(word: &[u8], seq: u64) -> Fallible<Id> {
    let parsed = || {
        let text = std::str::from_utf8(word).ok()?;
        let digits = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| text.parse::<u64>().ok()).flatten()
        };
        match text.split_once('-') {
            Some((ms, seq)) => Some(Id {
                ms: digits(ms)?,
                seq: digits(seq)?,
            }),
            None => Some(Id {
                ms: digits(text)?,
                seq,
            }),
        }
    };
    parsed().ok_or_else(|| BAD_ID.into())
}

/// The end of an interval: `-`, `+`, a number, or one behind `(`, which is not included.
fn parse_bound(word: &[u8], upper: bool) -> Fallible<Id> {
    let seq = if upper { u64::MAX } else { 0 };
    match word {
        b"-" => Ok(Id::MIN),
        b"+" => Ok(Id::MAX),
        [b'(', rest @ ..] => {
            let id = parse_id(rest, seq)?;
            match upper {
                false => id
                    .next()
                    .ok_or_else(|| "ERR invalid start ID for the interval".into()),
                true => id
                    .before()
                    .ok_or_else(|| "ERR invalid end ID for the interval".into()),
            }
        }
        word => parse_id(word, seq),
    }
}

/// A count that may not be negative.
fn parse_count(word: &[u8]) -> Fallible<usize> {
    let count = parse_i64(word).ok_or(super::NOT_INTEGER)?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Entries on their way into a reply.
#[derive(Default)]
struct Entries {
    /// Without fields: an entry that is not there any more.
    found: Vec<(Id, Option<Vec<u8>>)>,
    bytes: usize,
}

impl Entries {
    /// Takes an entry; whether there is room for more.
    fn push(&mut self, id: Id, fields: Option<&[u8]>) -> bool {
        self.bytes += fields.map_or(0, <[u8]>::len) + 48;
        self.found.push((id, fields.map(<[u8]>::to_vec)));
        self.bytes <= MAX_REPLY
    }

    fn checked(self) -> Result<Self> {
        match self.bytes <= MAX_REPLY {
            true => Ok(self),
            false => Err(Error::ReplyTooLong),
        }
    }

    fn write(&self, reply: &mut Reply<'_>) {
        reply.array(self.found.len());
        for (id, fields) in &self.found {
            reply.array(2);
            write_id(reply, *id);
            match fields {
                Some(bytes) => write_fields(reply, bytes),
                None => reply.nil_array(),
            }
        }
    }
}

fn write_id(reply: &mut Reply<'_>, id: Id) {
    reply.bulk(id.to_string().as_bytes());
}

fn write_fields(reply: &mut Reply<'_>, bytes: &[u8]) {
    let (count, words) = fields(bytes);
    reply.array(count);
    words.for_each(|word| reply.bulk(word));
}

/// Reads a stream.
fn view<M: Memory, R>(
    call: &mut Call<'_, '_, M>,
    key: &[u8],
    f: impl FnMut(&Collection<'_, M>) -> Result<R>,
) -> Fallible<Option<R>> {
    let found = call.db.view(key, Kind::Stream, f)?;
    call.found(found.is_some());
    Ok(found)
}

fn no_group(key: &[u8], group: &[u8], hint: &str) -> Failure {
    let mut text = b"NOGROUP No such key '".to_vec();
    text.extend_from_slice(key);
    text.extend_from_slice(b"' or consumer group '");
    text.extend_from_slice(group);
    text.extend_from_slice(b"'");
    text.extend_from_slice(hint.as_bytes());
    text.into()
}
