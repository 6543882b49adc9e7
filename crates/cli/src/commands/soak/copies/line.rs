//! What a process tells of its operations on lines with copies: a line before each begins, and one
//! when it has ended.

use super::super::locks::MARK;
use std::fmt;
use std::str::{FromStr, SplitAsciiWhitespace};

/// A thread begins an operation, or has ended the one that it has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// Nanoseconds since 1970, by the machine's clock.
    pub at: u64,
    /// Which thread of its process.
    pub thread: u32,
    pub what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It reads a line.
    Reads(u64),
    /// It writes this to a line.
    Writes(u64, u64),
    /// It has read this.
    Has(u64),
    /// A majority has what it has written.
    Written,
    /// It has failed: a write may take effect later, or never.
    Failed,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK} {} {} ", self.at, self.thread)?;
        match self.what {
            What::Reads(line) => write!(f, "r {line} ."),
            What::Writes(line, value) => write!(f, "w {line} {value} ."),
            What::Has(value) => write!(f, "h {value} ."),
            What::Written => write!(f, "ok ."),
            What::Failed => write!(f, "no ."),
        }
    }
}

/// A line that is none, such as one that a death has cut off.
#[derive(Debug, PartialEq, Eq)]
pub struct NoLine;

impl FromStr for Line {
    type Err = NoLine;

    fn from_str(text: &str) -> Result<Self, NoLine> {
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some(MARK) {
            return Err(NoLine);
        }
        let (at, thread) = (number(&mut words)?, number(&mut words)? as u32);
        let what = match words.next() {
            Some("r") => What::Reads(number(&mut words)?),
            Some("w") => What::Writes(number(&mut words)?, number(&mut words)?),
            Some("h") => What::Has(number(&mut words)?),
            Some("ok") => What::Written,
            Some("no") => What::Failed,
            _ => return Err(NoLine),
        };
        // Without its end, its last number may be a part of one.
        match (words.next(), words.next()) {
            (Some("."), None) => Ok(Line { at, thread, what }),
            _ => Err(NoLine),
        }
    }
}

fn number(words: &mut SplitAsciiWhitespace<'_>) -> Result<u64, NoLine> {
    words
        .next()
        .and_then(|word| word.parse().ok())
        .ok_or(NoLine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood_and_what_is_cut_off_is_not() {
        for what in [
            What::Reads(3),
            What::Writes(3, 77),
            What::Has(77),
            What::Written,
            What::Failed,
        ] {
            let line = Line {
                at: 12,
                thread: 1,
                what,
            };
            let text = line.to_string();
            assert_eq!(text.parse(), Ok(line));
            for end in 0..text.len() {
                assert_eq!(text[..end].parse::<Line>(), Err(NoLine), "{}", &text[..end]);
            }
        }
        for wrong in ["# 1 1 x .", "? 1 1 ok .", "# 1 1 ok . .", "# 1 1 h -1 ."] {
            assert_eq!(wrong.parse::<Line>(), Err(NoLine), "{wrong}");
        }
    }
}
