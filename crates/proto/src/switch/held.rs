//! The switch carries out both rounds of an operation and holds the line between them: the paper's
//! own form, whose clients know nothing of copies (CNVMM §III, first assumption; §III-B).
//!
//! One request with or for a line of 64 bytes, one answer. The row is that of a counted request;
//! stages behind it keep the stamp, who has stored, and the line:
//!
//! | stage | array | on a request | on an answer of the first round | of the second |
//! |---|---|---|---|---|
//! | 7 | ABD-CHOSEN | of a copy of a write: stays; else 0 | completes a quorum: the next stamp of a write, what a read has found where too few agree on it | of another stamp: not counted |
//! | 8 | ABD-STORED | 0 | | the bit set |
//! | 9 to 12 | ABD-HELD, sixteen words | what is written; of a read: zeros | of a read, until a quorum has answered: replaced by the line of a higher stamp | read |
//!
//! | completes | leaves |
//! |---|---|
//! | first round of a write | `AbdWrite` with the line, to all members |
//! | of a read, and a quorum agrees | the answer, with the line |
//! | of a read otherwise | `AbdWriteBack` with the line, to all members |
//! | the second round | the answer |
//!
//! A copy of a write gets the stamp of the first one, and begins with the round that is under way.
//! A copy of a read begins anew:
//! acknowledgements of what an earlier copy has found do not count, since they name its stamp.
//!
//! A switch that has started again has forgotten stamps that it has chosen. So it carries out
//! nothing until a config names its life, and requesters ask members for the fate of a write, as of
//! one that is stored at once ([`super::stamps`]).

use super::quorum::{Counted, Leaves, QuorumProgram, completed, missed};
use super::rmt::{Array, Pass, Violation};
use crate::abd::{Defect, HELD_LINE, Quorum, Stamp, Writer};
use crate::wire::{Dest, Flags, Header, Kind, Own};
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Words of a line.
const WORDS: usize = HELD_LINE / 4;
/// Words of a line in a stage.
const IN_STAGE: usize = 4;

/// The body of what leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carries {
    /// None.
    Nothing,
    /// That of the packet that came.
    WhatCame,
    /// A line that the switch has held.
    Line([u8; HELD_LINE]),
}

impl Carries {
    /// The bytes, if `came` are those of the packet that came.
    pub fn bytes<'a>(&'a self, came: &'a [u8]) -> &'a [u8] {
        match self {
            Carries::Nothing => &[],
            Carries::WhatCame => came,
            Carries::Line(line) => line,
        }
    }
}

/// The arrays behind a row.
#[derive(Clone)]
pub struct HeldLines {
    pub(super) stored: Array<u8>,
    pub(super) words: [Array<u32>; WORDS],
}

impl HeldLines {
    /// In this stage and the four behind it.
    pub fn new(stage: u8, rows: usize) -> Self {
        let of = |word: usize| Array::new(stage + 1 + (word / IN_STAGE) as u8, rows);
        HeldLines {
            stored: Array::new(stage, rows),
            words: core::array::from_fn(of),
        }
    }

    /// The line of a row, after what is to happen to each of its words.
    fn line(
        &mut self,
        pass: &Pass,
        at: usize,
        mut act: impl FnMut(usize, &mut u32),
    ) -> Result<[u8; HELD_LINE], Violation> {
        let mut line = [0; HELD_LINE];
        let bytes = line.chunks_exact_mut(4);
        for ((nth, array), bytes) in self.words.iter_mut().enumerate().zip(bytes) {
            let word = array.access(pass, at, |word| {
                act(nth, word);
                *word
            })?;
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        Ok(line)
    }

    /// Everything that decides what it will do.
    pub fn state(&self) -> impl core::hash::Hash + use<> {
        let row = |at: usize| {
            let words = self.words.each_ref().map(|array| array.items()[at]);
            (at, self.stored.items()[at], words)
        };
        let used = |row: &(usize, u8, [u32; WORDS])| row.1 != 0 || row.2 != [0; WORDS];
        let rows = (0..self.stored.len()).map(row).filter(used);
        rows.collect::<Vec<_>>()
    }
}

/// The words of a line.
fn word(line: &[u8], nth: usize) -> u32 {
    let bytes = line.get(4 * nth..4 * nth + 4);
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    u32::from_be_bytes(bytes.unwrap_or_default())
}

impl QuorumProgram {
    /// What it holds of lines, array by array: name, stage, rows, bytes a row.
    pub fn held_arrays(&self) -> Vec<(&'static str, u8, usize, usize)> {
        let stored = &self.held.stored;
        let stored = ("ABD-STORED", stored.stage(), stored.len(), 1);
        let words = self.held.words.iter();
        let words = words.map(|array| ("ABD-HELD", array.stage(), array.len(), 4));
        core::iter::once(stored).chain(words).collect()
    }

