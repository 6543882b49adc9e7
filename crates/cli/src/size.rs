//! Sizes and counts as people write them: `4096`, `64K`, `256M`, `2GiB`; `1 234 567`.

use rackmem::Size;

/// Bytes of a size; for clap.
pub fn parse(text: &str) -> Result<u64, String> {
    text.parse().map(|Size(bytes)| bytes)
}

/// A size for people, in the largest unit that leaves it at least one.
pub fn show(bytes: u64) -> String {
    Size(bytes).to_string()
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
}
