//! The highest stamps of lines, as far as the switch knows them: so that a write takes one round.
//!
//! A guess would be wrong: a write whose guess is refused may have been stored somewhere and seen,
//! and the next try under another stamp brings it back after a newer one.
//! So an entry is *valid* only when nothing that has completed is above it:
//!
//! | | |
//! |---|---|
//! | learn | the first copy of a question for stamps that finds no entry reserves one; it is valid when that question's own quorum has answered, and never made from a write that passes |
//! | raise | every stamp that passes, in requests and answers, raises the highest, of a reserved entry as well: what completes through this switch is below it |
//! | choose | a write without a stamp gets that of the next round; its row keeps it, so that a copy of the request gets the same |
//! | miss | no stamp: the requester does two rounds, under another number |
//! | lose | all of it with the config: a switch that has forgotten gets a new one before it chooses again |
//!
//! An entry takes the place of another line's. The row of a choice is the requester's in ABD-OP. A
//! question whose requester is gone is not answered: after [`PATIENCE`] others, the next one learns
//! in its place.

use super::rmt::{Array, Pass, Violation};
use crate::abd::{Stamp, Writer};
use crate::wire::{Seq, Tag};

/// What is known of a line's stamps, and who learns them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Line {
    pub(super) tag: Tag,
    /// The question that learns: its row and the low half of its number. None: valid.
    pub(super) learner: Option<(u16, u32)>,
    /// Questions that have passed since it learns.
    pub(super) passed: u8,
    /// Whether there is an entry.
    pub(super) used: bool,
}

/// Questions for a line that pass while one of them learns, until another one does.
const PATIENCE: u8 = 64;

/// See the module.
#[derive(Clone)]
pub struct Stamps {
    /// Which line has an entry.
    pub lines: Array<Line>,
    /// Its highest stamp.
    pub max: Array<u64>,
    /// What was chosen, by row.
    pub chosen: Array<u64>,
}

fn by(row: usize, seq: Seq) -> (u16, u32) {
    (row as u16, seq.low())
}

impl Stamps {
    /// In this stage and the two behind it.
    pub fn new(stage: u8, rows: usize, lines: usize) -> Self {
        Stamps {
            lines: Array::new(stage, lines),
            max: Array::new(stage + 1, lines),
            chosen: Array::new(stage + 2, rows),
        }
    }

    /// Forgets all lines. What was chosen stays: numbers say what it is of.
    pub fn clear(&mut self) {
        for at in 0..self.lines.len() {
            self.lines.put(at, Some(Line::default()));
        }
    }

    /// Everything that decides what it will do.
    pub fn state(&self) -> impl core::hash::Hash + use<> {
        let used = (0..self.lines.len()).filter(|at| self.lines.items()[*at].used);
        let lines = used.map(|at| (at, self.lines.items()[at], self.max.items()[at]));
        let rows = self.chosen.items().iter().enumerate();
        let chosen = rows
            .filter(|row| *row.1 != 0)
            .map(|(at, stamp)| (at, *stamp));
        let lines: alloc::vec::Vec<_> = lines.collect();
        (lines, chosen.collect::<alloc::vec::Vec<_>>())
    }

    fn place(&self, line: Tag) -> usize {
        super::crc32(line.0) as usize % self.lines.len().max(1)
    }

    /// A question for stamps passes.
    pub fn learn(&mut self, pass: &Pass, line: Tag, row: usize, seq: Seq) -> Result<(), Violation> {
        let at = self.place(line);
        let fresh = self.lines.access(pass, at, |entry| {
            let fresh = !entry.used || entry.tag != line;
            let stuck = entry.learner.is_some() && entry.passed == PATIENCE;
            if fresh || stuck {
                *entry = Line {
                    tag: line,
                    learner: Some(by(row, seq)),
                    passed: 0,
                    used: true,
                };
            } else if entry.learner.is_some() {
                entry.passed += 1;
            }
            fresh
        })?;
        if fresh {
            self.max.access(pass, at, |max| *max = 0)?;
        }
        Ok(())
    }

    /// A stamp passes. `learns`: a defect.
    pub fn raise(
        &mut self,
        pass: &Pass,
        line: Tag,
        stamp: Stamp,
        learns: bool,
    ) -> Result<(), Violation> {
        let at = self.place(line);
        let known = self.lines.access(pass, at, |entry| {
            if learns && !(entry.used && entry.tag == line) {
                *entry = Line {
                    tag: line,
                    learner: None,
                    passed: 0,
                    used: true,
                };
            }
            entry.used && entry.tag == line
        })?;
        if known {
            self.max.access(pass, at, |max| *max = stamp.0.max(*max))?;
        }
        Ok(())
    }

