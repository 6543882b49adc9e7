//! Carries out what the engine says about an event, and what follows it.

use super::{Aim, Around, Complaint, Running, State, Thread};
use crate::invariants::no_starvation;
use crate::world::block::BLOCK_BYTES;
use crate::world::checks::GIVEN_ONCE;
use crate::world::mutation::Mutation;
use crate::world::operation::Operation;
use rackmem_proto::engine::{Do, Purpose, Then};
use rackmem_proto::flowcc::{LocalStatus, Step};
use rackmem_proto::wire::{Kind, Reason, Tag};

/// The first back-off, at most, in nanoseconds; it doubles with every attempt, so often.
const BACKOFF: u64 = 2_000;
const DOUBLINGS: u32 = 6;
/// How long a thread holds a lock for its own purposes, at most.
const HOLDING: u64 = 20_000;

impl Thread {
    /// Goes on with its event; false when there is something to wait for.
    pub(super) fn drive(&mut self, mut running: Running, around: &mut Around<'_>) -> bool {
        let now = around.fabric.now;
        if running.access.is_held()
            && let Aim::Hold(Some(until)) = running.aim
        {
            if until > now {
                return false;
            }
            around
                .oracle
                .let_go(running.tag, running.access.purpose().shares());
            running.access.let_go();
        }
        let defect = self.defect();
        let todo = running.access.next(&mut self.engine, || now, defect);
        self.state = State::Busy(running);
        if matches!(todo, Do::Use | Do::Held | Do::Set(LocalStatus::Invalid)) {
            around.oracle.grant(running.tag);
        }
        match todo {
            Do::Wait => return false,
            Do::Send(output) => self.transmit(&output, around),
            Do::Use => self.used(running, around),
            Do::Set(status) => self.set(running, status, around),
            Do::Left => around.node.left(running.tag),
            Do::Held => self.hold(running, around),
            Do::Over(then) => self.over(running, then, around),
        }
        true
    }

    fn complain(&mut self, tag: Tag, detail: String) {
        self.complaint.get_or_insert(Complaint {
            promise: ("a granted event is served", "§5.1.1"),
            tag,
            detail,
        });
    }

    fn misgiven(&mut self, tag: Tag, how: &str) {
        self.complaint.get_or_insert(Complaint {
            promise: GIVEN_ONCE,
            tag,
            detail: format!("{}: memory {how}", self.describe()),
        });
    }

    fn starves(&mut self, tag: Tag) {
        let detail = format!("{} was refused {} times", self.describe(), self.retries);
        self.complaint.get_or_insert(Complaint {
            promise: (no_starvation::NAME, no_starvation::SECTION),
            tag,
            detail,
        });
    }

    /// Counts a refusal, and sees to it that nobody is refused for ever.
    fn refused(&mut self, tag: Tag, around: &mut Around<'_>) {
        self.work.refused += 1;
        if !around.calm {
            return;
        }
        let grants = around.oracle.grants(tag);
        let before = self.refused.filter(|(refused, _)| *refused == tag);
        let (_, before) = *self.refused.insert(before.unwrap_or_else(|| {
            self.retries = 0;
            (tag, grants)
        }));
        self.retries += 1;
        self.worst = self.worst.max(self.retries);
        if no_starvation::broken(self.retries, grants - before) {
            self.starves(tag);
        }
    }

