//! What a process tells of the locks that its threads hold: a line when one enters,
//! and one before it leaves.

use rackmem::locked::Content;
use std::fmt;
use std::str::{FromStr, SplitAsciiWhitespace};

/// How such a line begins; others are for other ears.
pub const MARK: &str = "#";

/// A thread is inside, or is about to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// Nanoseconds since 1970, by the machine's clock.
    pub at: u64,
    pub lock: usize,
    /// Which thread of its process.
    pub thread: u32,
    pub writes: bool,
    /// What it found, or what it leaves.
    pub value: u64,
    pub what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Enters {
        token: u64,
        content: Content,
    },
    Leaves,
    /// Of a lock that comes and goes.
    Fate(Fate),
}

/// What has become of a lock that comes and goes, as a thread finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Made,
    Freed,
    /// A handle on it is told that it has been freed.
    Refused,
    /// A handle on it was let in to something else, or it is there again.
    Mistaken,
}

const FATES: [(Fate, &str); 4] = [
    (Fate::Made, "made"),
    (Fate::Freed, "freed"),
    (Fate::Refused, "refused"),
    (Fate::Mistaken, "mistaken"),
];

const CONTENTS: [(Content, &str); 3] = [
    (Content::Current, "current"),
    (Content::OwnerDied, "owner-died"),
    (Content::Lost, "lost"),
];

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = if self.writes { 'w' } else { 'r' };
        let (at, lock, thread, value) = (self.at, self.lock, self.thread, self.value);
        write!(f, "{MARK} {at} {lock} {thread} {access} {value}")?;
        match self.what {
            What::Leaves => Ok(()),
            What::Fate(fate) => {
                let name = FATES.iter().find(|(known, _)| *known == fate);
                write!(f, " {}", name.map_or("?", |(_, name)| name))
            }
            What::Enters { token, content } => {
                let name = CONTENTS.iter().find(|(known, _)| *known == content);
                write!(f, " {token} {}", name.map_or("?", |(_, name)| name))
            }
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
        let mut line = Line {
            at: number(&mut words)?,
            lock: number(&mut words)?,
            thread: number(&mut words)?,
            writes: match words.next() {
                Some("w") => true,
                Some("r") => false,
                _ => return Err(NoLine),
            },
            value: number(&mut words)?,
            what: What::Leaves,
        };
        if let Some(token) = words.next() {
            if let Some((fate, _)) = FATES.iter().find(|(_, name)| *name == token) {
                line.what = What::Fate(*fate);
                return Ok(line);
            }
            let token = token.parse().map_err(|_| NoLine)?;
            let name = words.next().ok_or(NoLine)?;
            let content = CONTENTS.iter().find(|(_, known)| *known == name);
            let content = content.ok_or(NoLine)?.0;
            line.what = What::Enters { token, content };
        }
        Ok(line)
    }
}

fn number<T: FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Result<T, NoLine> {
    words
        .next()
        .and_then(|word| word.parse().ok())
        .ok_or(NoLine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let enters = |(content, _)| What::Enters { token: 7, content };
        let fates = FATES.map(|(fate, _)| What::Fate(fate));
        let leaves = [What::Leaves].into_iter().chain(fates);
        for what in CONTENTS.map(enters).into_iter().chain(leaves) {
            let line = Line {
                at: 12,
                lock: 3,
                thread: 1,
                writes: !matches!(what, What::Enters { .. }),
                value: 99,
                what,
            };
            assert_eq!(line.to_string().parse(), Ok(line));
        }
        for cut in [
            "",
            "#",
            "# 12 3 1 w",
            "# 12 3 1 x 99",
            "# 12 3 1 w 99 7",
            "# 12 3 1 w 99 7 cur",
        ] {
            assert_eq!(cut.parse::<Line>(), Err(NoLine), "{cut}");
        }
    }
}
