//! Numbers as text, the way Redis reads and writes them.

/// Digits after the point that are kept exactly.
const SCALE: u32 = 17;
/// Digits before the point that fit beside them.
const WHOLE: usize = 20;
const ONE: i128 = 10i128.pow(SCALE);
/// Bytes of the longest 64-bit integer.
pub(crate) const INTEGER_LEN: usize = 20;

/// Reads an integer in its one canonical form: no spaces, no plus, no leading zeros.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    match digits {
        [] => return None,
        [b'0'] => return (!negative).then_some(0),
        [b'0', ..] => return None,
        _ => {}
    }
    if digits.len() >= INTEGER_LEN {
        return None;
    }
    let mut value: i128 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i128::from(digit - b'0');
    }
    i64::try_from(if negative { -value } else { value }).ok()
}

/// Writes an integer into `out` and says how many bytes it took.
pub(crate) fn format_i64(value: i64, out: &mut [u8; INTEGER_LEN]) -> usize {
    let mut digits = [0; INTEGER_LEN];
    let mut at = INTEGER_LEN;
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    let len = INTEGER_LEN - at;
    out[..len].copy_from_slice(&digits[at..]);
    len
}

/// Appends an integer.
#[inline]
pub(crate) fn push_i64(value: i64, out: &mut Vec<u8>) {
    if (0..10).contains(&value) {
        out.push(b'0' + value as u8);
        return;
    }
    let mut digits = [0; INTEGER_LEN];
    let len = format_i64(value, &mut digits);
    out.extend_from_slice(&digits[..len]);
}

/// A number with a fraction: exact while it has up to 20 digits before and 17 after the point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// In units of 10^-17.
    Exact(i128),
    Float(f64),
}

impl Number {
    /// Reads decimal text, with or without an exponent.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if let Some(exact) = parse_exact(text) {
            return Some(Self::Exact(exact));
        }
        let text = std::str::from_utf8(text).ok().filter(|t| t.len() <= 512)?;
        let float = parse_hexadecimal(text).or_else(|| text.parse().ok());
        let float = float.filter(|f: &f64| !f.is_nan())?;
        Some(parse_exact(format!("{float}").as_bytes()).map_or(Self::Float(float), Self::Exact))
    }

    /// The sum; `None` when it is not finite.
    pub fn plus(self, other: Self) -> Option<Self> {
        if let (Self::Exact(a), Self::Exact(b)) = (self, other)
            && let Some(sum) = a.checked_add(b)
        {
            return Some(Self::Exact(sum));
        }
        let sum = self.float() + other.float();
        sum.is_finite().then_some(Self::Float(sum))
    }

    /// The nearest number of double precision.
    pub fn float(self) -> f64 {
        match self {
            Self::Exact(exact) => exact as f64 / ONE as f64,
            Self::Float(float) => float,
        }
    }

    /// Plain decimal digits, no exponent, no trailing zeros.
    pub fn text(self) -> String {
        match self {
            Self::Float(float) => format!("{float}"),
            Self::Exact(exact) => {
                let (whole, part) = (
                    exact.unsigned_abs() / ONE as u128,
                    exact.unsigned_abs() % ONE as u128,
                );
                let sign = if exact < 0 { "-" } else { "" };
                let part = format!("{part:0width$}", width = SCALE as usize);
                match part.trim_end_matches('0') {
                    "" => format!("{sign}{whole}"),
                    part => format!("{sign}{whole}.{part}"),
                }
            }
        }
    }
}

/// Hexadecimal digits, with a fraction and a power of two if there are: `0x1.8p-3`.
pub(crate) fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let rest = rest
        .strip_prefix("0x")
        .or_else(|| rest.strip_prefix("0X"))?;
    let (digits, power) = rest
        .split_once(['p', 'P'])
        .map_or(Some((rest, 0)), |(digits, power)| {
            Some((digits, power.parse::<i32>().ok()?))
        })?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + part.len() == 0 {
        return None;
    }
    let value = (whole.chars().chain(part.chars())).try_fold(0f64, |value, digit| {
        Some(value * 16.0 + f64::from(digit.to_digit(16)?))
    })?;
    let power = power.saturating_sub(4 * part.len() as i32);
    Some(sign * value * 2f64.powi(power))
}

fn parse_exact(text: &[u8]) -> Option<i128> {
    let (negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (whole, part) = match rest.iter().position(|b| *b == b'.') {
        Some(dot) => (&rest[..dot], &rest[dot + 1..]),
        None => (rest, &rest[rest.len()..]),
    };
    let digits = |s: &[u8]| s.iter().all(u8::is_ascii_digit);
    if whole.len() + part.len() == 0 || whole.len() > WHOLE || part.len() > SCALE as usize {
        return None;
    }
    if !digits(whole) || !digits(part) {
        return None;
    }
    let number = |s: &[u8]| s.iter().fold(0i128, |n, d| n * 10 + i128::from(d - b'0'));
    let value = number(whole) * ONE + number(part) * 10i128.pow(SCALE - part.len() as u32);
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_strictly() {
        for good in [0, 1, -1, 10, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            push_i64(good, &mut out);
            assert_eq!(out, good.to_string().as_bytes());
            assert_eq!(parse_i64(&out), Some(good));
        }
        for bad in [
            "",
            "-",
            "+1",
            "01",
            "-0",
            " 1",
            "1 ",
            "9223372036854775808",
            "-9223372036854775809",
            "1e3",
            "0x1",
        ] {
            assert_eq!(parse_i64(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn sums_of_decimals_are_exact() {
        let sum = |a: &str, b: &str| {
            Number::parse(a.as_bytes())
                .unwrap()
                .plus(Number::parse(b.as_bytes()).unwrap())
                .map(Number::text)
        };
        for (a, b, want) in [
            ("0.1", "0.2", "0.3"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("3", "-5.25", "-2.25"),
            ("-0.5", "0.5", "0"),
            ("0x10", "1", "17"),
            ("-0x1.8p-1", "0", "-0.75"),
            ("1e30", "1", "1000000000000000000000000000000"),
        ] {
            assert_eq!(sum(a, b).as_deref(), Some(want), "{a} + {b}");
        }
        assert_eq!(sum("1e308", "1e308"), None);
        for bad in [
            "", ".", "-", "abc", "nan", "1 ", "1..2", "0x", "0x.", "0xg", "0x1p", "0x1 ",
        ] {
            assert_eq!(Number::parse(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
