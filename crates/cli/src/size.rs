//! Sizes and counts as people write them: `4096`, `64K`, `256M`, `2GiB`; `1 234 567`.

use rackmem::Size;

/// Powers of 1024 by their letter.
const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];

/// Bytes of a size; for clap.
pub fn parse(text: &str) -> Result<u64, String> {
    text.parse().map(|Size(bytes)| bytes)
}

/// A size for people, in the largest unit that leaves it at least one.
pub fn show(bytes: u64) -> String {
    let unit = UNITS.iter().rev().find(|unit| bytes >> unit.1 > 0);
    match unit {
        None => format!("{bytes} B"),
        Some(&(letter, shift)) => {
            let tenths = (u128::from(bytes) * 10) >> shift;
            match tenths % 10 {
                0 => format!("{} {letter}iB", tenths / 10),
                tenth => format!("{}.{tenth} {letter}iB", tenths / 10),
            }
        }
    }
}

/// A count for people, its thousands apart.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let cases = [(7, "7"), (1000, "1 000"), (1234567, "1 234 567")];
        for (number, text) in cases {
            assert_eq!(count(number), text);
        }
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
            assert_eq!(show(bytes), text);
        }
    }
}
