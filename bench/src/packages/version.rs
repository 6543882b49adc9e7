//! Which of two Debian versions is the newer, by the rules of Debian Policy 5.6.12.

use std::cmp::Ordering;

/// Compares two versions, `[epoch:]upstream[-revision]`.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    number(a.0, b.0)
        .then_with(|| text(a.1, b.1))
        .then_with(|| text(a.2, b.2))
}

/// Epoch, upstream version, revision.
fn parts(version: &str) -> (&str, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
    (epoch, upstream, revision)
}

/// Compares texts and numbers by turns, as long as there are any.
fn text(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (letters_a, rest_a) = split(a, |c| !c.is_ascii_digit());
        let (letters_b, rest_b) = split(b, |c| !c.is_ascii_digit());
        let (digits_a, rest_a) = split(rest_a, |c| c.is_ascii_digit());
        let (digits_b, rest_b) = split(rest_b, |c| c.is_ascii_digit());
        let order = letters(letters_a, letters_b).then_with(|| number(digits_a, digits_b));
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    Ordering::Equal
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// Tildes come before the end, the end before letters, letters before all else.
fn letters(a: &str, b: &str) -> Ordering {
    let rank = |c: char| match c {
        '~' => (0, c),
        _ if c.is_ascii_alphabetic() => (2, c),
        _ => (3, c),
    };
    let ranks =
        |text: &str| -> Vec<(u8, char)> { text.chars().map(rank).chain([(1, '\0')]).collect() };
    ranks(a).cmp(&ranks(b))
}

/// Compares numbers of any length.
fn number(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order() {
        // Each is older than the next.
        let ascending = [
            "",
            "1.0~~",
            "1.0~~a",
            "1.0~",
            "1.0",
            "1.0-1",
            "1.0-1+b1",
            "1.0-2",
            "1.0-10",
            "1.0a",
            "1.0+dfsg-1",
            "1.0.1",
            "1.2",
            "1.10",
            "1:0.1",
            "10:0",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
            }
        }
        assert_eq!(compare("0:1.02-0", "1.2"), Ordering::Equal);
    }
}
