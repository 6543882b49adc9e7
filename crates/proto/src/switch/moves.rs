//! Ownership migration at the switch (§5.2.1): ADD-TO-SWITCH and REMOVE-FROM-SWITCH.
//!
//! The paper protects migration from loss "with the same mechanism" as locks (§5.3,
//! footnote 5) and does not say how. Here every move has a slot of its home agent and a sequence
//! number in it. One pass searches and *claims* the number in MOVES, the resubmitted one carries
//! the move out and notes how it went; every later copy gets the same answer and changes nothing. A
//! refusal must be as final as a success: a second copy that finds a location free after its home
//! agent was told "full" would give the entry two owners.
//!
//! REMOVE-FROM-SWITCH has two steps, because an answer that is lost must not take the metadata with
//! it: the first locks the entry for good and tells status and copyset, as often as it is asked;
//! the second (with `GRANTED`), when home has them, frees the location.

use super::entry::{Entry, FREE, Seen, stored};
use super::numbers;
use super::program::{SWITCH, SwitchProgram};
use super::rmt::Violation;
use crate::flowcc::migration::MAX_MOVES;
use crate::wire::{Copyset, Flags, GlobalStatus, Header, Kind, Reason, Seq, Tag};
use crate::{Dest, Output, Outputs};
use core::cmp::Ordering;

/// A move: `seq << 32 | outcome`, of which `seq` is the low half of its number.
pub(super) type Move = u64;

const CLAIMED: u64 = 1;
const DONE: u64 = 2;
/// `REFUSED + reason`: for that reason.
const REFUSED: u64 = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Claim {
    /// Carry it out.
    First,
    /// It was carried out.
    Done,
    /// It was refused.
    Refused(Reason),
    /// It is under way, or older than what its slot has moved since.
    Ignore,
}

fn claim(score: &mut Move, seq: Seq) -> Claim {
    match numbers::order(seq, (*score >> 32) as u32) {
        Ordering::Less => Claim::Ignore,
        Ordering::Greater => {
            *score = u64::from(seq.low()) << 32 | CLAIMED;
            Claim::First
        }
        Ordering::Equal => match *score & 0xffff_ffff {
            DONE => Claim::Done,
            CLAIMED | 0 => Claim::Ignore,
            refused => Claim::Refused(
                Reason::from_byte((refused - REFUSED) as u8).unwrap_or(Reason::Refused),
            ),
        },
    }
}

fn outcome(reason: Reason) -> u64 {
    match reason {
        Reason::None => DONE,
        reason => REFUSED + reason as u64,
    }
}

impl SwitchProgram {
    fn move_index(header: &Header) -> usize {
        usize::from(header.requester.node) * MAX_MOVES + usize::from(header.requester.slot)
    }

    /// ADD-TO-SWITCH: one pass looks for the tag and a free location, the next one takes it.
    pub(super) fn add(&mut self, header: &Header, outputs: &mut Outputs) -> Result<(), Violation> {
        let at = self.set(header.tag);
        let pass = self.pipeline.enter();
        let (mut have, mut free) = (false, None);
        for (w, way) in self.ways.iter_mut().enumerate() {
            let there = way.tag.access(&pass, at, |t| *t)?;
            have |= there == stored(header.tag);
            if there == FREE && free.is_none() {
                free = Some(w);
            }
        }
        let index = Self::move_index(header);
        let reason = match self.moves.access(&pass, index, |m| claim(m, header.seq))? {
            Claim::Ignore => return Ok(()),
            Claim::Done => Reason::None,
            Claim::Refused(reason) => reason,
            Claim::First => {
                let reason = self.insert(header, at, free.filter(|_| !have))?;
                self.counters.added += u64::from(reason == Reason::None);
                self.counters.collided += u64::from(reason != Reason::None);
                reason
            }
        };
        self.answer_move(header.refuse(Kind::AddAck, SWITCH, reason), outputs);
        Ok(())
    }

    fn insert(
        &mut self,
        header: &Header,
        at: usize,
        free: Option<usize>,
    ) -> Result<Reason, Violation> {
        let pass = self.pipeline.enter();
        let mut inserted = false;
        if let Some(way) = free.and_then(|w| self.ways.get_mut(w)) {
            inserted = way.tag.access(&pass, at, |t| {
                let free = *t == FREE;
                if free {
                    *t = stored(header.tag);
                }
                free
            })?;
            if inserted {
                way.apply(&pass, at, &Entry::Install(header))?;
            }
        }
        let reason = if inserted { Reason::None } else { Reason::Full };
        self.note(&pass, header, reason)?;
        Ok(reason)
    }