    /// A quorum has answered, and this is its highest stamp. `by`: the question, if it was one for
    /// stamps.
    pub fn completed(
        &mut self,
        pass: &Pass,
        line: Tag,
        max: Stamp,
        question: Option<(usize, Seq)>,
    ) -> Result<(), Violation> {
        let at = self.place(line);
        let question = question.map(|(row, seq)| by(row, seq));
        let known = self.lines.access(pass, at, |entry| {
            let known = entry.used && entry.tag == line;
            if known && question.is_some() && entry.learner == question {
                entry.learner = None;
            }
            known
        })?;
        if known {
            self.max
                .access(pass, at, |highest| *highest = max.0.max(*highest))?;
        }
        Ok(())
    }

    /// A stamp for a write that has none; that of the first copy, if this is not it.
    pub fn choose(
        &mut self,
        pass: &Pass,
        (row, again): (usize, bool),
        line: Tag,
        writer: Option<Writer>,
    ) -> Result<Stamp, Violation> {
        let at = self.place(line);
        let valid = self.lines.access(pass, at, |entry| {
            entry.used && entry.tag == line && entry.learner.is_none()
        })?;
        let mut stamp = Stamp::NONE;
        if let Some(writer) = writer.filter(|_| valid && !again) {
            stamp = self.max.access(pass, at, |max| {
                let next = writer.chosen(Stamp(*max).round() + 1);
                *max = next.map_or(*max, |next| next.0);
                next.unwrap_or(Stamp::NONE)
            })?;
        }
        self.chosen.access(pass, row, |chosen| {
            if !again {
                *chosen = stamp.0;
            }
            Stamp(*chosen)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rmt::Pipeline;
    use super::*;
    use crate::wire::RequesterId;

    #[test]
    fn a_stamp_is_chosen_when_a_question_for_stamps_has_been_answered_and_not_before() {
        let (mut pipeline, mut stamps) = (Pipeline::default(), Stamps::new(4, 4, 8));
        let writer = Writer::new(RequesterId { node: 1, slot: 0 }, 1);
        let line = Tag(64);
        let choose = |stamps: &mut Stamps, pass: Pass, (row, again)| {
            stamps.choose(&pass, (row, again), line, writer).unwrap()
        };
        // A write that passes makes no entry; a question reserves one, which is not valid yet.
        stamps
            .raise(&pipeline.enter(), line, Stamp(9 << 28), false)
            .unwrap();
        assert_eq!(
            choose(&mut stamps, pipeline.enter(), (0, false)),
            Stamp::NONE
        );
        stamps.learn(&pipeline.enter(), line, 1, Seq(1)).unwrap();
        stamps
            .raise(&pipeline.enter(), line, Stamp(7 << 28), false)
            .unwrap();
        let another = Some((1, Seq(3)));
        stamps
            .completed(&pipeline.enter(), line, Stamp(2 << 28), another)
            .unwrap();
        assert_eq!(
            choose(&mut stamps, pipeline.enter(), (0, false)),
            Stamp::NONE
        );
        let its_own = Some((1, Seq(1)));
        stamps
            .completed(&pipeline.enter(), line, Stamp(2 << 28), its_own)
            .unwrap();
        // Above all that has passed since; a copy gets the same, and one that missed none.
        assert_eq!(
            choose(&mut stamps, pipeline.enter(), (0, true)),
            Stamp::NONE
        );
        let chosen = choose(&mut stamps, pipeline.enter(), (0, false));
        assert_eq!(chosen.round(), 8);
        assert_eq!(choose(&mut stamps, pipeline.enter(), (0, true)), chosen);
        assert_eq!(choose(&mut stamps, pipeline.enter(), (2, false)).round(), 9);
        stamps.clear();
        assert_eq!(choose(&mut stamps, pipeline.enter(), (0, true)), chosen);
        assert_eq!(
            choose(&mut stamps, pipeline.enter(), (2, false)),
            Stamp::NONE
        );
    }

    #[test]
    fn a_question_that_is_never_answered_learns_for_ever_for_nobody() {
        let (mut pipeline, mut stamps) = (Pipeline::default(), Stamps::new(4, 4, 8));
        let writer = Writer::new(RequesterId { node: 1, slot: 0 }, 1);
        let line = Tag(64);
        stamps.learn(&pipeline.enter(), line, 1, Seq(1)).unwrap();
        let high = Stamp(9 << 28);
        stamps.raise(&pipeline.enter(), line, high, false).unwrap();
        for nth in 0..=u64::from(PATIENCE) {
            let seq = Seq(2 * nth + 3);
            stamps.learn(&pipeline.enter(), line, 2, seq).unwrap();
            let by = Some((2, seq));
            stamps
                .completed(&pipeline.enter(), line, Stamp::NONE, by)
                .unwrap();
            let chosen = stamps
                .choose(&pipeline.enter(), (3, false), line, writer)
                .unwrap();
            // The one that learns in its place keeps what has passed since.
            let learned = nth == u64::from(PATIENCE);
            assert_eq!(chosen.round(), if learned { 10 } else { 0 });
        }
    }
}
