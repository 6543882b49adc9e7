//! Goes on with a thread's event, and with what follows it.

use super::{Aim, Around, State, Thread};
use crate::site::{Did, Event, Found};
use crate::world::block::BLOCK_BYTES;
use crate::world::mutation::Mutation;
use crate::world::operation::Operation;
use rackmem_proto::call::Call;
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::flowcc::{LocalStatus, Step};
use rackmem_proto::wire::{Kind, Reason, Record, Tag};

/// The first back-off, at most, in nanoseconds; it doubles with every attempt, so often.
const BACKOFF: u64 = 2_000;
const DOUBLINGS: u32 = 6;
/// How long a thread holds a lock for its own purposes, at most.
const HOLDING: u64 = 20_000;

impl Thread {
    /// Begins an event about a block. `slot`: of the cache, which is reserved for it.
    pub(super) fn begin(
        &mut self,
        purpose: Purpose,
        (aim, slot): (Aim, Option<usize>),
        tag: Tag,
        around: &mut Around<'_>,
    ) {
        // Until it is answered it is the same call.
        let (stream, number) = (self.id.slot, self.call + 1);
        let call = Call { stream, number }.to_offset();
        let home = tag.home().start();
        let (at, object) = match aim {
            Aim::Alloc => ((Tag(home.0 | u64::from(BLOCK_BYTES)), call), None),
            Aim::Free(object) => {
                around.oracle.take_back(object);
                let word = BLOCK_BYTES.into();
                ((home, call), Some(Record { tag: object, word }))
            }
            _ => ((tag, 0), None),
        };
        let (now, site) = (around.fabric.now, &mut **around.node);
        self.client.begin(purpose, at, (slot, object), now, site);
        self.state = State::Busy(aim, tag);
        self.send(around);
    }

    /// Begins to empty a slot, or finds it empty.
    pub(super) fn evict(&mut self, slot: usize, tag: Tag, around: &mut Around<'_>) -> bool {
        let now = around.fabric.now;
        let found = self.client.evict(slot, tag, now, around.node);
        self.follow(found, around)
    }

    /// What a look for a block, or at one that is to leave, has come to;
    /// false when there is something to wait for.
    pub(super) fn follow(&mut self, found: Found, around: &mut Around<'_>) -> bool {
        match found {
            Found::Copy(_) => {}
            Found::UnderWay | Found::NoRoom => {
                self.state = State::Parked;
                around.node.park(self.index);
                return false;
            }
            Found::Began(tag) => {
                self.state = State::Busy(Aim::Copy, tag);
                self.send(around);
            }
            Found::Empty(slot, _) => {
                around.node.release(slot, around.fabric);
                self.state = State::Resting(around.fabric.now);
            }
        }
        true
    }

    /// Goes on with its event; false when there is something to wait for.
    pub(super) fn drive(&mut self, aim: Aim, tag: Tag, around: &mut Around<'_>) -> bool {
        let now = around.fabric.now;
        if let (Some((_, shared)), Aim::Hold(Some(until))) = (self.client.holding(), aim) {
            if until > now {
                return false;
            }
            around.oracle.let_go(tag, shared);
            self.client.let_go();
        }
        let did = self.client.go_on(now, around.node);
        if matches!(did, Did::Use | Did::Held | Did::Set(LocalStatus::Invalid)) {
            around.oracle.grant(tag);
        }
        self.send(around);
        match did {
            Did::Wait => return false,
            Did::Went => {}
            Did::Use => self.used(tag, around),
            Did::Set(status) => self.judged.work.set(self.client.event, status),
            Did::Held => self.hold(tag, around),
            Did::Over(event, then) => self.over(event, aim, tag, then, around),
        }
        true
    }

    /// The event is over, and its lock with it.
    fn over(&mut self, event: Event, aim: Aim, tag: Tag, then: Then, around: &mut Around<'_>) {
        let (purpose, reaches) = (event.access.purpose(), around.node.reaches(tag));
        let refused = !matches!(then, Then::Done | Then::Lost);
        if refused {
            self.refused(tag, around);
        }
        if let Some(slot) = event.entry {
            if then == Then::Relook || refused && !reaches && purpose.evicts() {
                self.evict(slot, tag, around);
                return;
            }
            around.node.release(slot, around.fabric);
        }
        self.state = State::Resting(around.fabric.now);
        match (then, aim) {
            (Then::Done, _) => self.happened(event, aim, tag, around),
            (Then::Lost, _) => self.complain(tag, "a requester gave up".into()),
            (_, Aim::Sound(seq, requester)) if !reaches || then == Then::Fail(Reason::Lost) => {
                around.node.copies.received(requester, seq);
            }
            _ if !reaches => self.gone(around),
            (Then::Fail(Reason::Full), _) => {
                self.call += 1;
                self.finish(around);
            }
            (Then::Fail(Reason::Lost), _) if purpose.fetches() || matches!(aim, Aim::Hold(_)) => {
                self.judged.work.lost += 1;
                let purpose = Purpose::Call(Kind::AcceptLoss);
                self.begin(purpose, (Aim::AcceptLoss, None), tag, around);
            }
            (Then::Fail(reason), _) => {
                let detail = format!("{} was told {reason:?}", self.describe());
                self.complain(tag, detail);
                self.back_off(around);
            }
            (Then::BackOff, _) => self.back_off(around),
            (Then::Again | Then::Relook, Aim::Alloc | Aim::Free(_)) => {
                let renumbers = self.config.mutation == Some(Mutation::RenumberCalls);
                self.call += u32::from(renumbers);
            }
            (Then::Again | Then::Relook, _) => {}
        }
    }

    fn back_off(&mut self, around: &mut Around<'_>) {
        if self.config.mutation == Some(Mutation::NeverBackOff) {
            return;
        }
        self.attempt += 1;
        let most = BACKOFF << self.attempt.min(DOUBLINGS);
        let wait = most / 2 + self.random.below(most / 2);
        self.state = State::Resting(around.fabric.now + wait);
    }

    /// The event has happened.
    fn happened(&mut self, event: Event, aim: Aim, tag: Tag, around: &mut Around<'_>) {
        let grant = match self.client.engine.step() {
            Step::Held(grant) => Some(grant),
            _ => None,
        };
        match (aim, grant) {
            (Aim::Alloc, Some(grant)) => {
                self.call += 1;
                self.given(grant.tag, around);
                self.finish(around);
            }
            (Aim::Free(object), Some(grant)) => {
                self.call += 1;
                self.taken_back(object, grant.copyset);
                self.finish(around);
            }
            (Aim::Sound(seq, requester), _) => {
                around.oracle.grant(tag);
                around.node.copies.received(requester, seq);
            }
            (Aim::Copy, _) if event.access.purpose().evicts() => {}
            (Aim::Copy | Aim::Hold(_), _) => self.finish(around),
            (Aim::AcceptLoss | Aim::Alloc | Aim::Free(_), _) => {}
        }
    }

    fn hold(&mut self, tag: Tag, around: &mut Around<'_>) {
        self.holds(tag, around);
        let until = around.fabric.now + self.random.below(HOLDING);
        self.state = State::Busy(Aim::Hold(Some(until)), tag);
    }

    /// Carries the operation out.
    fn used(&mut self, tag: Tag, around: &mut Around<'_>) {
        let Some(event) = self.client.event else {
            return;
        };
        self.judged.work.upgrades += u64::from(event.access.purpose() == Purpose::Upgrade);
        let operation = (self.operation, event.entry);
        if let (Some(Operation::Access(_, counter, action)), Some(slot)) = operation {
            self.perform(tag, counter, action, slot, around);
        }
    }
}
