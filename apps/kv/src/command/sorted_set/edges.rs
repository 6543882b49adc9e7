//! Ends of ranges, as commands name them.

use std::ops::Range;

use super::super::{Call, Failure};
use crate::double;
use crate::error::Result;
use crate::memory::Memory;
use crate::store::collection::Collection;
use crate::store::collection::sorted::Edge;

/// What the ends of a range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Member,
}

/// Which members a range has, among those of any sorted set.
#[derive(Clone, Debug)]
pub(super) enum Span {
    /// From one position to another, negative ones counted from the end.
    Ranks(i64, i64),
    Between(Edge, Edge),
}

impl Span {
    /// The range whose lower end is the word at `min` and whose upper end the one at `max`.
    pub fn parse<M: Memory>(
        call: &Call<'_, '_, M>,
        by: By,
        min: usize,
        max: usize,
    ) -> std::result::Result<Self, Failure> {
        let words = (call.word(min), call.word(max));
        let (edges, error) = match by {
            By::Rank => return Ok(Self::Ranks(call.integer(min)?, call.integer(max)?)),
            By::Score => (
                score(words.0, false).zip(score(words.1, true)),
                "ERR min or max is not a float",
            ),
            By::Member => (
                member(words.0, false).zip(member(words.1, true)),
                "ERR min or max not valid string range item",
            ),
        };
        let (min, max) = edges.ok_or(error)?;
        Ok(Self::Between(min, max))
    }

    /// The positions in a sorted set. With `down`, ranks are counted from the highest member.
    pub fn positions<M: Memory>(&self, set: &Collection<'_, M>, down: bool) -> Result<Range<u64>> {
        let count = set.members();
        let (start, end) = match self {
            Self::Ranks(first, last) => {
                let at = |rank: i64| match rank {
                    0.. => rank as u64,
                    _ => count.saturating_sub(rank.unsigned_abs()),
                };
                // An end before the first member is before all of them.
                let end = match *last {
                    last if last < 0 && last.unsigned_abs() > count => 0,
                    last => at(last).saturating_add(1).min(count),
                };
                let start = at(*first).min(end);
                match down {
                    true => (count - end, count - start),
                    false => (start, end),
                }
            }
            Self::Between(min, max) => (set.position(min)?, set.position(max)?),
        };
        Ok(start..end.max(start))
    }
}

/// A score, behind `(` if it is not part of the range.
fn score(word: &[u8], upper: bool) -> Option<Edge> {
    let (word, open) = match word {
        [b'(', rest @ ..] => (rest, true),
        _ => (word, false),
    };
    Some(Edge::Score {
        score: double::parse_bound(word)?,
        behind: open != upper,
    })
}

/// `-`, `+`, or a member behind `[`, or `(` if it is not part of the range.
fn member(word: &[u8], upper: bool) -> Option<Edge> {
    let (member, open) = match word {
        b"-" => return Some(Edge::Start),
        b"+" => return Some(Edge::End),
        [b'(', rest @ ..] => (rest, true),
        [b'[', rest @ ..] => (rest, false),
        _ => return None,
    };
    Some(Edge::Member {
        member: member.to_vec(),
        behind: open != upper,
    })
}