    /// The event is over, and its lock with it.
    fn over(&mut self, running: Running, then: Then, around: &mut Around<'_>) {
        let Running {
            access, aim, tag, ..
        } = running;
        let (purpose, reaches) = (access.purpose(), around.node.reaches(tag));
        if !matches!(then, Then::Done | Then::Lost) {
            self.refused(tag, around);
        }
        let then = match then {
            Then::Again | Then::BackOff | Then::Fail(_) if !reaches && purpose.evicts() => {
                Then::Relook
            }
            then => then,
        };
        if then == Then::Relook
            && let Aim::Slot(slot) = aim
        {
            self.evict(slot, tag, around);
            return;
        }
        if let Some(slot) = running.slot() {
            around.node.release(slot, around.fabric);
        }
        self.state = State::Resting(around.fabric.now);
        match (then, aim) {
            (Then::Done, _) => self.done(running, around),
            (Then::Lost, _) => self.complain(tag, "a requester gave up".into()),
            (Then::Fail(Reason::Lost), Aim::Sound(seq, requester)) => {
                around.node.forget_given(requester, seq);
            }
            (_, Aim::Sound(seq, requester)) if !reaches => {
                around.node.forget_given(requester, seq);
            }
            _ if !reaches => self.gone(around),
            (Then::Fail(Reason::Full), _) => {
                self.call += 1;
                self.finish(around);
            }
            (Then::Fail(Reason::Lost), _) if purpose.fetches() || matches!(aim, Aim::Hold(_)) => {
                self.work.lost += 1;
                self.begin(
                    Purpose::Call(Kind::AcceptLoss),
                    Aim::AcceptLoss,
                    tag,
                    around,
                );
            }
            (Then::Fail(reason), _) => {
                let detail = format!("{} was told {reason:?}", self.describe());
                self.complain(tag, detail);
                self.back_off(around);
            }
            (Then::BackOff, _) => self.back_off(around),
            (Then::Again | Then::Relook, aim) => {
                let renumbers = self.config.mutation == Some(Mutation::RenumberCalls);
                if renumbers && matches!(aim, Aim::Alloc | Aim::Free(_)) {
                    self.call += 1;
                }
            }
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
    fn done(&mut self, running: Running, around: &mut Around<'_>) {
        let grant = match self.engine.step() {
            Step::Held(grant) => Some(grant),
            _ => None,
        };
        match (running.aim, grant) {
            (Aim::Alloc, Some(grant)) => {
                self.call += 1;
                self.work.objects += 1;
                self.objects.push(grant.tag);
                if !around.oracle.give(grant.tag, BLOCK_BYTES.into()) {
                    self.misgiven(grant.tag, "is somebody else's");
                }
                self.finish(around);
            }
            (Aim::Free(object), Some(grant)) => {
                self.call += 1;
                self.work.freed += 1;
                self.objects.retain(|mine| *mine != object);
                if !grant.copyset.is_empty() {
                    self.misgiven(object, "is said not to be given out");
                }
                self.finish(around);
            }
            (Aim::Sound(seq, requester), _) => {
                around.oracle.grant(running.tag);
                around.node.forget_given(requester, seq);
            }
            (Aim::Slot(_), _) if running.access.purpose().evicts() => {}
            (Aim::Slot(_) | Aim::Hold(_), _) => self.finish(around),
            (Aim::AcceptLoss | Aim::Alloc | Aim::Free(_), _) => {}
        }
    }

    fn hold(&mut self, running: Running, around: &mut Around<'_>) {
        self.work.holds += 1;
        let shared = running.access.purpose().shares();
        if !around.oracle.hold(running.tag, shared) {
            self.complaint.get_or_insert(Complaint {
                promise: ("locks exclude", "§6"),
                tag: running.tag,
                detail: format!("{} does not hold it alone", self.describe()),
            });
        }
        let until = around.fabric.now + self.random.below(HOLDING);
        self.state = State::Busy(Running {
            aim: Aim::Hold(Some(until)),
            ..running
        });
    }

    /// Carries the operation out.
    fn used(&mut self, running: Running, around: &mut Around<'_>) {
        let (tag, slot) = (running.tag, running.slot());
        self.work.upgrades += u64::from(running.access.purpose() == Purpose::Upgrade);
        if let (Some(Operation::Access(_, counter, action)), Some(slot)) = (self.operation, slot) {
            self.perform(tag, counter, action, slot, around);
        }
    }

    /// The node may use the copy from here on, or may not.
    fn set(&mut self, running: Running, status: LocalStatus, around: &mut Around<'_>) {
        let Some(slot) = running.slot() else { return };
        around.node.cache.install(slot, running.tag, status);
        let note = match (running.access.purpose(), status) {
            (Purpose::EvictClean, _) => {
                self.work.clean_evictions += 1;
                "evicted clean"
            }
            (_, LocalStatus::Invalid) => {
                self.work.dirty_evictions += 1;
                "evicted dirty"
            }
            (Purpose::EvictDirty, _) => "not evicted after all",
            _ => "installed",
        };
        around.fabric.note(self.id.node, running.tag, note);
    }
}
