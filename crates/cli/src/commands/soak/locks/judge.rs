//! Whether what threads told of a lock can be: nobody inside beside a writer, tokens that rise, and
//! values that are the last writer's, or, after a death that is told,
//! one that it may have been before.

use super::line::{Fate, Line, What};
use rackmem::locked::Content;
use std::collections::HashMap;

/// A process that was a member: its node, and the how many-th of that node it was.
pub type Process = (usize, usize);

/// What has come of it all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub entries: u64,
    /// Entries that were told of a death.
    pub told: u64,
    /// Times that the lock went from one node to another.
    pub hand_overs: u64,
    /// Locks that were made and freed meanwhile, and times that a handle on a freed one was used.
    pub made: u64,
    pub freed: u64,
    pub refused: u64,
    pub violations: Vec<String>,
}

/// At most so many are kept in words.
const KEPT: usize = 20;

/// One lock, as its lines tell in the order of time.
#[derive(Default)]
struct Lock {
    /// Who is inside: whether it writes.
    inside: HashMap<(Process, u32), bool>,
    /// The newest value that a writer has left.
    left: u64,
    /// What a writer may have left that lived on and did not tell, because it had no lease when it
    /// left.
    untold: Option<u64>,
    /// What was found by the first entry of the process that has had the lock last.
    found: u64,
    last: Option<Process>,
    /// The highest token of each node, and the highest of a writer.
    tokens: HashMap<usize, u64>,
    written: u64,
}

/// Judges what processes told: all lines of all locks, in any order. A thread that does not tell
/// that it leaves has died inside, or had no lease any more: it left when it entered,
/// as far as others can tell.
pub fn judge(mut lines: Vec<(Process, Line)>) -> Verdict {
    lines.sort_by_key(|(_, line)| line.at);
    let nexts = nexts(&lines);
    let mut verdict = Verdict::default();
    let mut locks = HashMap::<usize, Lock>::new();
    for ((process, line), next) in lines.into_iter().zip(nexts) {
        if let What::Fate(fate) = line.what {
            verdict.fate(process, &line, fate);
            continue;
        }
        let lock = locks.entry(line.lock).or_default();
        let who = (process, line.thread);
        match line.what {
            What::Fate(_) => {}
            What::Leaves => lock.leaves(who, &line),
            What::Enters { token, content } => {
                verdict.entries += 1;
                verdict.told += u64::from(content != Content::Current);
                verdict.hand_overs += u64::from(lock.last.is_some_and(|last| last.0 != process.0));
                if let Err(why) = lock.enters(who, &line, token, content)
                    && verdict.violations.len() < KEPT
                {
                    let (at, number) = (line.at, line.lock);
                    let text = format!(
                        "lock {number}, {at} ns, node {} ({}): {why}",
                        process.0, process.1
                    );
                    verdict.violations.push(text);
                }
                if next != Some(What::Leaves) {
                    lock.inside.remove(&who);
                }
                lock.untold = (line.writes && next.is_some_and(|next| next != What::Leaves))
                    .then_some(line.value + 1);
            }
        }
    }
    verdict
}

impl Verdict {
    fn fate(&mut self, process: Process, line: &Line, fate: Fate) {
        match fate {
            Fate::Made => self.made += 1,
            Fate::Freed => self.freed += 1,
            Fate::Refused => self.refused += 1,
            Fate::Mistaken if self.violations.len() < KEPT => {
                let (at, number) = (line.at, line.value);
                let text = format!(
                    "{at} ns, node {} ({}): a handle on freed lock {number:#x} was let in, or one found another lock",
                    process.0, process.1
                );
                self.violations.push(text);
            }
            Fate::Mistaken => {}
        }
    }
}

/// What the same thread tells next, for each line.
fn nexts(lines: &[(Process, Line)]) -> Vec<Option<What>> {
    let mut later = HashMap::new();
    let backwards = lines.iter().rev();
    let mut nexts: Vec<_> = backwards
        .map(|(process, line)| later.insert((*process, line.thread), line.what))
        .collect();
    nexts.reverse();
    nexts
}

impl Lock {
    fn leaves(&mut self, who: (Process, u32), line: &Line) {
        self.inside.remove(&who);
        if line.writes {
            self.left = line.value;
        }
    }