    /// REMOVE-FROM-SWITCH: claim the move, then lock the entry or free its location.
    pub(super) fn remove(
        &mut self,
        header: &Header,
        outputs: &mut Outputs,
    ) -> Result<(), Violation> {
        let pass = self.pipeline.enter();
        let index = Self::move_index(header);
        let claim = self.moves.access(&pass, index, |m| claim(m, header.seq))?;
        let frees = header.flags.has(Flags::GRANTED);
        let (reason, seen) = match claim {
            Claim::Ignore => return Ok(()),
            Claim::Refused(reason) => (reason, Seen::default()),
            Claim::Done if frees => (Reason::None, Seen::default()),
            Claim::Done => (Reason::None, self.look(header.tag)?),
            Claim::First if frees => (self.free(header)?, Seen::default()),
            Claim::First => self.retire(header)?,
        };
        let mut ack = header.refuse(Kind::RemoveAck, SWITCH, reason);
        (ack.status, ack.copyset) = (seen.status, seen.copyset);
        self.answer_move(ack, outputs);
        Ok(())
    }

    /// The first step: no other event gets the entry's lock from here on.
    fn retire(&mut self, header: &Header) -> Result<(Reason, Seen), Violation> {
        let pass = self.pipeline.enter();
        let lock = Entry::Lock {
            shared: false,
            kind: Kind::LockWrite,
            node: header.requester.node,
        };
        let (reason, seen) = match self.visit(&pass, header.tag, &lock)? {
            None => (Reason::Moved, Seen::default()),
            Some(seen) if !seen.acquired => (Reason::Locked, Seen::default()),
            Some(seen) => (Reason::None, seen),
        };
        self.note(&pass, header, reason)?;
        Ok((reason, seen))
    }

    /// The metadata of a retired entry, which its lock keeps as it is.
    fn look(&mut self, tag: Tag) -> Result<Seen, Violation> {
        let pass = self.pipeline.enter();
        Ok(self.visit(&pass, tag, &Entry::Look)?.unwrap_or_default())
    }

    /// The second step.
    fn free(&mut self, header: &Header) -> Result<Reason, Violation> {
        let at = self.set(header.tag);
        let pass = self.pipeline.enter();
        let empty = Header {
            status: GlobalStatus::Unshared,
            copyset: Copyset::EMPTY,
            ..*header
        };
        for way in &mut self.ways {
            let here = way.tag.access(&pass, at, |t| {
                let here = *t == stored(header.tag);
                if here {
                    *t = FREE;
                }
                here
            })?;
            if here {
                way.apply(&pass, at, &Entry::Install(&empty))?;
                self.counters.removed += 1;
                break;
            }
        }
        self.note(&pass, header, Reason::None)?;
        Ok(Reason::None)
    }

    fn note(
        &mut self,
        pass: &super::rmt::Pass,
        header: &Header,
        reason: Reason,
    ) -> Result<(), Violation> {
        self.moves.access(pass, Self::move_index(header), |m| {
            *m = u64::from(header.seq.low()) << 32 | outcome(reason);
        })
    }

    /// The home agent that asked, and a copy for the shadow node (§5.2.2), unless they are one.
    fn answer_move(&self, ack: Header, outputs: &mut Outputs) {
        let home = ack.requester.node;
        outputs.push(Output::new(Dest::Agent(home), ack));
        if let Some(shadow) = self.config.shadow.filter(|&shadow| shadow != home) {
            outputs.push(Output::new(Dest::Agent(shadow), ack));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_claimed_once_and_its_outcome_is_final() {
        let mut slot = 0;
        assert_eq!(claim(&mut slot, Seq(4)), Claim::First);
        assert_eq!(claim(&mut slot, Seq(4)), Claim::Ignore);
        slot = 4 << 32 | outcome(Reason::Full);
        assert_eq!(claim(&mut slot, Seq(4)), Claim::Refused(Reason::Full));
        slot = 4 << 32 | outcome(Reason::None);
        assert_eq!(claim(&mut slot, Seq(4)), Claim::Done);
        assert_eq!(claim(&mut slot, Seq(3)), Claim::Ignore);
        assert_eq!(claim(&mut slot, Seq(5)), Claim::First);
    }
}
