//! Floating-point numbers as text, the way Redis 7.0 reads and writes scores.

use crate::number::{parse_hexadecimal, push_i64};
use crate::script::decimal::general;

/// Digits that tell any two numbers apart.
const DIGITS: usize = 17;
/// Integers below this have all their digits in that many.
const EXACT: f64 = 1e17;

/// Reads a number, decimal or hexadecimal, or an infinity. `None` for what is none,
/// for what is "not a number", and for what is too large or too close to zero to be told from
/// infinity or zero.
pub(crate) fn parse(text: &[u8]) -> Option<f64> {
    let value = read(text)?;
    let digits = text
        .split(|b| matches!(b, b'e' | b'E' | b'p' | b'P'))
        .next();
    let named = text.iter().any(|b| matches!(b, b'i' | b'I'));
    let vanished = value == 0.0 && digits?.iter().any(|b| (b'1'..=b'9').contains(b));
    (!vanished && (named || value.is_finite())).then_some(value)
}

/// Reads an end of a range of scores: spaces may come first, nothing is zero, and what is too large
/// is infinite.
pub(crate) fn parse_bound(text: &[u8]) -> Option<f64> {
    match text.trim_ascii_start() {
        [] if text.is_empty() => Some(0.0),
        text => read(text),
    }
}

fn read(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let value = parse_hexadecimal(text).or_else(|| text.parse().ok());
    value.filter(|value| !value.is_nan())
}

/// Appends a number with so many digits that reading it gives the same number.
pub(crate) fn push(value: f64, out: &mut Vec<u8>) {
    let whole = value.trunc() == value && value.abs() < EXACT;
    if whole && (value != 0.0 || value.is_sign_positive()) {
        return push_i64(value as i64, out);
    }
    out.extend_from_slice(general(value, DIGITS).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_seventeen_digits() {
        for (value, want) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-1.5, "-1.5"),
            (0.1, "0.10000000000000001"),
            (123456.789, "123456.789"),
            (99999999999999984.0, "99999999999999984"),
            (1e17, "1e+17"),
            (-1.25e20, "-1.25e+20"),
            (0.0001, "0.0001"),
            (0.000012, "1.2e-05"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let mut out = Vec::new();
            push(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }

    #[test]
    fn numbers_are_read_as_c_does() {
        for (text, want) in [
            ("1", 1.0),
            ("+1.5", 1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("-1e3", -1000.0),
            ("0x1p4", 16.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0e5", 0.0),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(want), "{text}");
        }
        for bad in ["", " 1", "1 ", "nan", "1e400", "1e-400", "1e", "x", "(1"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse_bound(b""), Some(0.0));
        assert_eq!(parse_bound(b" 1"), Some(1.0));
        assert_eq!(parse_bound(b"-1e400"), Some(f64::NEG_INFINITY));
        assert_eq!(parse_bound(b" "), None);
        assert_eq!(parse_bound(b"nan"), None);
    }
}
