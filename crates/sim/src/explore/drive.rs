//! What threads of a node do: begin an operation, take answers, install, unlock, try again.
//!
//! A thread goes on by itself until it has to wait, in one step with whatever let it go on. When it begins an
//! operation, lets a lock go or tries again is the explorer's choice.

use super::effects::{Effects, Observation};
use super::layout::Layout;
use super::node::Node;
use super::packet::{Packet, Value, WORDS};
use super::plan::Plan;
use super::scenario::{MAX_OPERATIONS, MAX_THREADS, Op};
use super::thread::{Purpose, Stage, State, Then};
use super::witness::Witness;
use crate::world::Mutation;
use rackmem_proto::flowcc::{Accept, Event, LocalStatus, Step};
use rackmem_proto::wire::{Flags, Kind, Reason};
use rackmem_proto::{Data, Output};

/// Explorers have no clock: everything happens at this time.
const NOW: u64 = 0;
/// A time at which every retransmission is due and nothing is given up.
const LATE: u64 = 1 << 50;

impl Node {
    /// It is a thread's turn.
    pub fn step(&mut self, at: usize, layout: &Layout, fx: &mut Effects) {
        let thread = &mut self.threads[at];
        if let Some((block, shared)) = thread.holding() {
            let purpose = Purpose::Hold { shared };
            self.end(at, purpose, block, Then::Finish, false);
            return self.advance(at, layout, fx);
        }
        let State::Resting { refused, reserved } = thread.state else {
            return;
        };
        let Some(op) = thread.op(layout) else { return };
        match self.plan(op, reserved, layout) {
            Plan::Wait => {}
            Plan::Hit(block) => {
                self.perform(at, block, layout, fx);
                self.threads[at].finish();
            }
            Plan::Nowhere(block) => {
                fx.seen.see(Witness::HomeGone);
                self.slots[usize::from(block)].reserved &= !reserved;
                self.threads[at].finish();
            }
            Plan::Gone(block) => {
                self.slots[usize::from(block)].reserved &= !reserved;
                self.threads[at].finish();
            }
            Plan::Begin(Purpose::EvictClean, block) if layout.mutated(Mutation::DropSilently) => {
                self.slots[usize::from(block)].status = LocalStatus::Invalid;
                self.threads[at].finish();
            }
            Plan::Begin(purpose, block) => self.begin(at, purpose, block, refused, layout, fx),
        }
        self.note_neighbours(at, layout, fx);
    }

    fn begin(
        &mut self,
        at: usize,
        purpose: Purpose,
        block: u8,
        refused: bool,
        layout: &Layout,
        fx: &mut Effects,
    ) {
        let thread = &mut self.threads[at];
        self.slots[usize::from(block)].reserved |= purpose.reserves();
        let event = Event {
            kind: purpose.kind(),
            tag: layout.tag(block),
            offset: 0,
            reply_port: 0,
        };
        fx.seen
            .see_if(thread.engine.tail().is_some(), Witness::TailWaited);
        let output = thread.engine.begin(NOW, event);
        thread.state = State::Busy {
            purpose,
            block,
            stage: Stage::Acquiring,
            refused,
        };
        fx.send(&output, None);
    }

    /// An answer for a thread's requester.
    pub fn answered(&mut self, at: usize, packet: &Packet, layout: &Layout, fx: &mut Effects) {
        let Some(thread) = self.threads.get_mut(at) else {
            return;
        };
        let mut header = packet.header;
        if layout.mutated(Mutation::AcceptStaleData)
            && header.kind == Kind::Ack
            && header.flags.has(Flags::DATA)
            && let [Some(current), ..] = thread.engine.open()
        {
            header.seq = current;
        }
        let (accept, outputs) = thread.engine.handle(NOW, &header, packet.body.bytes());
        if accept == Accept::Store
            && let State::Busy {
                purpose: Purpose::Fill(_),
                block,
                ..
            } = thread.state
        {
            let words = &mut self.slots[usize::from(block)].words;
            packet.body.put(header.offset, words);
        }
        for output in outputs.iter() {
            self.transmit(at, output, layout, fx);
        }
        self.advance(at, layout, fx);
    }

