//! Elements by position and by what they are.

use std::ops::Range;

use super::super::{Call, Failure, MAX_REPLY, NOT_INTEGER, Outcome, SYNTAX};
use super::{ELEMENTS, position, positions};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::store::Kind;
use crate::store::collection::Collection;

pub(crate) fn llen<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let len = call
        .db
        .view(call.word(1), Kind::List, |list| Ok(list.count(ELEMENTS)))?;
    call.found(len.is_some());
    call.reply.int(len.unwrap_or(0) as i64);
    Ok(())
}

pub(crate) fn lindex<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let index = parse_i64(call.word(2));
    let found = call.db.view(call.word(1), Kind::List, |list| {
        let Some(index) = index else {
            return Ok(Err(NOT_INTEGER));
        };
        let at = position(index, list.count(ELEMENTS));
        let found = at.map(|at| list.at(ELEMENTS, at)).transpose()?;
        Ok(Ok(found.flatten()))
    })?;
    call.found(found.is_some());
    let element = found.transpose()?.flatten();
    call.reply
        .maybe(element.as_ref().map(|(_, element)| element.as_slice()));
    Ok(())
}

pub(crate) fn lrange<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (first, last) = (call.integer(2)?, call.integer(3)?);
    let (start, reply) = (call.reply.out.len(), &mut call.reply);
    let found = call.db.view(call.args.at(1), Kind::List, |list| {
        let range = positions(first, last, list.count(ELEMENTS));
        reply.out.truncate(start);
        reply.array((range.end - range.start) as usize);
        let (mut left, mut fits) = (range.end - range.start, true);
        if left != 0 {
            list.walk(ELEMENTS, range.start, |_, element| {
                reply.bulk(element);
                left -= 1;
                fits = reply.out.len() - start <= MAX_REPLY;
                left != 0 && fits
            })?;
        }
        if fits {
            Ok(())
        } else {
            Err(Error::ReplyTooLong)
        }
    })?;
    if found.is_none() {
        call.reply.array(0);
    }
    call.found(found.is_some());
    Ok(())
}

pub(crate) fn lset<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (index, element) = (parse_i64(call.word(2)), call.word(3));
    let done = call.db.change(call.word(1), Kind::List, |list| {
        if !list.existed {
            return Err(Error::NoSuchKey);
        }
        let Some(index) = index else {
            return Ok(Err(NOT_INTEGER));
        };
        match position(index, list.count(ELEMENTS)) {
            Some(at) => list.set(ELEMENTS, at, element).map(|_| Ok(())),
            None => Ok(Err("ERR index out of range")),
        }
    })?;
    done?;
    call.reply.ok();
    Ok(())
}

pub(crate) fn linsert<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let behind = match () {
        () if call.args.is(2, "before") => 0,
        () if call.args.is(2, "after") => 1,
        () => return Err(SYNTAX.into()),
    };
    let (pivot, element) = (call.word(3), call.word(4));
    let len = call.db.change(call.word(1), Kind::List, |list| {
        if !list.existed {
            return Ok(0);
        }
        let mut search = Search::all(1);
        search.run(list, pivot)?;
        let Some(at) = search.found.first() else {
            return Ok(-1);
        };
        list.insert(ELEMENTS, at + behind, element)?;
        Ok(list.count(ELEMENTS) as i64)
    })?;
    call.reply.int(len);
    Ok(())
}

pub(crate) fn lrem<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (count, element) = (call.integer(2)?, call.word(3));
    let removed = call.db.change(call.word(1), Kind::List, |list| {
        let mut search = Search {
            back: count < 0,
            ..Search::all(count.unsigned_abs())
        };
        search.run(list, element)?;
        for range in search.ranges().into_iter().rev() {
            list.cut(ELEMENTS, range)?;
        }
        Ok(search.found.len())
    })?;
    call.reply.count(removed);
    Ok(())
}

