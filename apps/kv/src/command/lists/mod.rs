//! Lists: elements found by position, tree 0 of the collection.

mod ends;
mod inside;
mod moves;
mod several;

use std::ops::Range;

use super::{Call, Failure, SYNTAX};
use crate::error::Result;
use crate::memory::Memory;
use crate::store::collection::Collection;

pub(super) use ends::{lpop, lpush, lpushx, rpop, rpush, rpushx};
pub(super) use inside::{lindex, linsert, llen, lpos, lrange, lrem, lset, ltrim};
pub(super) use moves::{blmove, brpoplpush, lmove, rpoplpush};
pub(super) use several::{blmpop, blpop, brpop, lmpop};

/// The tree of a list's elements.
const ELEMENTS: usize = 0;

/// One of the ends of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Left,
    Right,
}

impl End {
    /// The end that the word at `i` names.
    fn named<M: Memory>(call: &Call<'_, '_, M>, i: usize) -> std::result::Result<End, Failure> {
        match () {
            () if call.args.is(i, "left") => Ok(End::Left),
            () if call.args.is(i, "right") => Ok(End::Right),
            () => Err(SYNTAX.into()),
        }
    }

    fn push<M: Memory>(self, list: &mut Collection<'_, M>, element: &[u8]) -> Result<()> {
        let at = match self {
            End::Left => 0,
            End::Right => list.count(ELEMENTS),
        };
        list.insert(ELEMENTS, at, element)
    }

    /// The outermost elements, at most `count`, the outermost first, and where they are.
    fn outermost<M: Memory>(
        self,
        list: &Collection<'_, M>,
        count: u64,
    ) -> Result<(Vec<Vec<u8>>, Range<u64>)> {
        let len = list.count(ELEMENTS);
        let count = count.min(len);
        let mut elements = Vec::new();
        if count == 0 {
            return Ok((elements, 0..0));
        }
        let take = |_: &[u8], element: &[u8]| {
            elements.push(element.to_vec());
            (elements.len() as u64) < count
        };
        match self {
            End::Left => list.walk(ELEMENTS, 0, take)?,
            End::Right => list.walk_back(ELEMENTS, len - 1, take)?,
        }
        let range = match self {
            End::Left => 0..count,
            End::Right => len - count..len,
        };
        Ok((elements, range))
    }

    /// Takes the outermost elements out, at most `count`.
    fn pop<M: Memory>(self, list: &mut Collection<'_, M>, count: u64) -> Result<Vec<Vec<u8>>> {
        let (elements, range) = self.outermost(list, count)?;
        list.cut(ELEMENTS, range)?;
        Ok(elements)
    }
}

/// The position that an index means in a list of `len` elements: negative ones count from the end.
fn position(index: i64, len: u64) -> Option<u64> {
    let index = i128::from(index);
    let at = if index < 0 {
        index + i128::from(len)
    } else {
        index
    };
    u64::try_from(at).ok().filter(|at| *at < len)
}

/// The positions from `first` to `last`, both included, as far as there are such.
fn positions(first: i64, last: i64, len: u64) -> Range<u64> {
    let from_start = |index: i64| match index {
        ..0 => i128::from(index) + i128::from(len),
        _ => i128::from(index),
    };
    let first = from_start(first).max(0);
    let end = (from_start(last) + 1).min(i128::from(len));
    if first < end {
        first as u64..end as u64
    } else {
        0..0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_both_ends() {
        for (index, want) in [
            (0, Some(0)),
            (2, Some(2)),
            (3, None),
            (-1, Some(2)),
            (-3, Some(0)),
            (-4, None),
            (i64::MIN, None),
            (i64::MAX, None),
        ] {
            assert_eq!(position(index, 3), want, "{index}");
        }
        for (first, last, want) in [
            (0, -1, 0..3),
            (1, 1, 1..2),
            (-2, 100, 1..3),
            (i64::MIN, i64::MAX, 0..3),
            (2, 1, 0..0),
            (0, -4, 0..0),
            (3, 5, 0..0),
        ] {
            assert_eq!(positions(first, last, 3), want, "{first} {last}");
        }
    }
}