    /// What a thread's requester sends again when it has waited long enough, each by itself: timeouts differ.
    pub fn resends(&self, at: usize) -> impl Iterator<Item = Output> + use<> {
        // Sending again changes nothing but the times of sending, so the requester stays as it is.
        let outputs = self.threads[at].engine.clone().handle_timeout(LATE);
        let outputs: Vec<Output> = outputs.iter().copied().collect();
        outputs.into_iter()
    }

    /// Sends one of them.
    pub fn resend(&mut self, at: usize, nth: usize, layout: &Layout, fx: &mut Effects) {
        let Some(output) = self.resends(at).nth(nth) else {
            return;
        };
        let unlocks = output.header.kind == Kind::Unlock;
        if !(unlocks && layout.mutated(Mutation::UnlockOnce)) {
            self.transmit(at, &output, layout, fx);
        }
    }

    fn transmit(&mut self, at: usize, output: &Output, layout: &Layout, fx: &mut Effects) {
        let thread = &mut self.threads[at];
        let mut output = *output;
        if output.header.kind == Kind::Unlock
            && let Some(block) = layout.block(output.header.tag)
        {
            let shared = output.header.flags.has(Flags::READER);
            thread.unlocking = Some((block, shared));
            if shared && layout.mutated(Mutation::ForgetReader) {
                output.header.copyset = output.header.copyset.without(thread.id.node);
            }
        }
        let words = match (output.data, thread.state) {
            (Data::Cache, State::Busy { purpose, block, .. }) if purpose.reserves() => {
                Some(self.slots[usize::from(block)].words)
            }
            _ => None,
        };
        fx.send(&output, words.as_ref());
    }

    /// Does what can be done now.
    pub fn advance(&mut self, at: usize, layout: &Layout, fx: &mut Effects) {
        while self.drive(at, layout, fx) {}
        let thread = &mut self.threads[at];
        if thread.engine.can_unlock() {
            thread.unlocking = None;
        }
    }

    fn drive(&mut self, at: usize, layout: &Layout, fx: &mut Effects) -> bool {
        let thread = &mut self.threads[at];
        let State::Busy {
            purpose,
            block,
            stage,
            refused,
        } = thread.state
        else {
            return false;
        };
        match (stage, thread.engine.step()) {
            (Stage::Ending { then, keep }, _) => {
                return self.leave(at, purpose, block, then, keep, layout, fx);
            }
            (Stage::Holding, _) | (_, Step::Waiting) => return false,
            (Stage::WritingBack, Step::Refused(Reason::Fenced)) => {
                // The epoch ended before home had all of it: this is the only copy.
                self.slots[usize::from(block)].status = LocalStatus::Modified;
                self.end(at, purpose, block, Then::Relook, true);
            }
            (_, Step::Refused(reason)) => self.refused(at, purpose, block, reason, fx),
            (_, Step::Lost) => {
                complain(at, "a requester gave up", fx);
                return false;
            }
            (Stage::Acquiring, Step::Held(_)) => {
                fx.seen.see_if(refused, Witness::GrantedAfterRefusal);
                self.held(at, purpose, block, layout, fx);
            }
            (Stage::WritingBack, Step::Held(_)) => {
                self.end(at, purpose, block, Then::Finish, false);
            }
        }
        true
    }

    fn end(&mut self, at: usize, purpose: Purpose, block: u8, then: Then, keep: bool) {
        self.threads[at].state = State::Busy {
            purpose,
            block,
            stage: Stage::Ending { then, keep },
            refused: then != Then::Finish,
        };
    }

    fn refused(
        &mut self,
        at: usize,
        purpose: Purpose,
        block: u8,
        reason: Reason,
        fx: &mut Effects,
    ) {
        let evicts = matches!(purpose, Purpose::EvictClean | Purpose::EvictDirty);
        let (then, keep) = match reason {
            Reason::Invalid | Reason::Moved | Reason::Fenced if evicts => (Then::Relook, true),
            Reason::Invalid | Reason::Moved | Reason::Fenced => (Then::Again, false),
            Reason::Lost => {
                fx.seen.see(Witness::ToldLost);
                (Then::Finish, true)
            }
            Reason::Locked => (Then::Again, true),
            other => {
                complain(
                    at,
                    &format!("{purpose:?} of block {block} was told {other:?}"),
                    fx,
                );
                (Then::Again, true)
            }
        };
        self.end(at, purpose, block, then, keep);
    }