    /// A request has its row.
    pub(super) fn begin_held(
        &mut self,
        pass: &Pass,
        (at, again): (usize, bool),
        (header, own, body): (&Header, &Own, &[u8]),
        group: &Counted,
    ) -> Result<Leaves, Violation> {
        let writes = header.kind == Kind::AbdLineWrite;
        let keeps = again && writes && !self.has(Defect::ChooseAgain);
        let chosen = self.stamps.chosen.access(pass, at, |chosen| {
            *chosen = if keeps { *chosen } else { 0 };
            Stamp(*chosen)
        })?;
        self.held.stored.access(pass, at, |stored| *stored = 0)?;
        let given = if writes { body } else { &[] };
        let set = |nth: usize, held: &mut u32| *held = word(given, nth);
        let line = Carries::Line(self.held.line(pass, at, set)?);
        let all = group.at(u8::MAX);
        Ok(Some(match (writes, chosen) {
            (true, Stamp::NONE) => {
                let asked = group.counting_nodes();
                round(
                    (Kind::AbdStamp, asked),
                    header,
                    (own, chosen),
                    Carries::Nothing,
                )
            }
            (true, _) => round((Kind::AbdWrite, all), header, (own, chosen), line),
            (false, _) => {
                let asked = group.counting_nodes();
                round(
                    (Kind::AbdRead, asked),
                    header,
                    (own, chosen),
                    Carries::Nothing,
                )
            }
        }))
    }

    /// An answer to one of its rounds.
    pub(super) fn answer_held(
        &mut self,
        pass: &Pass,
        (at, bit): (usize, u8),
        (header, own, body): (&Header, &Own, &[u8]),
        group: &Counted,
    ) -> Result<Leaves, Violation> {
        let has_line = header.flags.has(Flags::DATA) && body.len() == HELD_LINE;
        match header.kind {
            Kind::AbdStampAck => self.first_round(pass, (at, bit), (header, own, &[]), group),
            Kind::AbdReadAck if has_line => {
                self.first_round(pass, (at, bit), (header, own, body), group)
            }
            Kind::AbdWriteAck | Kind::AbdWriteBackAck => {
                self.second_round(pass, (at, bit), (header, own), group)
            }
            _ => Ok(None),
        }
    }

    fn first_round(
        &mut self,
        pass: &Pass,
        (at, bit): (usize, u8),
        (header, own, body): (&Header, &Own, &[u8]),
        group: &Counted,
    ) -> Result<Leaves, Violation> {
        let writes = header.kind == Kind::AbdStampAck;
        let tally = self.tally(pass, at, Stamp(own.a), bit)?;
        let told = tally.told;
        self.stamps.raise(pass, header.tag, Stamp(own.a), false)?;
        let open = !group.reached(tally.before);
        let completes = open && group.reached(told.answered);
        let agreed = group.reached(told.agree) || self.has(Defect::ElideHeld);
        let next = match writes {
            true => Writer::new(header.requester, header.incarnation)
                .and_then(|writer| writer.chosen(told.max.round() + 1))
                .unwrap_or(Stamp::NONE),
            false if agreed => Stamp::NONE,
            false => told.max,
        };
        let chosen = self.stamps.chosen.access(pass, at, |chosen| {
            if completes && *chosen == 0 {
                *chosen = next.0;
            }
            Stamp(*chosen)
        })?;
        let first = self.has(Defect::HoldFirstLine) && tally.before != 0;
        let newer = !writes && open && tally.order == Ordering::Greater && !first;
        let put = |nth: usize, held: &mut u32| {
            if newer {
                *held = word(body, nth);
            }
        };
        let line = Carries::Line(self.held.line(pass, at, put)?);
        if !completes {
            return Ok(None);
        }
        let all = group.at(u8::MAX);
        Ok(Some(match (writes, chosen) {
            // Rounds are used up, or the requester is none of a rack.
            (true, Stamp::NONE) => missed(header, own),
            (true, _) => round((Kind::AbdWrite, all), header, (own, chosen), line),
            (false, Stamp::NONE) => completed(header, own, told, line),
            (false, _) => round((Kind::AbdWriteBack, all), header, (own, chosen), line),
        }))
    }

