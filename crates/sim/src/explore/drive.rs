//! What threads of a node do: begin an operation, take answers, install, unlock, try again.
//!
//! A thread goes on by itself until it has to wait, in one step with whatever let it go on.
//! When it begins an operation, lets a lock go or tries again is the explorer's choice.

use super::effects::Effects;
use super::layout::Layout;
use super::node::ExplorerNode;
use super::packet::ExplorerPacket;
use super::plan::Plan;
use super::witness::Witness;
use crate::site::{Did, Event};
use crate::world::Mutation;
use rackmem_proto::Output;
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::flowcc::{LocalStatus, Step};
use rackmem_proto::wire::{Kind, Reason};

/// Explorers have no clock: everything happens at this time.
const NOW: u64 = 0;
/// A time at which every retransmission is due and nothing is given up.
const LATE: u64 = 1 << 50;

impl ExplorerNode {
    /// It is a thread's turn.
    pub fn step(&mut self, at: usize, layout: &Layout, fx: &mut Effects) {
        let thread = &mut self.threads[at];
        if thread.client.event.is_some() {
            thread.client.let_go();
            return self.advance(at, layout, fx);
        }
        let Some(op) = thread.op(layout) else { return };
        let reserved = thread.reserved;
        match self.plan(op, reserved, layout) {
            Plan::Wait => {}
            Plan::Hit(block) => {
                self.perform(at, usize::from(block), layout, fx);
                self.threads[at].finish();
            }
            Plan::InPlace(block) => {
                fx.seen.see(Witness::WrittenInPlace);
                self.write_in_place(at, block, layout, fx);
                self.threads[at].finish();
            }
            Plan::Begin(Purpose::EvictClean, block) if layout.mutated(Mutation::DropSilently) => {
                let (slot, tag) = (usize::from(block), layout.tag(block));
                self.site.cache.install(slot, tag, LocalStatus::Invalid);
                self.threads[at].finish();
            }
            Plan::Begin(purpose, block) => self.begin(at, purpose, block, layout, fx),
            nothing => {
                fx.seen
                    .see_if(matches!(nothing, Plan::Nowhere), Witness::HomeGone);
                if reserved {
                    self.site.cache.release(usize::from(op.block()));
                }
                self.threads[at].finish();
            }
        }
        self.note_neighbours(at, layout, fx);
    }

    fn begin(&mut self, at: usize, purpose: Purpose, block: u8, layout: &Layout, fx: &mut Effects) {
        let (thread, tag) = (&mut self.threads[at], layout.tag(block));
        let entry = purpose.leaves().map(|_| usize::from(block));
        entry
            .into_iter()
            .for_each(|entry| self.site.cache.reserve(entry, tag));
        let waits = thread.client.engine.tail().is_some();
        fx.seen.see_if(waits, Witness::TailWaited);
        thread.reserved = false;
        let client = &mut thread.client;
        let blocks = u32::from(purpose == Purpose::Call(Kind::Fetch));
        client.begin(purpose, (tag, blocks), (entry, None), NOW, &mut self.site);
        self.follow(None, layout, fx);
    }

    /// An answer for a thread's requester.
    pub fn answered(
        &mut self,
        at: usize,
        packet: &ExplorerPacket,
        layout: &Layout,
        fx: &mut Effects,
    ) {
        if let Some(thread) = self.threads.get_mut(at) {
            let client = &mut thread.client;
            client.receive(NOW, &packet.header, &packet.body, &mut self.site);
            self.advance(at, layout, fx);
        }
    }

    /// What a thread's requester sends again when it has waited long enough, each by itself:
    /// timeouts differ.
    pub fn resends(&self, at: usize) -> impl Iterator<Item = Output> + use<> {
        // Sending again changes nothing but the times of sending, so the requester stays as it is.
        let outputs = self.threads[at].client.engine.clone().handle_timeout(LATE);
        let outputs: Vec<Output> = outputs.iter().copied().collect();
        outputs.into_iter()
    }

    /// Sends one of them.
    pub fn resend(&mut self, at: usize, nth: usize, layout: &Layout, fx: &mut Effects) {
        if let Some(output) = self.resends(at).nth(nth) {
            let client = &mut self.threads[at].client;
            client.send_again(&output, &mut self.site);
            self.follow(None, layout, fx);
        }
    }

    /// Does what can be done now.
    pub fn advance(&mut self, at: usize, layout: &Layout, fx: &mut Effects) {
        loop {
            let thread = &mut self.threads[at];
            let (event, refused) = (thread.client.event, thread.refused);
            let did = thread.client.go_on(NOW, &mut self.site);
            let ends = thread
                .client
                .event
                .is_some_and(|event| event.access.is_ending());
            thread.refused &= !ends;
            let granted = matches!(did, Did::Use | Did::Held | Did::Set(_));
            fx.seen
                .see_if(refused && granted, Witness::GrantedAfterRefusal);
            match (did, event) {
                (Did::Wait | Did::Held, _) => break,
                (Did::Use, Some(event)) => self.used(at, event, layout, fx),
                (Did::Set(status), Some(event)) => match (event.access.purpose(), status) {
                    (Purpose::EvictClean, _) => fx.seen.see(Witness::EvictedClean),
                    (_, LocalStatus::Invalid) => fx.seen.see(Witness::EvictedDirty),
                    _ => {}
                },
                (Did::Over(event, then), _) => self.over(at, event, then, fx),
                _ => {}
            }
        }
        self.follow(None, layout, fx);
    }

    /// The block is granted: the operation is carried out.
    fn used(&mut self, at: usize, event: Event, layout: &Layout, fx: &mut Effects) {
        if let Step::Held(grant) = self.threads[at].client.engine.step() {
            let others = !grant.copyset.without(self.site.id).is_empty();
            let upgrades = event.access.purpose() == Purpose::Upgrade;
            fx.seen
                .see_if(upgrades && others, Witness::UpgradedOverSharers);
        }
        if let Some(slot) = event.entry {
            self.perform(at, slot, layout, fx);
        }
    }

    /// A thread's event is over.
    fn over(&mut self, at: usize, event: Event, then: Then, fx: &mut Effects) {
        let reserved = then == Then::Relook;
        if let Some(slot) = event.entry.filter(|_| !reserved) {
            self.site.cache.release(slot);
        }
        let thread = &mut self.threads[at];
        let mut complain = |what: &str| {
            let detail = format!("thread {at} of its node: {what}");
            fx.complaint
                .get_or_insert(("a granted event is served", "§5.1.1", detail));
        };
        match then {
            Then::Done => return thread.finish(),
            Then::Fail(Reason::Lost) => {
                fx.seen.see(Witness::ToldLost);
                return thread.finish();
            }
            Then::Fail(other) => {
                let purpose = event.access.purpose();
                let tag = event.tag;
                complain(&format!("{purpose:?} of {tag:?} was told {other:?}"));
            }
            Then::Lost => complain("a requester gave up"),
            Then::Again | Then::Relook | Then::BackOff => {}
        }
        (thread.refused, thread.reserved) = (true, reserved);
    }
}