    /// The entry is locked for this thread and its data is here.
    fn held(&mut self, at: usize, purpose: Purpose, block: u8, layout: &Layout, fx: &mut Effects) {
        let node = self.id;
        let slot = &mut self.slots[usize::from(block)];
        let install = match purpose {
            Purpose::Hold { .. } => {
                if let State::Busy { stage, .. } = &mut self.threads[at].state {
                    *stage = Stage::Holding;
                }
                return;
            }
            Purpose::AcceptLoss => return self.end(at, purpose, block, Then::Finish, false),
            Purpose::EvictDirty => {
                // From here on local hits miss, and only then the bytes go home.
                slot.status = LocalStatus::Invalid;
                fx.notes.push((node, block, "evicted dirty"));
                fx.seen.see(Witness::EvictedDirty);
                return self.write_back(at, purpose, block, layout, fx);
            }
            Purpose::EvictClean => {
                fx.notes.push((node, block, "evicted clean"));
                fx.seen.see(Witness::EvictedClean);
                LocalStatus::Invalid
            }
            Purpose::Fill(status) => status,
            Purpose::Upgrade => {
                let Step::Held(grant) = self.threads[at].engine.step() else {
                    return;
                };
                let others = !grant.copyset.without(node).is_empty();
                fx.seen.see_if(others, Witness::UpgradedOverSharers);
                LocalStatus::Modified
            }
        };
        if purpose == Purpose::EvictClean {
            self.copies.left(layout.tag(block));
        }
        if install != LocalStatus::Invalid {
            fx.notes.push((node, block, "installed"));
            self.perform(at, block, layout, fx);
        }
        self.slots[usize::from(block)].status = install;
        self.end(at, purpose, block, Then::Finish, false);
    }

    fn write_back(
        &mut self,
        at: usize,
        purpose: Purpose,
        block: u8,
        layout: &Layout,
        fx: &mut Effects,
    ) {
        if layout.mutated(Mutation::EvictWithoutWriteBack) {
            return self.end(at, purpose, block, Then::Finish, false);
        }
        if let Some(output) = self.threads[at].engine.write_back(NOW) {
            self.transmit(at, &output, layout, fx);
        }
        if let State::Busy { stage, .. } = &mut self.threads[at].state {
            *stage = Stage::WritingBack;
        }
    }

    /// The operation itself, on words that this node may use at this instant.
    fn perform(&mut self, at: usize, block: u8, layout: &Layout, fx: &mut Effects) {
        let thread = &self.threads[at];
        let words = &mut self.slots[usize::from(block)].words;
        match thread.op(layout) {
            Some(Op::Read(_)) => fx.observed.push(Observation::Read(block, *words)),
            Some(Op::Write(_)) => {
                let earlier = (self.incarnation as usize - 1) * MAX_THREADS * MAX_OPERATIONS;
                let number = earlier + thread.index * MAX_OPERATIONS + usize::from(thread.done) + 1;
                let written: Value = [number as u8; WORDS];
                fx.observed.push(Observation::Wrote(block, *words, written));
                *words = written;
            }
            _ => {}
        }
    }

    /// Unlocks if it is time to; false while it is not.
    #[expect(clippy::too_many_arguments, reason = "an event's fields, taken apart")]
    fn leave(
        &mut self,
        at: usize,
        purpose: Purpose,
        block: u8,
        then: Then,
        keep: bool,
        layout: &Layout,
        fx: &mut Effects,
    ) -> bool {
        let engine = &mut self.threads[at].engine;
        if engine.holds() {
            if !engine.can_unlock() {
                return false;
            }
            if let Some(output) = engine.unlock(NOW, keep) {
                self.transmit(at, &output, layout, fx);
            }
        }
        let reserved = then == Then::Relook;
        self.slots[usize::from(block)].reserved &= !purpose.reserves() || reserved;
        let thread = &mut self.threads[at];
        match then {
            Then::Finish => thread.finish(),
            Then::Again | Then::Relook => {
                thread.state = State::Resting {
                    refused: true,
                    reserved,
                };
            }
        }
        true
    }
}

fn complain(thread: usize, what: &str, fx: &mut Effects) {
    let detail = format!("thread {thread} of its node: {what}");
    let promise = ("a granted event is served", "§5.1.1");
    fx.complaint.get_or_insert((promise.0, promise.1, detail));
}