pub(crate) fn ltrim<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (first, last) = (call.integer(2)?, call.integer(3)?);
    call.db.change(call.word(1), Kind::List, |list| {
        let len = list.count(ELEMENTS);
        let range = positions(first, last, len);
        list.cut(ELEMENTS, range.end..len)?;
        list.cut(ELEMENTS, 0..range.start)
    })?;
    call.reply.ok();
    Ok(())
}

pub(crate) fn lpos<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (search, count) = lpos_options(call)?;
    let element = call.word(2);
    let found = call.db.view(call.word(1), Kind::List, |list| {
        let mut search = search.clone();
        search.run(list, element)?;
        Ok(search.found)
    })?;
    call.found(found.is_some());
    let found = found.unwrap_or_default();
    match (count, found.first()) {
        (None, None) => call.reply.nil(),
        (None, Some(at)) => call.reply.int(*at as i64),
        (Some(_), _) => {
            call.reply.array(found.len());
            found.iter().for_each(|at| call.reply.int(*at as i64));
        }
    }
    Ok(())
}

/// What LPOS searches, and how many it asks for, if it asks for several.
fn lpos_options<M: Memory>(
    call: &Call<'_, '_, M>,
) -> std::result::Result<(Search, Option<u64>), Failure> {
    const RANK_ZERO: &str = "ERR RANK can't be zero: use 1 to start from the first match, 2 from \
                             the second ... or use negative to start from the end of the list";
    let natural = |i: usize, refusal: &'static str| {
        let number = parse_i64(call.word(i)).and_then(|number| u64::try_from(number).ok());
        number.ok_or(Failure::from(refusal))
    };
    let (mut search, mut count) = (Search::all(1), None);
    for i in (3..call.args.len()).step_by(2) {
        if i + 1 == call.args.len() {
            return Err(SYNTAX.into());
        }
        if call.args.is(i, "rank") {
            let rank = match call.integer(i + 1)? {
                0 => return Err(RANK_ZERO.into()),
                rank => rank,
            };
            (search.back, search.skip) = (rank < 0, rank.unsigned_abs() - 1);
        } else if call.args.is(i, "count") {
            count = Some(natural(i + 1, "ERR COUNT can't be negative")?);
        } else if call.args.is(i, "maxlen") {
            search.look_at = natural(i + 1, "ERR MAXLEN can't be negative")?;
        } else {
            return Err(SYNTAX.into());
        }
    }
    search.most = count.unwrap_or(1);
    Ok((search, count))
}

/// A search for an element. Numbers are 0 for "all".
#[derive(Clone, Default)]
struct Search {
    /// From the last element on.
    back: bool,
    /// How many to pass over.
    skip: u64,
    /// How many to find.
    most: u64,
    /// How many elements to look at.
    look_at: u64,
    /// The positions, in the order in which they were found.
    found: Vec<u64>,
}

impl Search {
    fn all(most: u64) -> Search {
        Search {
            most,
            ..Search::default()
        }
    }

    fn run<M: Memory>(&mut self, list: &Collection<'_, M>, wanted: &[u8]) -> Result<()> {
        let (len, back, look_at) = (list.count(ELEMENTS), self.back, self.look_at);
        let mut seen = 0;
        let look = |_: &[u8], element: &[u8]| {
            let at = if back { len - 1 - seen } else { seen };
            seen += 1;
            if element == wanted {
                match self.skip.checked_sub(1) {
                    Some(skip) => self.skip = skip,
                    None => self.found.push(at),
                }
            }
            let enough = self.most != 0 && self.found.len() as u64 == self.most;
            !enough && seen != look_at && seen != len
        };
        match (len, back) {
            (0, _) => Ok(()),
            (_, false) => list.walk(ELEMENTS, 0, look),
            (_, true) => list.walk_back(ELEMENTS, len - 1, look),
        }
    }

    /// What was found as ranges, in rising order.
    fn ranges(&self) -> Vec<Range<u64>> {
        let mut positions = self.found.clone();
        positions.sort_unstable();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for at in positions {
            match ranges.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => ranges.push(at..at + 1),
            }
        }
        ranges
    }
}
