//! Where in a configuration file the cause of an error stands.

use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Characters of the offending line that are shown, at most.
const SHOWN: usize = 80;
/// A key is suggested if so many letters, at most, have to be changed to make it.
const CLOSE: usize = 3;

/// What the parser says, in a field engineer's words: toml's and serde's name for it, and ours.
const WORDS: [(&str, &str); 7] = [
    ("expected u32", "expected a whole number"),
    ("expected u64", "expected a whole number"),
    ("expected usize", "expected a whole number"),
    ("expected f64", "expected a number, such as 0.01"),
    (
        "expected a sequence",
        "expected a list, such as [\"host1:7401\"]",
    ),
    ("expected a string", "expected a text in quotes"),
    ("unknown variant", "there is no"),
];

/// What a parser has refused, with the line, its text, and the key that was meant if a key is
/// unknown.
pub(super) fn refused(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().split_whitespace();
    let mut why = message.collect::<Vec<_>>().join(" ");
    if let Some(told) = unknown_key(&why) {
        why = told;
    }
    for (theirs, ours) in WORDS {
        why = why.replace(theirs, ours);
    }
    match error.span() {
        Some(span) => at(text, &span, &why),
        None => why,
    }
}

/// A message with the line that it is about: it begins with the name of a key, such as `cache`,
/// `nodes[1]` or `faults: loss`. Where there is no such key, the message alone.
pub(super) fn named(text: &str, why: &str) -> String {
    let found = DeTable::parse(text).ok();
    let named = why.trim_start_matches('`');
    let span = found.and_then(|table| span_of(table.get_ref(), named));
    span.map_or_else(|| why.to_owned(), |span| at(text, &span, why))
}

/// The place of the value that a message begins with the name of.
fn span_of(table: &DeTable<'_>, why: &str) -> Option<Range<usize>> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = why.find(|c| !is_key(c)).unwrap_or(why.len());
    let (key, rest) = why.split_at(end);
    // A time may be written as `lease` or as `lease_ms`.
    let is_meant = |name: &str| {
        let unit = name.strip_prefix(key);
        unit.is_some_and(|unit| ["", "_ms", "_us"].contains(&unit))
    };
    let mut rows = table.iter();
    let (name, value) = rows.find(|(name, _)| is_meant(name.get_ref()))?;
    let inner = match value.get_ref() {
        DeValue::Array(list) => {
            let number = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let number: Option<usize> = number.and_then(|(number, _)| number.parse().ok());
            number
                .and_then(|number| list.get(number))
                .map(|it| it.span())
        }
        DeValue::Table(table) => span_of(table, rest.trim_start_matches([':', '.', ' '])),
        _ => None,
    };
    Some(inner.unwrap_or_else(|| name.span()))
}

/// `line 3 (cache = "lots"): ` and why.
fn at(text: &str, span: &Range<usize>, why: &str) -> String {
    let start = (0..=span.start.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    let number = text[..start].matches('\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    let visible = line.chars().filter(|letter| !letter.is_control());
    let shown: String = visible.take(SHOWN).collect();
    match shown.is_empty() {
        true => format!("line {number}: {why}"),
        false => format!("line {number} ({shown}): {why}"),
    }
}

/// serde's "unknown field `x`, expected one of `a`, `b`": which of these was meant.
fn unknown_key(why: &str) -> Option<String> {
    let (_, rest) = why.split_once("unknown field `")?;
    let (key, rest) = rest.split_once('`')?;
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let close = known.iter().map(|name| (distance(key, name), *name)).min();
    Some(match close {
        Some((changes, name)) if changes <= CLOSE.min(name.len() / 2) => {
            format!("unknown key `{key}`; did you mean `{name}`?")
        }
        _ => format!("unknown key `{key}`; there are {}", known.join(", ")),
    })
}

/// Letters to add, take away or replace until one word is the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_far_apart_as_the_letters_that_change() {
        let cases = [
            ("", "ab", 2),
            ("cache", "cahce", 2),
            ("lease", "lease_ms", 3),
            ("a", "a", 0),
        ];
        for (a, b, changes) in cases {
            assert_eq!(
                (distance(a, b), distance(b, a)),
                (changes, changes),
                "{a} {b}"
            );
        }
    }

    #[test]
    fn a_message_that_begins_with_a_key_gets_its_line() {
        let text =
            "nodes = [\n  \"a:1\",\n  \"b:2\",\n]\ncache = 5\n\n[faults]\nseed = 1\nloss = 2\n";
        let line = |why: &str| named(text, why);
        assert_eq!(line("cache is small"), "line 5 (cache = 5): cache is small");
        assert_eq!(line("nodes[1] = x"), "line 3 (\"b:2\",): nodes[1] = x");
        assert_eq!(line("nodes[7] = x"), "line 1 (nodes = [): nodes[7] = x");
        assert_eq!(
            line("faults: loss is a share"),
            "line 9 (loss = 2): faults: loss is a share"
        );
        assert_eq!(line("faults: all"), "line 7 ([faults]): faults: all");
        assert_eq!(line("a rack has nodes"), "a rack has nodes");
    }

    #[test]
    fn long_and_strange_lines_are_cut() {
        let text = format!("a = \"{}\u{1b}[2J\"", "é".repeat(200));
        let told = at(&text, &(7..9), "no");
        assert!(
            told.chars().count() < 120 && !told.contains('\u{1b}'),
            "{told}"
        );
        assert_eq!(at("", &(5..6), "no"), "line 1: no");
    }
}
