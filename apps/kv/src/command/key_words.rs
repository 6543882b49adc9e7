//! Which words of a command are keys.

use std::iter::StepBy;
use std::ops::Range;

use crate::number::parse_i64;
use crate::resp::args::Args;

/// Which words of a command are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyWords {
    /// Every `step`th from the first, 0 when there are none, to the last, negative from the end.
    Fixed {
        first: usize,
        last: i32,
        step: usize,
    },
    /// As many as the word at `count` says, behind it; and the word at `first`, unless that is 0.
    Counted { first: usize, count: usize },
    /// The first half of the words behind the word STREAMS, which is looked for from `from` on.
    Streams { from: usize },
    /// The first, and the one behind the option STORE or STOREDIST.
    Stored,
    /// The same, and those that elements make of the patterns behind BY and GET.
    Sorted,
}

/// Options of commands with STORE that take words of their own, and how many.
const OPTIONS: [(&str, usize); 6] = [
    ("by", 1),
    ("get", 1),
    ("limit", 2),
    ("count", 1),
    ("store", 1),
    ("storedist", 1),
];

/// The positions of keys.
struct Places {
    before: Option<usize>,
    range: StepBy<Range<usize>>,
    behind: Option<usize>,
}

impl Places {
    fn new(range: Range<usize>, step: usize) -> Self {
        let range = range.start..range.end.max(range.start);
        Self {
            before: None,
            range: range.step_by(step.max(1)),
            behind: None,
        }
    }
}

impl KeyWords {
    /// No word is one.
    pub const NONE: Self = Self::Fixed {
        first: 0,
        last: 0,
        step: 0,
    };

    /// The positions of the keys in a command. Of a command that does not say well which words are
    /// its keys, and fails for that, there are none.
    #[inline]
    pub fn positions(&self, args: Args<'_>) -> impl Iterator<Item = usize> + use<> {
        let Places {
            before,
            range,
            behind,
        } = self.places(args);
        before.into_iter().chain(range).chain(behind)
    }

    /// The position of the only key; `None`: there are several, or none.
    #[inline]
    pub fn only(&self, args: Args<'_>) -> Option<usize> {
        let Self::Fixed { first, last, step } = *self else {
            let mut keys = self.positions(args);
            return keys.next().filter(|_| keys.next().is_none());
        };
        let words = args.len() as i64;
        let from_end = if last < 0 { words } else { 0 };
        let last = (i64::from(last) + from_end).min(words - 1);
        let here = first as i64..(first + step.max(1)) as i64;
        (first != 0 && here.contains(&last)).then_some(first)
    }

    fn places(&self, args: Args<'_>) -> Places {
        let words = args.len();
        match *self {
            Self::Fixed { first: 0, .. } => Places::new(0..0, 1),
            Self::Fixed { first, last, step } => {
                let from_end = if last < 0 { words as i64 } else { 0 };
                let end = (from_end + i64::from(last) + 1).clamp(0, words as i64);
                Places::new(first..end as usize, step)
            }
            Self::Counted { first, count } => match counted(args, count) {
                Some(range) => Places {
                    before: (first != 0).then_some(first),
                    ..Places::new(range, 1)
                },
                None => Places::new(0..0, 1),
            },
            Self::Streams { from } => {
                let first = (from..words).find(|i| args.is(*i, "streams"));
                let first = first.map_or(words, |at| at + 1);
                Places::new(first..first + (words - first.min(words)) / 2, 1)
            }
            Self::Stored | Self::Sorted => Places {
                behind: stored(args),
                ..Places::new(1..words.min(2), 1)
            },
        }
    }

    /// The first, the last and the step, as COMMAND tells them; what these cannot tell is left out.
    pub fn fixed(&self) -> (usize, i32, usize) {
        match *self {
            Self::Fixed { first, last, step } => (first, last, step),
            Self::Counted { first: 0, .. } | Self::Streams { .. } => (0, 0, 0),
            Self::Counted { .. } | Self::Stored | Self::Sorted => (1, 1, 1),
        }
    }

