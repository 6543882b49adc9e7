//! LCS: what two values have in common, in order.

use super::{Call, Failure, Outcome, SYNTAX};
use crate::memory::Memory;
use crate::store::{Kind, Values};

/// Cells of the table of lengths, one for each pair of beginnings: 64 MiB.
const MAX_CELLS: usize = 16 << 20;

/// What is asked for beside the bytes themselves.
#[derive(Default)]
struct Options {
    len: bool,
    index: bool,
    with_len: bool,
    /// Shorter matches are left out.
    min: i64,
}

/// A stretch that is in both: where it begins in each, and its length.
type Match = (usize, usize, usize);

fn options<M: Memory>(call: &Call<'_, '_, M>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut i = 3;
    while i < call.args.len() {
        if call.args.is(i, "len") {
            options.len = true;
        } else if call.args.is(i, "idx") {
            options.index = true;
        } else if call.args.is(i, "withmatchlen") {
            options.with_len = true;
        } else if call.args.is(i, "minmatchlen") && i + 1 < call.args.len() {
            options.min = call.integer(i + 1)?;
            i += 1;
        } else {
            return Err(SYNTAX.into());
        }
        i += 1;
    }
    if options.len && options.index {
        return Err("ERR If you want both the length and indexes, please just use IDX.".into());
    }
    Ok(options)
}

pub(super) fn lcs<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let keys = [call.word(1), call.word(2)];
    let mut values = Values::default();
    call.db.get_many(&keys, super::MAX_REPLY, &mut values)?;
    for (key, value) in keys.iter().zip(values.iter()) {
        let other = value.is_none() && call.db.meta(key)?.is_some_and(|m| m.kind != Kind::String);
        if other {
            return Err("ERR The specified keys must contain string values".into());
        }
    }
    let options = options(call)?;
    let mut words = values.iter().map(Option::unwrap_or_default);
    let (a, b) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    if (a.len() + 1).saturating_mul(b.len() + 1) > MAX_CELLS {
        return Err("ERR String too long for LCS".into());
    }
    let (matches, len) = matches(a, b);
    if options.len {
        call.reply.count(len);
    } else if options.index {
        tell(call, &options, &matches, len);
    } else {
        let stretches = matches.iter().rev().map(|&(at, _, len)| &a[at..at + len]);
        let common: Vec<u8> = stretches.flatten().copied().collect();
        call.reply.bulk(&common);
    }
    Ok(())
}

/// The answer with IDX: the last match first, as the search finds them.
fn tell<M: Memory>(call: &mut Call<'_, '_, M>, options: &Options, matches: &[Match], len: usize) {
    let told: Vec<&Match> = matches
        .iter()
        .filter(|(.., len)| *len as i64 >= options.min)
        .collect();
    call.reply.map(2);
    call.reply.bulk(b"matches");
    call.reply.array(told.len());
    for &&(in_a, in_b, len) in &told {
        call.reply.array(2 + usize::from(options.with_len));
        for start in [in_a, in_b] {
            call.reply.array(2);
            call.reply.count(start);
            call.reply.count(start + len - 1);
        }
        if options.with_len {
            call.reply.count(len);
        }
    }
    call.reply.bulk(b"len");
    call.reply.count(len);
}

/// The stretches of a longest common subsequence, last first, and its length.
fn matches(a: &[u8], b: &[u8]) -> (Vec<Match>, usize) {
    let width = b.len() + 1;
    // The length for the first `i` bytes of one and `j` of the other, at `i * width + j`.
    let mut lengths = vec![0_u32; (a.len() + 1) * width];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            lengths[i * width + j] = if a[i - 1] == b[j - 1] {
                lengths[(i - 1) * width + j - 1] + 1
            } else {
                lengths[(i - 1) * width + j].max(lengths[i * width + j - 1])
            };
        }
    }
    let (mut i, mut j, mut found) = (a.len(), b.len(), Vec::<Match>::new());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            (i, j) = (i - 1, j - 1);
            match found.last_mut() {
                Some(last) if (last.0, last.1) == (i + 1, j + 1) => *last = (i, j, last.2 + 1),
                _ => found.push((i, j, 1)),
            }
        } else if lengths[(i - 1) * width + j] > lengths[i * width + j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    (found, lengths.last().copied().unwrap_or(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_the_longest_and_the_last_comes_first() {
        assert_eq!(
            matches(b"ohmytext", b"mynewtext"),
            (vec![(4, 5, 4), (2, 0, 2)], 6)
        );
        assert_eq!(matches(b"abc", b"abc"), (vec![(0, 0, 3)], 3));
        assert_eq!(matches(b"abc", b"xyz"), (vec![], 0));
        assert_eq!(matches(b"", b"xyz"), (vec![], 0));
    }
}
