//! What SORT is asked for.

use std::collections::HashSet;
use std::ops::Range;

use super::super::{Failure, NOT_INTEGER, SYNTAX};
use super::Pattern;
use crate::number::parse_i64;
use crate::resp::args::Args;

#[derive(Default)]
pub(super) struct Options<'a> {
    pub by: Option<Pattern<'a>>,
    get: Vec<Pattern<'a>>,
    limit: Option<(i64, i64)>,
    pub descending: bool,
    /// As text, not as numbers.
    pub alpha: bool,
    pub store: Option<&'a [u8]>,
    /// It is a script that sorts.
    pub scripted: bool,
}

impl<'a> Options<'a> {
    pub fn parse(args: Args<'a>, may_store: bool) -> Result<Self, Failure> {
        let (mut options, mut i) = (Options::default(), 2);
        while i < args.len() {
            let left = args.len() - i - 1;
            let taken = match () {
                () if args.is(i, "asc") => {
                    options.descending = false;
                    0
                }
                () if args.is(i, "desc") => {
                    options.descending = true;
                    0
                }
                () if args.is(i, "alpha") => {
                    options.alpha = true;
                    0
                }
                () if args.is(i, "limit") && left >= 2 => {
                    let number = |i| parse_i64(args.at(i)).ok_or(NOT_INTEGER);
                    options.limit = Some((number(i + 1)?, number(i + 2)?));
                    2
                }
                () if args.is(i, "store") && left >= 1 && may_store => {
                    options.store = Some(args.at(i + 1));
                    1
                }
                () if args.is(i, "by") && left >= 1 => {
                    options.by = Some(Pattern(args.at(i + 1)));
                    1
                }
                () if args.is(i, "get") && left >= 1 => {
                    options.get.push(Pattern(args.at(i + 1)));
                    1
                }
                () => return Err(SYNTAX.into()),
            };
            i += 1 + taken;
        }
        Ok(options)
    }

    /// Whether the elements stay in the order in which they are: BY names no keys.
    pub fn as_they_are(&self) -> bool {
        self.by.is_some_and(|by| !by.has_place())
    }

    /// Refuses BY and GET.
    pub fn name_no_keys(&self) -> Result<(), Failure> {
        if self.by.is_some_and(|by| by.has_place()) {
            return Err("ERR BY option of SORT denied due to insufficient ACL permissions.".into());
        }
        if !self.get.is_empty() {
            return Err(
                "ERR GET option of SORT denied due to insufficient ACL permissions.".into(),
            );
        }
        Ok(())
    }

    /// What is shown of each element.
    pub fn shown(&self) -> &[Pattern<'a>] {
        if self.get.is_empty() {
            return &[Pattern(b"#")];
        }
        &self.get
    }

    /// The keys to be read for some elements.
    pub fn keys(&self, elements: &[Vec<u8>]) -> HashSet<Vec<u8>> {
        let patterns = self.by.iter().chain(&self.get);
        patterns
            .flat_map(|pattern| elements.iter().filter_map(|element| pattern.key(element)))
            .map(|(key, _)| key)
            .collect()
    }

    /// The elements chosen, of so many.
    pub fn limit(&self, len: usize) -> Range<usize> {
        let Some((first, count)) = self.limit else {
            return 0..len;
        };
        let start = usize::try_from(first).unwrap_or(0).min(len);
        let count = usize::try_from(count).unwrap_or(len);
        start..start.saturating_add(count).min(len)
    }
}

/// Whether a SORT reads keys that it does not name.
pub(crate) fn reads_elsewhere(args: Args<'_>) -> bool {
    Options::parse(args, true).is_ok_and(|options| {
        let mut patterns = options.by.iter().chain(&options.get);
        patterns.any(|pattern| pattern.has_place())
    })
}
