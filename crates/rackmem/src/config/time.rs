//! Times as people write them: `300us`, `50ms`, `2s`, `5m`.

use serde::Deserialize;
use std::str::FromStr;
use std::time::Duration;

/// Nanoseconds by their unit; the longer names first, so that `ms` is not `s`.
const UNITS: [(&str, u64); 5] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
];

/// A time, written as a whole number and ns, us, ms, s or m.
///
/// ```
/// use rackmem::Time;
/// use std::time::Duration;
///
/// assert_eq!("50ms".parse(), Ok(Time(Duration::from_millis(50))));
/// assert!("50".parse::<Time>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Duration);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a time: write one like 300us, 50ms, 2s or 5m");
        let bare = text.trim();
        let (digits, unit) = UNITS
            .iter()
            .find_map(|&(name, unit)| Some((bare.strip_suffix(name)?, unit)))
            .ok_or_else(wrong)?;
        let number: u64 = digits.trim_end().parse().map_err(|_| wrong())?;
        let nanos = number.checked_mul(unit).ok_or_else(wrong)?;
        Ok(Time(Duration::from_nanos(nanos)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        let cases = [
            ("300us", 300_000),
            ("50ms", 50_000_000),
            (" 2s", 2_000_000_000),
            ("5 m", 300_000_000_000),
            ("7ns", 7),
        ];
        for (text, nanos) in cases {
            assert_eq!(
                text.parse(),
                Ok(Time(Duration::from_nanos(nanos))),
                "{text}"
            );
        }
        for text in ["", "5", "ms", "1.5s", "-1s", "2h", "99999999999m"] {
            let why = text.parse::<Time>().unwrap_err();
            assert!(why.contains("50ms"), "{text}: {why}");
        }
    }
}