    fn enters(
        &mut self,
        who: (Process, u32),
        line: &Line,
        token: u64,
        content: Content,
    ) -> Result<(), String> {
        let process = who.0;
        let before = self.last.replace(process);
        let found = self.found;
        if before != Some(process) {
            self.found = line.value;
        }
        let beside = self
            .inside
            .iter()
            .find(|(_, writes)| line.writes || **writes);
        let beside = beside.map(|((other, _), _)| *other);
        let others = self.tokens.iter().filter(|(node, _)| **node != process.0);
        let highest = others.map(|(_, token)| *token).max().unwrap_or(0);
        let low = if line.writes {
            token <= highest
        } else {
            token < self.written
        };
        let left = self.left;
        let right = match content {
            Content::Current => line.value == left || self.untold == Some(line.value),
            // No older than what the dead one found, which others have told if it did not.
            Content::OwnerDied => (found.min(left)..=left).contains(&line.value),
            Content::Lost => line.value <= left,
        };
        // From here on it is what there is.
        self.left = line.value;
        self.inside.insert(who, line.writes);
        let mine = self.tokens.entry(process.0).or_default();
        *mine = token.max(*mine);
        if line.writes {
            self.written = token.max(self.written);
        }
        if let Some(other) = beside {
            return Err(format!("is inside beside node {} ({})", other.0, other.1));
        }
        if low {
            return Err(format!("has token {token}, others had {highest}"));
        }
        if !right {
            let value = line.value;
            return Err(format!(
                "found {value} ({content:?}), where {left} was left and {found} before that"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Process = (0, 0);
    const B: Process = (1, 0);

    fn enters(process: Process, at: u64, value: u64, token: u64) -> (Process, Line) {
        told(process, at, value, token, Content::Current)
    }

    fn told(
        process: Process,
        at: u64,
        value: u64,
        token: u64,
        content: Content,
    ) -> (Process, Line) {
        let what = What::Enters { token, content };
        let mut line = leaves(process, at, value);
        line.1.what = what;
        line
    }

    fn leaves(process: Process, at: u64, value: u64) -> (Process, Line) {
        let line = Line {
            at,
            lock: 0,
            thread: 0,
            writes: true,
            value,
            what: What::Leaves,
        };
        (process, line)
    }

    fn why(lines: &[(Process, Line)]) -> String {
        judge(lines.to_vec()).violations.join("; ")
    }

    #[test]
    fn turns_that_are_right_are_counted() {
        let lines = [
            enters(A, 1, 0, 1),
            leaves(A, 2, 1),
            enters(B, 3, 1, 3),
            leaves(B, 4, 2),
            // B goes on alone, and dies inside: what it did since it was given the lock is gone.
            enters(B, 5, 2, 3),
            told(A, 6, 1, 5, Content::OwnerDied),
            leaves(A, 7, 2),
            enters(A, 8, 2, 5),
            leaves(A, 9, 3),
        ];
        let verdict = judge(lines.into_iter().rev().collect());
        let counted = Verdict {
            entries: 5,
            told: 1,
            hand_overs: 2,
            ..Verdict::default()
        };
        assert_eq!(verdict, counted);
    }

    #[test]
    fn a_handle_that_finds_another_lock_is_noticed() {
        let fate = |fate| {
            let mut line = leaves(A, 1, 7);
            line.1.what = What::Fate(fate);
            line
        };
        let fates = [Fate::Made, Fate::Freed, Fate::Refused].map(fate);
        let counted = Verdict {
            made: 1,
            freed: 1,
            refused: 1,
            ..Verdict::default()
        };
        assert_eq!(judge(fates.to_vec()), counted);
        assert!(why(&[fate(Fate::Mistaken)]).contains("another lock"));
    }

    #[test]
    fn what_cannot_be_is_noticed() {
        let first = [enters(A, 1, 0, 1), leaves(A, 4, 1)];
        let with = |more: &[(Process, Line)]| why(&[&first[..], more].concat());
        assert!(with(&[enters(B, 3, 1, 3), leaves(B, 9, 2)]).contains("beside node 0"));
        assert!(with(&[enters(B, 5, 1, 1)]).contains("token"));
        assert!(with(&[enters(B, 5, 0, 3)]).contains("found 0"));
        assert!(with(&[told(B, 5, 2, 3, Content::OwnerDied)]).contains("found 2"));
        assert!(with(&[told(B, 5, 2, 3, Content::Lost)]).contains("found 2"));
        assert_eq!(with(&[enters(B, 5, 1, 3), leaves(B, 9, 2)]), "");
        // What was handed over does not die with who had it later.
        let later = [
            enters(B, 5, 1, 3),
            leaves(B, 6, 2),
            enters(A, 7, 2, 5),
            leaves(A, 8, 3),
        ];
        let dead = told(B, 9, 1, 7, Content::OwnerDied);
        assert!(with(&[&later[..], &[dead]].concat()).contains("found 1"));
    }
}