    fn second_round(
        &mut self,
        pass: &Pass,
        (at, bit): (usize, u8),
        (header, own): (&Header, &Own),
        group: &Counted,
    ) -> Result<Leaves, Violation> {
        self.stamps.raise(pass, header.tag, Stamp(own.a), false)?;
        let chosen = self
            .stamps
            .chosen
            .access(pass, at, |chosen| Stamp(*chosen))?;
        let of_this = chosen.0 == own.a || self.has(Defect::CountOtherStamps);
        if chosen == Stamp::NONE || !of_this {
            return Ok(None);
        }
        let (before, stored) = self.held.stored.access(pass, at, |stored| {
            let before = *stored;
            *stored |= bit;
            (before, *stored)
        })?;
        let line = self.held.line(pass, at, |_, _| {})?;
        if group.reached(before) || !group.reached(stored) {
            return Ok(None);
        }
        let told = Quorum {
            answered: stored,
            agree: stored,
            max: chosen,
        };
        let mut answer = *header;
        let carries = match header.kind {
            Kind::AbdWriteBackAck => {
                answer.kind = Kind::AbdReadAck;
                answer.flags = Flags::DATA;
                Carries::Line(line)
            }
            _ => Carries::Nothing,
        };
        Ok(Some(completed(&answer, own, told, carries)))
    }
}

/// A round of an operation, as its requester would have begun it.
fn round(
    (kind, nodes): (Kind, crate::wire::Copyset),
    of: &Header,
    (own, stamp): (&Own, Stamp),
    carries: Carries,
) -> (Dest, Header, Own, Carries) {
    let mut header = *of;
    (header.kind, header.sender) = (kind, of.requester.node);
    (header.copyset, header.offset) = (nodes, 0);
    header.flags = match kind {
        Kind::AbdRead => Flags::PROVIDER.and(Flags::HELD),
        _ if carries != Carries::Nothing => Flags::DATA,
        _ => Flags::default(),
    };
    let own = Own {
        a: stamp.0,
        b: own.b,
    };
    let to = Dest::Agents {
        nodes,
        provider: None,
    };
    (to, header, own, carries)
}

#[cfg(test)]
mod tests {
    use super::super::quorum::Counted;
    use super::*;
    use crate::abd::{Config, Member, first_line, own};
    use crate::wire::{MAX_NODES, MAX_REQUESTERS, RequesterId, Seq};
    use alloc::vec;

    /// What a read stores for one of its copies, which finds an older write, is not what it stores
    /// for the next one.
    #[test]
    fn what_an_earlier_copy_of_a_read_has_stored_does_not_count() {
        let member = |node| Member { node, life: 1 };
        let mut config = Config::first(&[member(0), member(1), member(2)]).unwrap();
        (config.through_switch, config.chooser, config.holds_lines) = (true, 1, true);
        let mut program = QuorumProgram::default().of_life(1);
        program.count(0, Some(Counted::new(&config)));
        let who = RequesterId { node: 9, slot: 3 };
        let mut comes = |kind, from, stamp| {
            let asked = Header::request(kind, 0, first_line(0), who, Seq(1));
            let mut header = match kind {
                Kind::AbdLineRead => asked,
                _ => asked.answer(kind, from),
            };
            let line = [stamp as u8; HELD_LINE];
            let body = match kind {
                Kind::AbdReadAck => {
                    header.flags = Flags::DATA;
                    &line[..]
                }
                _ => &[],
            };
            let left = program.handle(&header, &own(Stamp(stamp), config.number), body);
            left.map(|(_, header, own, carries)| (header.kind, own.a, carries.bytes(&[]).to_vec()))
        };
        let line = |stamp: u8| vec![stamp; HELD_LINE];
        for (found, older) in [(5, 0), (7, 5)] {
            let asks = comes(Kind::AbdLineRead, 9, 0);
            assert_eq!(asks, Some((Kind::AbdRead, 0, vec![])));
            assert_eq!(comes(Kind::AbdReadAck, 0, found), None);
            let stores = Some((Kind::AbdWriteBack, found, line(found as u8)));
            assert_eq!(comes(Kind::AbdReadAck, 1, older), stores);
        }
        // Late, of what the first copy has found.
        assert_eq!(comes(Kind::AbdWriteBackAck, 0, 5), None);
        assert_eq!(comes(Kind::AbdWriteBackAck, 1, 5), None);
        assert_eq!(comes(Kind::AbdWriteBackAck, 0, 7), None);
        let answer = Some((Kind::AbdReadAck, 7, line(7)));
        assert_eq!(comes(Kind::AbdWriteBackAck, 2, 7), answer);
    }

    #[test]
    fn its_arrays_are_behind_the_others_and_four_words_are_in_a_stage() {
        let program = QuorumProgram::default();
        let (arrays, held) = (program.arrays(), program.held_arrays());
        let bytes: usize = held.iter().map(|(_, _, rows, bytes)| rows * bytes).sum();
        assert_eq!(bytes, MAX_NODES * MAX_REQUESTERS * 2 * (HELD_LINE + 1));
        let stages: Vec<u8> = arrays.iter().chain(&held).map(|array| array.1).collect();
        assert!(stages.is_sorted());
        let last = stages.last().copied().unwrap_or_default();
        assert_eq!(usize::from(last) + 1, 8 + 1 + WORDS / IN_STAGE);
        let fullest = (9..=last).map(|at| stages.iter().filter(|stage| **stage == at).count());
        assert!(fullest.into_iter().all(|arrays| arrays == IN_STAGE));
    }
}