    /// Whether a command reads keys that none of its words is.
    pub fn are_incomplete(&self, args: Args<'_>) -> bool {
        *self == Self::Sorted && super::sort::reads_elsewhere(args)
    }

    /// Whether there may be keys that [`KeyWords::fixed`] does not tell.
    pub fn is_movable(&self) -> bool {
        !matches!(self, Self::Fixed { .. })
    }
}

/// The words that the word at `count` counts, if there are so many.
fn counted(args: Args<'_>, count: usize) -> Option<Range<usize>> {
    let keys = usize::try_from(parse_i64(args.at(count))?).ok()?;
    let end = (count + 1).checked_add(keys)?;
    (end <= args.len()).then_some(count + 1..end)
}

/// Where the key is that the last STORE names.
fn stored(args: Args<'_>) -> Option<usize> {
    let (mut at, mut found) = (2, None);
    while at < args.len() {
        let option = OPTIONS.iter().find(|(name, _)| args.is(at, name));
        if option.is_some_and(|(name, _)| name.starts_with("store")) && at + 1 < args.len() {
            found = Some(at + 1);
        }
        at += 1 + option.map_or(0, |(_, words)| *words);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(words: KeyWords, line: &str) -> String {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        crate::resp::inline::split(line.as_bytes(), &mut bytes, &mut spans).unwrap();
        let args = Args::new(&bytes, &spans);
        let mut all = words.positions(args);
        let only = all.next().filter(|_| all.next().is_none());
        assert_eq!(words.only(args), only, "{line}");
        let keys = words.positions(args).map(|i| args.at(i));
        let keys: Vec<_> = keys.map(String::from_utf8_lossy).collect();
        keys.join(" ")
    }

    #[test]
    fn keys_are_where_the_command_says() {
        let fixed = |first, last, step| KeyWords::Fixed { first, last, step };
        let counted = |first, count| KeyWords::Counted { first, count };
        let streams = KeyWords::Streams { from: 1 };
        let group = KeyWords::Streams { from: 4 };
        for (words, line, want) in [
            (KeyWords::NONE, "PING a", ""),
            (fixed(1, 1, 1), "GET", ""),
            (fixed(1, 1, 1), "GET a", "a"),
            (fixed(1, -1, 1), "DEL a", "a"),
            (fixed(1, -1, 1), "DEL a b", "a b"),
            (fixed(1, -1, 2), "MSET a 1", "a"),
            (fixed(1, -2, 1), "BLPOP 0", ""),
            (fixed(1, -1, 2), "MSET a 1 b 2", "a b"),
            (fixed(1, -2, 1), "BLPOP a b 0", "a b"),
            (counted(0, 2), "EVAL return 2 a b 1", "a b"),
            (counted(0, 2), "EVAL return 0 a", ""),
            (counted(0, 2), "EVAL return 3 a b", ""),
            (counted(0, 2), "EVAL return -1 a b", ""),
            (counted(0, 2), "EVAL return x a b", ""),
            (counted(0, 2), "EVAL return 9223372036854775807 a", ""),
            (counted(1, 2), "ZUNIONSTORE t 2 a b WEIGHTS 1 2", "t a b"),
            (streams, "XREAD COUNT 2 STREAMS a b 0 0", "a b"),
            (streams, "XREAD COUNT 2", ""),
            (group, "XREADGROUP GROUP streams c STREAMS a >", "a"),
            (KeyWords::Stored, "SORT", ""),
            (KeyWords::Stored, "SORT a BY store GET store", "a"),
            (KeyWords::Stored, "SORT a STORE b store c", "a c"),
            (
                KeyWords::Stored,
                "SORT a LIMIT 0 store STORE b ALPHA",
                "a b",
            ),
            (KeyWords::Stored, "SORT a STORE", "a"),
        ] {
            assert_eq!(keys(words, line), want, "{line}");
        }
    }
}
