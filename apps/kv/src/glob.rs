//! Patterns with `*`, `?`, `[a-z]` and `\`, as KEYS and SCAN take them.
//!
//! Matching goes back only to the last `*`, so its time is at worst the product of the two lengths.

/// Whether `text` matches `pattern`, with letters of either case alike if `fold`.
pub(crate) fn matches(pattern: &[u8], text: &[u8], fold: bool) -> bool {
    // As in Redis, only these two match what is empty.
    if text.is_empty() {
        return matches!(pattern, b"" | b"*");
    }
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
            continue;
        }
        match one(&pattern[p..], text[t], fold) {
            Some(len) => {
                p += len;
                t += 1;
            }
            None => match star {
                Some((star_p, star_t)) => {
                    (p, t) = (star_p + 1, star_t + 1);
                    star = Some((star_p, star_t + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

/// Whether the pattern's first element matches `byte`: the element's length.
fn one(pattern: &[u8], byte: u8, fold: bool) -> Option<usize> {
    let same = |a: u8| {
        if fold {
            a.eq_ignore_ascii_case(&byte)
        } else {
            a == byte
        }
    };
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', class @ ..] => {
            let (hit, len) = in_class(class, byte, fold);
            hit.then_some(1 + len)
        }
        [b'\\', literal, ..] => same(*literal).then_some(2),
        [literal, ..] => same(*literal).then_some(1),
    }
}

/// Whether a class holds `byte`, and the class's length with its closing bracket.
fn in_class(class: &[u8], byte: u8, fold: bool) -> (bool, usize) {
    let lower = |b: u8| if fold { b.to_ascii_lowercase() } else { b };
    let byte = lower(byte);
    let negated = class.first() == Some(&b'^');
    let (mut at, mut hit) = (usize::from(negated), false);
    loop {
        match class[at.min(class.len())..] {
            // A class that is never closed ends with the pattern.
            [] => return (hit != negated, class.len()),
            [b']', ..] => return (hit != negated, at + 1),
            [b'\\', literal, ..] => {
                hit |= lower(literal) == byte;
                at += 2;
            }
            [first, b'-', last, ..] => {
                let (first, last) = (lower(first.min(last)), lower(first.max(last)));
                hit |= (first..=last).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                hit |= lower(literal) == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, want) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            (r"h\*llo", "h*llo", true),
            (r"h\*llo", "hello", false),
            (r"[\]]", "]", true),
            ("a*b*c", "axxbxxbxc", true),
            ("a*b*c", "axxbxxbx", false),
            ("*a", "aaab", false),
            ("[abc", "c", true),
            ("key:*", "key:1", true),
            ("**", "abc", true),
            ("**", "", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes(), false),
                want,
                "{pattern} {text}"
            );
        }
        assert!(matches(b"A[B-C]*", b"abX", true));
        assert!(!matches(b"A", b"a", false));
    }

    #[test]
    fn no_pattern_takes_exponential_time() {
        let pattern = b"a*".repeat(60);
        let text = [b'a'; 2000];
        assert!(matches(&pattern, &text, false));
        assert!(!matches(&[pattern.as_slice(), b"b"].concat(), &text, false));
    }
}
