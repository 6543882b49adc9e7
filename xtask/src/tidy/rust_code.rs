//! Rust source without its comments, strings and tests, so that rules see only code that runs.

/// Replaces comments and the insides of strings and characters by spaces; lines keep their numbers.
pub fn code_only(source: &str) -> String {
    let mut output = String::with_capacity(source.len());
    let mut rest = source;
    let mut previous = ' ';
    while let Some(first) = rest.chars().next() {
        let length = skipped_length(rest, previous).unwrap_or(0);
        if length == 0 {
            output.push(first);
            previous = first;
            rest = &rest[first.len_utf8()..];
        } else {
            let (skipped, after) = rest.split_at(length);
            output.extend(skipped.chars().map(|c| if c == '\n' { c } else { ' ' }));
            previous = ' ';
            rest = after;
        }
    }
    output
}

/// The line (from 0) and the column (in bytes) at which every `//` comment begins that is not
/// inside a string.
pub fn line_comments(source: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let (mut at, mut line, mut line_start) = (0, 0, 0);
    let mut previous = ' ';
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let skipped = skipped_length(rest, previous).unwrap_or(0);
        if skipped > 0 && rest.starts_with("//") {
            found.push((line, at - line_start));
        }
        let length = skipped.max(first.len_utf8());
        for (place, _) in rest[..length].match_indices('\n') {
            line += 1;
            line_start = at + place + 1;
        }
        previous = if skipped > 0 { ' ' } else { first };
        at += length;
    }
    found
}

/// The code of a file up to its unit tests, which stand last in a file.
pub fn without_tests(code: &str) -> &str {
    let tests = code
        .find("#[cfg(test)]\nmod ")
        .or_else(|| code.find("#![cfg(test)]"));
    tests.map_or(code, |start| &code[..start])
}

/// Whether `word` stands in `code` by itself, not as a part of a longer name.
pub fn has_word(code: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(start, _)| {
        let before = code[..start].chars().next_back();
        let after = code[start + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

/// The length of the comment, string or character that `rest` begins with.
fn skipped_length(rest: &str, previous: char) -> Option<usize> {
    let in_name = previous.is_alphanumeric() || previous == '_';
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment(rest));
    }
    if rest.starts_with('"') {
        return Some(string(rest));
    }
    if !in_name && (rest.starts_with("r\"") || rest.starts_with("r#") || rest.starts_with("br")) {
        return raw_string(rest);
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    None
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`, `br"…"`; a raw name such as `r#type` is none.
fn raw_string(rest: &str) -> Option<usize> {
    let after_r = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after_r.len() - after_r.trim_start_matches('#').len();
    let body = after_r[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - body.len();
    Some(
        body.find(&end)
            .map_or(rest.len(), |at| start + at + end.len()),
    )
}

/// `'a'` and `'\n'`; the quote of a lifetime begins none.
fn character(rest: &str) -> Option<usize> {
    let body = &rest[1..];
    if body.starts_with('\\') {
        let end = body.char_indices().skip(2).find(|(_, c)| *c == '\'')?.0;
        return Some(end + 2);
    }
    let first = body.chars().next()?.len_utf8();
    body[first..].starts_with('\'').then_some(first + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(source: &str) -> String {
        code_only(source)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn comments_vanish_and_lines_stay() {
        assert_eq!(kept("a // b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(code_only("/* a\nb */\nc").lines().count(), 3);
        assert_eq!(
            kept("let unfinished = 1; /* never closed"),
            "let unfinished = 1;"
        );
    }

    #[test]
    fn strings_and_characters_vanish() {
        assert_eq!(kept(r#"f("a \" b", 'c', '\'', '\u{1F600}')"#), "f( , , , )");
        assert_eq!(kept(r####"f(r##"a "# b"##, br"c\", r"d")"####), "f( , , )");
        assert_eq!(kept("\"// no comment\" x"), "x");
        assert_eq!(kept("'é' x"), "x");
    }

    #[test]
    fn comments_are_found_where_they_begin() {
        let source = "/// a\nlet s = \"\n// no\n\"; // b\n  // c\n/* // d */ 'x'";
        assert_eq!(line_comments(source), [(0, 0), (3, 3), (4, 2)]);
    }

    #[test]
    fn lifetimes_and_raw_names_stay() {
        assert_eq!(
            kept("fn f<'a>(x: &'a str, r#type: u8)"),
            "fn f<'a>(x: &'a str, r#type: u8)"
        );
        assert_eq!(
            kept("break 'outer; bright(for_r)"),
            "break 'outer; bright(for_r)"
        );
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("x: unsafe {", "unsafe"));
        assert!(!has_word("#![forbid(unsafe_code)]", "unsafe"));
        assert!(has_word("use std::time::Instant;", "std::time"));
    }

    #[test]
    fn tests_are_cut_off() {
        assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests { b }"), "a\n");
        assert_eq!(
            without_tests("a\n#[cfg(test)]\nfn helper() {}\nb"),
            "a\n#[cfg(test)]\nfn helper() {}\nb"
        );
    }
}
