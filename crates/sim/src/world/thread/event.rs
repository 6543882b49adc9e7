//! What becomes of a coherence event: granted, refused, installed, written back, unlocked.

use super::{Around, Complaint, Purpose, Running, Stage, State, Then, Thread};
use crate::invariants::no_starvation;
use crate::world::block::BLOCK_BYTES;
use crate::world::checks::GIVEN_ONCE;
use crate::world::mutation::Mutation;
use crate::world::operation::Operation;
use rackmem_proto::flowcc::{Grant, LocalStatus, Step};
use rackmem_proto::wire::{Reason, Tag};

/// The first back-off, at most, in nanoseconds; it doubles with every attempt, so often.
const BACKOFF: u64 = 2_000;
const DOUBLINGS: u32 = 6;
/// How long a thread holds a lock for its own purposes, at most.
const HOLDING: u64 = 20_000;

impl Thread {
    pub(super) fn drive(&mut self, running: Running, around: &mut Around<'_>) -> bool {
        match (running.stage, self.engine.step()) {
            (Stage::Ending(then), _) => self.end(running, then, around),
            (Stage::Holding(until), _) if until > around.fabric.now => false,
            (Stage::Holding(_), _) => {
                self.let_go(running, around);
                true
            }
            (_, Step::Waiting) => false,
            (_, Step::Refused(reason)) => {
                self.refused(running, reason, around);
                true
            }
            (_, Step::Lost) => {
                self.complain(running.tag, "a requester gave up".into());
                false
            }
            (Stage::Acquiring, Step::Held(grant)) => {
                self.held(running, grant, around);
                true
            }
            (Stage::WritingBack, Step::Held(_)) => {
                around.node.left(running.tag);
                self.move_on(running, Stage::Ending(Then::Again));
                true
            }
        }
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

    fn move_on(&mut self, running: Running, stage: Stage) {
        self.state = State::Busy(Running { stage, ..running });
    }

    fn refused(&mut self, running: Running, reason: Reason, around: &mut Around<'_>) {
        self.work.refused += 1;
        if around.calm {
            let grants = around.oracle.grants(running.tag);
            let before = self.refused.filter(|(tag, _)| *tag == running.tag);
            let (_, before) = *self.refused.insert(before.unwrap_or_else(|| {
                self.retries = 0;
                (running.tag, grants)
            }));
            self.retries += 1;
            self.worst = self.worst.max(self.retries);
            if no_starvation::broken(self.retries, grants - before) {
                self.starves(running.tag);
            }
        }
        if let Purpose::Sound(seq, requester) = running.purpose
            && (reason == Reason::Lost || !around.node.reaches(running.tag))
        {
            around.node.forget_given(requester, seq);
            return self.move_on(running, Stage::Ending(Then::Again));
        }
        if !around.node.reaches(running.tag) {
            let evicts = matches!(running.purpose, Purpose::EvictClean | Purpose::EvictDirty);
            return self.move_on(
                running,
                Stage::Ending(if evicts { Then::Relook } else { Then::Gone }),
            );
        }
        let evicts = matches!(running.purpose, Purpose::EvictClean | Purpose::EvictDirty);
        let calls = matches!(running.purpose, Purpose::Alloc | Purpose::Free(_));
        if calls && self.config.mutation == Some(Mutation::RenumberCalls) {
            self.call += 1;
        }
        let then = match reason {
            Reason::Locked => Then::BackOff,
            Reason::Invalid | Reason::Moved if evicts => Then::Relook,
            Reason::Invalid | Reason::Moved => Then::Again,
            Reason::Full => {
                self.call += 1;
                Then::Finish
            }
            Reason::Fenced if evicts => Then::Relook,
            Reason::Fenced => Then::Again,
            Reason::Lost if matches!(running.purpose, Purpose::Fill(_) | Purpose::Hold { .. }) => {
                self.work.lost += 1;
                Then::Accept
            }
            Reason::None
            | Reason::NoMemory
            | Reason::Refused
            | Reason::Lost
            | Reason::OwnerDied => {
                let detail = format!("{} was told {reason:?}", self.describe());
                self.complain(running.tag, detail);
                Then::BackOff
            }
        };
        self.move_on(running, Stage::Ending(then));
    }

    /// The entry is locked for this thread and its data is here.
    fn held(&mut self, running: Running, grant: Grant, around: &mut Around<'_>) {
        let Running {
            purpose, slot, tag, ..
        } = running;
        if purpose.locks() {
            around.oracle.grant(tag);
        }
        match purpose {
            Purpose::Alloc => {
                self.call += 1;
                self.work.objects += 1;
                self.objects.push(grant.tag);
                if !around.oracle.give(grant.tag, BLOCK_BYTES.into()) {
                    self.misgiven(grant.tag, "is somebody else's");
                }
                self.finish(around);
            }
            Purpose::Free(object) => {
                self.call += 1;
                self.work.freed += 1;
                self.objects.retain(|mine| *mine != object);
                if !grant.copyset.is_empty() {
                    self.misgiven(object, "is said not to be given out");
                }
                self.finish(around);
            }
            Purpose::Sound(seq, requester) => {
                around.node.forget_given(requester, seq);
                self.move_on(running, Stage::Ending(Then::Again));
            }
            Purpose::AcceptLoss => self.state = State::Resting(around.fabric.now),
            Purpose::Hold { shared } => self.hold(running, shared, around),
            Purpose::Fill(status) => self.install(running, status, around),
            Purpose::Upgrade => {
                self.work.upgrades += 1;
                self.install(running, LocalStatus::Modified, around);
            }
            Purpose::EvictClean => {
                self.work.clean_evictions += 1;
                around.node.cache.install(slot, tag, LocalStatus::Invalid);
                around.node.left(tag);
                around.fabric.note(self.id.node, tag, "evicted clean");
                self.move_on(running, Stage::Ending(Then::Again));
            }
            Purpose::EvictDirty => self.leave(running, around),
        }
    }

    fn hold(&mut self, running: Running, shared: bool, around: &mut Around<'_>) {
        self.work.holds += 1;
        if !around.oracle.hold(running.tag, shared) {
            self.complaint.get_or_insert(Complaint {
                promise: ("locks exclude", "§6"),
                tag: running.tag,
                detail: format!("{} does not hold it alone", self.describe()),
            });
        }
        let until = around.fabric.now + self.random.below(HOLDING);
        self.move_on(running, Stage::Holding(until));
    }

    fn let_go(&mut self, running: Running, around: &mut Around<'_>) {
        around.oracle.let_go(running.tag, running.purpose.shares());
        self.move_on(running, Stage::Ending(Then::Finish));
    }

    /// Carries the operation out before anyone can take the block away again, and lets the node use the copy.
    fn install(&mut self, running: Running, status: LocalStatus, around: &mut Around<'_>) {
        let Running { slot, tag, .. } = running;
        if let Some(Operation::Access(_, counter, action)) = self.operation {
            self.perform(tag, counter, action, slot, around);
        }
        around.node.cache.install(slot, tag, status);
        around.fabric.note(self.id.node, tag, "installed");
        self.move_on(running, Stage::Ending(Then::Finish));
    }

    /// From here on local hits miss, and only then the bytes go home.
    fn leave(&mut self, running: Running, around: &mut Around<'_>) {
        self.work.dirty_evictions += 1;
        let Running { slot, tag, .. } = running;
        around.node.cache.install(slot, tag, LocalStatus::Invalid);
        around.fabric.note(self.id.node, tag, "evicted dirty");
        if self.config.mutation == Some(Mutation::EvictWithoutWriteBack) {
            return self.move_on(running, Stage::Ending(Then::Again));
        }
        if let Some(output) = self.engine.write_back(around.fabric.now) {
            self.transmit(&output, around);
        }
        self.move_on(running, Stage::WritingBack);
    }

    fn end(&mut self, running: Running, then: Then, around: &mut Around<'_>) -> bool {
        // What an owner has refused leaves nothing to unlock, and so nothing to wait for.
        if self.engine.holds() {
            if !self.engine.can_unlock() {
                return false;
            }
            let keep = matches!(then, Then::Relook | Then::BackOff);
            if let Some(output) = self.engine.unlock(around.fabric.now, keep) {
                self.transmit(&output, around);
            }
        }
        let now = around.fabric.now;
        if then == Then::Relook {
            return self.evict(running.slot, running.tag, around);
        }
        if running.purpose.has_slot() {
            around.node.release(running.slot, around.fabric);
        }
        match then {
            Then::Finish => self.finish(around),
            Then::Gone => self.gone(around),
            Then::Accept => self.begin(Purpose::AcceptLoss, usize::MAX, running.tag, around),
            Then::BackOff if self.config.mutation == Some(Mutation::NeverBackOff) => {
                self.state = State::Resting(now);
            }
            Then::BackOff => {
                self.attempt += 1;
                let most = BACKOFF << self.attempt.min(DOUBLINGS);
                self.state = State::Resting(now + most / 2 + self.random.below(most / 2));
            }
            Then::Again | Then::Relook => self.state = State::Resting(now),
        }
        true
    }
}
