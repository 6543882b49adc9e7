//! The coordinator's side: one transaction of a thread, from its first lock to its last
//! acknowledgement.
//!
//! | phase | an answer | then |
//! |---|---|---|
//! | locking | all of this home's objects are locked | the next home, or validation |
//! | | it has more of the part | the next window of it |
//! | | refused | release where locks are; `Aborted` |
//! | validating | not modified | when all are: commit |
//! | | anything else | release; `Aborted` |
//! | a keeper decides | a majority has all of it | commit where locks are |
//! | | refused | release; `Aborted` |
//! | ending | done | when all homes have said so: `Committed` or `Aborted` |
//! | any | none | what is missing is asked for again |
//!
//! The value outlives its thread's patience: a transaction that its thread has left is released,
//! or committed if it was decided, for as long as the node lives.

use super::super::effects::{Bytes, Defect, Effects};
use super::super::operation::{Lane, Outcome};
use super::super::{Who, len_of, own};
use super::part::PartOf;
use super::plan::Plan;
use super::{MAX_OBJECTS, WINDOW};
use crate::wire::{Copyset, Dest, Header, HomeId, Kind, Own, Reason, Seq, Tag};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// The home of this part has so many bytes of it.
    Locking(u8, u32),
    /// Bits of reads that are not known to be as they were.
    Validating(u64),
    /// A keeper is to say. Bits of parts that are locked meanwhile.
    Deciding(u64),
    /// Bits of parts whose homes have not said that they are done, and why not if it is released.
    Ending(u64, Option<(Reason, Tag)>),
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Step {
    /// Nothing: it is a copy, or another's.
    Nothing,
    /// Less is missing than before.
    News,
    /// There is something new to ask for.
    Onward,
    /// It has ended.
    Ended(Outcome),
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Transaction {
    number: Seq,
    plan: Plan,
    phase: Phase,
}

/// The first `count` bits.
fn bits(count: usize) -> u64 {
    match count {
        64.. => u64::MAX,
        count => (1 << count) - 1,
    }
}

impl Transaction {
    /// Begins one, under a number that its slot has never used.
    pub(in super::super) fn begin(mut plan: Plan, number: Seq, defect: Option<Defect>) -> Self {
        plan.reads.truncate(MAX_OBJECTS);
        let skips = defect == Some(Defect::LeaveReadsUnlocked) && plan.kept.is_some();
        let phase = match (plan.parts.is_empty() || skips, plan.kept) {
            (false, _) => Phase::Locking(0, 0),
            (true, None) => Phase::Validating(bits(plan.reads.len())),
            (true, Some(_)) => Phase::Deciding(0),
        };
        Transaction {
            number,
            plan,
            phase,
        }
    }

    /// The number that its answers have.
    pub(in super::super) fn number(&self) -> Seq {
        self.number
    }

    /// Whether a keeper is asked about it.
    fn is_at_keeper(&self) -> bool {
        matches!(self.phase, Phase::Deciding(_))
    }

    /// Whether a keeper is to remember it: it is asked about it, or homes may have to ask.
    pub(in super::super) fn needs_keeper(&self) -> bool {
        let ends = matches!(self.phase, Phase::Ending(_, None)) && self.plan.kept.is_some();
        self.is_at_keeper() || ends
    }

    /// Whether it may take effect, or has.
    pub fn is_decided(&self) -> bool {
        self.is_at_keeper() || matches!(self.phase, Phase::Ending(_, None))
    }

    /// The homes that it writes at.
    fn written(&self) -> Copyset {
        let homes = self.plan.parts.iter().map(|part| part.home().0);
        homes.fold(Copyset::EMPTY, Copyset::with)
    }

    /// The nodes whose own memory has objects of it. What a group keeps does not die with a node.
    pub fn homes(&self) -> Copyset {
        let read = (self.plan.reads.iter()).map(|(object, _)| object.tag.home());
        let own = read.filter(|home| home.is_own()).map(|home| home.0);
        own.fold(self.written(), Copyset::with)
    }

    /// A home that it waits for.
    pub fn awaited(&self) -> Option<HomeId> {
        let nth = |left: u64| left.trailing_zeros() as usize;
        Some(match self.phase {
            Phase::Locking(nth, _) => self.plan.parts.get(usize::from(nth))?.home(),
            Phase::Validating(left) => self.plan.reads.get(nth(left))?.0.tag.home(),
            Phase::Deciding(_) => self.plan.kept?.home(),
            Phase::Ending(left, _) => self.plan.parts.get(nth(left))?.home(),
        })
    }

    fn header(&self, kind: Kind, tag: Tag, who: Who, epoch: u32) -> Header {
        let mut header = Header::request(kind, epoch, tag, who.0, self.number);
        header.incarnation = who.1;
        header
    }

    /// Asks for what is missing. A keeper is asked if it may be.
    pub(in super::super) fn ask(&self, (who, may_keeper): (Who, bool), fx: &mut impl Effects) {
        if self.is_at_keeper() && !may_keeper {
            return;
        }
        let slot = who.0.slot as u8;
        let nothing = |nth| Bytes::Part(slot, nth, (0, 0));
        match self.phase {
            Phase::Locking(nth, here) => {
                let Some(part) = self.plan.parts.get(usize::from(nth)) else {
                    return;
                };
                let mut header = self.header(Kind::TxLock, part.first, who, fx.epoch());
                header.offset = here;
                let window = WINDOW.min(part.bytes - here);
                let own = Own {
                    a: u64::from(self.written().0) << 32 | u64::from(part.objects),
                    b: part.bytes.into(),
                };
                let bytes = Bytes::Part(slot, nth, (here, window));
                fx.send(Dest::Home(part.home()), &header, own, bytes);
            }
            Phase::Validating(left) => {
                for (nth, (object, version)) in self.plan.reads.iter().enumerate() {
                    if left >> nth & 1 == 1 {
                        let header = self.header(Kind::ObjRead, object.tag, who, fx.epoch());
                        // One granule if it has changed: nobody reads it.
                        let own = own(*version, object.generation, 1);
                        fx.send(Dest::Home(object.tag.home()), &header, own, nothing(0));
                    }
                }
            }
            Phase::Deciding(_) => {
                let Some(kept) = self.plan.kept else {
                    return;
                };
                let header = self.header(Kind::TxCommit, kept.first, who, fx.epoch());
                let own = own(kept.objects.into(), 0, kept.bytes);
                let nth = self.plan.parts.len() as u8;
                let bytes = Bytes::Part(slot, nth, (0, kept.bytes));
                fx.send(Dest::Home(kept.home()), &header, own, bytes);
            }
            Phase::Ending(left, why) => {
                let commits = why.is_none();
                let me = who.0.node;
                let is_own = |part: &PartOf| part.home() == HomeId::of(me);
                let mut parts = self.plan.parts.iter().enumerate();
                let others = parts.any(|(nth, part)| left >> nth & 1 == 1 && !is_own(part));
                let own_first = fx.defect() == Some(Defect::CommitOwnFirst);
                for (nth, part) in self.plan.parts.iter().enumerate() {
                    let waits = commits && others && is_own(part) && !own_first;
                    if left >> nth & 1 == 1 && !waits {
                        let header = self.header(Kind::TxCommit, part.first, who, fx.epoch());
                        let own = own(commits.into(), 0, 0);
                        fx.send(Dest::Home(part.home()), &header, own, nothing(nth as u8));
                    }
                }
            }
        }
    }

    /// A packet with its number.
    pub(in super::super) fn packet(
        &mut self,
        header: &Header,
        own: &Own,
        fx: &impl Effects,
    ) -> Step {
        match (self.phase, header.kind) {
            (Phase::Locking(nth, here), Kind::TxLockAck) => {
                let Some(part) = self.plan.parts.get(usize::from(nth)) else {
                    return Step::Nothing;
                };
                if header.sender != part.home().0 {
                    return Step::Nothing;
                }
                let came = len_of(own);
                match header.reason {
                    Reason::None if came == part.bytes => self.locked(nth, fx),
                    Reason::None if came > here && came < part.bytes => {
                        self.phase = Phase::Locking(nth, came);
                        Step::Onward
                    }
                    Reason::None => Step::Nothing,
                    // It has none of its objects locked, and never will.
                    reason => self.release(bits(nth.into()), (reason, header.tag)),
                }
            }
            (Phase::Validating(left), Kind::ObjData) => {
                let mut reads = self.plan.reads.iter();
                let Some(nth) = reads.position(|(object, _)| object.tag == header.tag) else {
                    return Step::Nothing;
                };
                let accepts = match fx.defect() {
                    Some(Defect::ValidateLocked) => header.reason == Reason::Locked,
                    defect => defect == Some(Defect::SkipValidation),
                };
                match header.reason {
                    _ if left >> nth & 1 == 0 => Step::Nothing,
                    _ if accepts => self.validated(left & !(1 << nth)),
                    Reason::NotModified => self.validated(left & !(1 << nth)),
                    reason => {
                        let reason = match reason {
                            Reason::None | Reason::Torn => Reason::Invalid,
                            reason => reason,
                        };
                        self.release(self.all(), (reason, header.tag))
                    }
                }
            }
            (Phase::Deciding(locked), Kind::TxCommitAck) => {
                let refused = header.reason != Reason::None;
                match header.tag.home().is_own() {
                    true => Step::Nothing,
                    false => self.end(locked, refused.then_some((header.reason, header.tag))),
                }
            }
            (Phase::Ending(left, why), Kind::TxCommitAck) => {
                // Not a copy of what a keeper has answered whose node is one of the homes.
                let is_of = |part: &PartOf| {
                    part.home() == header.tag.home() && part.home().is_of(header.sender)
                };
                let nth = self.plan.parts.iter().position(is_of);
                let Some(nth) = nth.filter(|nth| left >> nth & 1 == 1) else {
                    return Step::Nothing;
                };
                let left = left & !(1 << nth);
                let is_own = |part: &PartOf| part.home() == HomeId::of(header.requester.node);
                let own = self.plan.parts.iter().position(is_own);
                match self.end(left, why) {
                    // Its own home's turn has come.
                    Step::Onward if own.is_some_and(|own| left == 1 << own) => Step::Onward,
                    Step::Onward => Step::News,
                    step => step,
                }
            }
            _ => Step::Nothing,
        }
    }

    /// All parts.
    fn all(&self) -> u64 {
        bits(self.plan.parts.len())
    }

    fn locked(&mut self, nth: u8, fx: &impl Effects) -> Step {
        if usize::from(nth) + 1 < self.plan.parts.len() {
            self.phase = Phase::Locking(nth + 1, 0);
            return Step::Onward;
        }
        if self.plan.kept.is_some() {
            self.phase = Phase::Deciding(self.all());
            return Step::Onward;
        }
        let left = match fx.defect() {
            Some(Defect::SkipValidation) => 0,
            _ => bits(self.plan.reads.len()),
        };
        match self.validated(left) {
            Step::News => Step::Onward,
            step => step,
        }
    }

    fn validated(&mut self, left: u64) -> Step {
        self.phase = Phase::Validating(left);
        match left {
            0 => self.end(self.all(), None),
            _ => Step::News,
        }
    }

    fn release(&mut self, locked: u64, why: (Reason, Tag)) -> Step {
        self.end(locked, Some(why))
    }

    fn end(&mut self, left: u64, why: Option<(Reason, Tag)>) -> Step {
        self.phase = Phase::Ending(left, why);
        match (left, why) {
            (0, None) => Step::Ended(Outcome::Committed),
            (0, Some((reason, tag))) => Step::Ended(Outcome::Aborted(reason, tag)),
            _ => Step::Onward,
        }
    }

    /// Its thread waits no longer. If it is not decided, it never takes effect.
    pub(in super::super) fn abandon(&mut self) -> Step {
        let why = (Reason::Fenced, Tag(0));
        match self.phase {
            Phase::Locking(nth, _) => self.release(bits(usize::from(nth) + 1), why),
            Phase::Validating(_) => self.release(self.all(), why),
            // Nobody waits for what its call comes to; its slot's next one makes it late.
            Phase::Deciding(0) => self.release(0, why),
            Phase::Deciding(_) | Phase::Ending(..) => Step::Nothing,
        }
    }

    /// The memory of these homes is gone.
    pub(in super::super) fn forget(&mut self, gone: Copyset) -> Step {
        let dead = |tag: &Tag| tag.home().dies_with(gone);
        let parts = self.plan.parts.iter().enumerate();
        let lost = parts.filter(|(_, part)| dead(&part.first));
        let lost = lost.fold(0, |lost, (nth, _)| lost | 1 << nth);
        let written = self.plan.parts.iter().map(|part| part.first);
        let read = self.plan.reads.iter().map(|(object, _)| object.tag);
        let first = written.chain(read).find(dead);
        match (self.phase, first) {
            (_, None) => Step::Nothing,
            (Phase::Locking(nth, _), Some(tag)) => {
                self.release(bits(usize::from(nth) + 1) & !lost, (Reason::Lost, tag))
            }
            (Phase::Validating(_), Some(tag)) => {
                self.release(self.all() & !lost, (Reason::Lost, tag))
            }
            // What is lost changes no more.
            (Phase::Deciding(locked), Some(_)) => {
                self.phase = Phase::Deciding(locked & !lost);
                Step::Nothing
            }
            (Phase::Ending(left, why), Some(_)) => match left & lost {
                0 => Step::Nothing,
                _ => self.end(left & !lost, why),
            },
        }
    }

    /// Where its outcome goes.
    pub(in super::super) fn lane(slot: u8) -> Lane {
        Lane {
            slot,
            nth: Lane::TRANSACTION,
        }
    }
}
