//! Sizes as people write them: `4096`, `64K`, `256M`, `2GiB`.

use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// Powers of 1024 by their letter.
const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];

/// A number of bytes, written as a number, or as a number and K, M, G or T,
/// which are powers of 1024.
///
/// ```
/// use rackmem::Size;
///
/// let size: Size = "64M".parse().unwrap();
/// assert_eq!(size, Size(64 << 20));
/// assert_eq!(size.to_string(), "64 MiB");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Size(pub u64);

/// What may stand in a file.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a size is a number of bytes, or a text like \"64K\", \"256M\" or \"2G\""
)]
enum Written {
    Bytes(u64),
    Text(String),
}

impl TryFrom<Written> for Size {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Bytes(bytes) => Ok(Size(bytes)),
            Written::Text(text) => text.parse(),
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let upper = text.trim().to_ascii_uppercase();
        let bare = upper.strip_suffix("IB").or(upper.strip_suffix('B'));
        let bare = bare.unwrap_or(&upper);
        let (digits, shift) = UNITS
            .iter()
            .find_map(|&(letter, shift)| Some((bare.strip_suffix(letter)?, shift)))
            .unwrap_or((bare, 0));
        let number: u64 = digits
            .parse()
            .map_err(|_| format!("`{text}` is no size: write one like 4096, 64K, 256M or 2G"))?;
        let bytes = number.checked_mul(1 << shift);
        let bytes = bytes.ok_or_else(|| format!("`{text}` is more than 2^64 bytes"))?;
        Ok(Size(bytes))
    }
}

/// In the largest unit that leaves it at least one, with one decimal where it is not exact.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().rev().find(|unit| self.0 >> unit.1 > 0);
        let Some(&(letter, shift)) = unit else {
            return write!(f, "{} B", self.0);
        };
        let tenths = (u128::from(self.0) * 10) >> shift;
        match tenths % 10 {
            0 => write!(f, "{} {letter}iB", tenths / 10),
            tenth => write!(f, "{}.{tenth} {letter}iB", tenths / 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_powers_of_1024() {
        let cases = [
            ("4096", 4096),
            ("64k", 65_536),
            ("256M", 256 << 20),
            ("2GiB", 2 << 30),
            ("1T", 1 << 40),
            (" 7 b", 7),
        ];
        for (text, bytes) in cases {
            let size = text.replace(' ', "").parse();
            assert_eq!(size, Ok(Size(bytes)), "{text}");
        }
        for text in ["", "K", "1.5G", "-1", "64Q", "1e3"] {
            let why = text.parse::<Size>().unwrap_err();
            assert!(why.contains("256M"), "{text}: {why}");
        }
        assert!("99999999999T".parse::<Size>().unwrap_err().contains("2^64"));
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (32 << 20, "32 MiB"),
            (u64::MAX, "16777215.9 TiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }
}
