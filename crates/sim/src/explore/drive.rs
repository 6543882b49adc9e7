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
use super::thread::State;
use super::witness::Witness;
use crate::world::Mutation;
use rackmem_proto::engine::{Access, Do, Purpose, Then};
use rackmem_proto::flowcc::{Accept, LocalStatus, Step};
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
        if let State::Busy { access, .. } = &mut thread.state {
            access.let_go();
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
        self.slots[usize::from(block)].reserved |= purpose.leaves().is_some();
        fx.seen
            .see_if(thread.engine.tail().is_some(), Witness::TailWaited);
        let what = (layout.tag(block), 0, 0);
        let (access, output) = Access::begin(purpose, &mut thread.engine, NOW, what);
        thread.state = State::Busy {
            access,
            block,
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
            && let State::Busy { access, block, .. } = thread.state
            && access.purpose().fetches()
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
            (Data::Cache, State::Busy { access, block, .. })
                if access.purpose().leaves().is_some() =>
            {
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
            access,
            block,
            refused,
        } = &mut thread.state
        else {
            return false;
        };
        let (block, was) = (*block, *refused);
        let todo = access.next(&mut thread.engine, || NOW, layout.defect());
        *refused &= !access.is_ending();
        let access = *access;
        let granted = matches!(todo, Do::Use | Do::Held | Do::Set(_));
        fx.seen.see_if(was && granted, Witness::GrantedAfterRefusal);
        match todo {
            Do::Wait | Do::Held => return false,
            Do::Send(output) => self.transmit(at, &output, layout, fx),
            Do::Use => {
                self.used(at, access.purpose(), fx);
                self.perform(at, block, layout, fx);
            }
            Do::Set(status) => self.set(access, block, status, fx),
            Do::Left => self.copies.left(layout.tag(block)),
            Do::Over(then) => self.over(at, access.purpose(), block, then, fx),
        }
        true
    }

    /// What is worth seeing of a grant.
    fn used(&self, at: usize, purpose: Purpose, fx: &mut Effects) {
        if let Step::Held(grant) = self.threads[at].engine.step() {
            let others = !grant.copyset.without(self.id).is_empty();
            let upgrades = purpose == Purpose::Upgrade;
            fx.seen
                .see_if(upgrades && others, Witness::UpgradedOverSharers);
        }
    }

    fn set(&mut self, access: Access, block: u8, status: LocalStatus, fx: &mut Effects) {
        let note = match (access.purpose(), status) {
            (Purpose::EvictClean, _) => {
                fx.seen.see(Witness::EvictedClean);
                "evicted clean"
            }
            (_, LocalStatus::Invalid) => {
                fx.seen.see(Witness::EvictedDirty);
                "evicted dirty"
            }
            (Purpose::EvictDirty, _) => "not evicted after all",
            _ => "installed",
        };
        fx.notes.push((self.id, block, note));
        self.slots[usize::from(block)].status = status;
    }

    /// A thread's event is over.
    fn over(&mut self, at: usize, purpose: Purpose, block: u8, then: Then, fx: &mut Effects) {
        let reserved = then == Then::Relook;
        self.slots[usize::from(block)].reserved &= purpose.leaves().is_none() || reserved;
        let (thread, refused) = (&mut self.threads[at], true);
        match then {
            Then::Done => return thread.finish(),
            Then::Fail(Reason::Lost) => {
                fx.seen.see(Witness::ToldLost);
                return thread.finish();
            }
            Then::Fail(other) => {
                complain(
                    at,
                    &format!("{purpose:?} of block {block} was told {other:?}"),
                    fx,
                );
            }
            Then::Lost => complain(at, "a requester gave up", fx),
            Then::Again | Then::Relook | Then::BackOff => {}
        }
        thread.state = State::Resting { refused, reserved };
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
}

fn complain(thread: usize, what: &str, fx: &mut Effects) {
    let detail = format!("thread {thread} of its node: {what}");
    let promise = ("a granted event is served", "§5.1.1");
    fx.complaint.get_or_insert((promise.0, promise.1, detail));
}
