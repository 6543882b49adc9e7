//! What threads of a node do: begin an operation, take answers, install, unlock, try again.
//!
//! A thread goes on by itself until it has to wait, in one step with whatever let it go on.
//! When it begins an operation, lets a lock go or tries again is the explorer's choice.

use super::effects::Effects;
use super::layout::Layout;
use super::node::ExplorerNode;
use super::packet::ExplorerPacket;
use super::plan::Plan;
use super::thread::Store;
use super::witness::Witness;
use crate::site::{Did, Event};
use crate::world::Mutation;
use rackmem_proto::Output;
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::flowcc::{LocalStatus, Requester, STORE_AGAIN, Step};
use rackmem_proto::wire::{Kind, Reason, RequesterId};

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
        let (reserved, silent) = (thread.reserved, layout.mutated(Mutation::DropSilently));
        let plan = self.plan(op, reserved, layout);
        match plan {
            Plan::Begin(Purpose::EvictClean, block) if silent => {
                let (slot, tag) = (usize::from(block), layout.tag(block));
                self.site.cache.install(slot, tag, LocalStatus::Invalid);
            }
            Plan::Begin(purpose, block) => self.begin(at, purpose, block, layout, fx),
            Plan::Hit(block) => self.perform(at, usize::from(block), layout, fx),
            Plan::InPlace(block) => self.write_in_place(at, block, layout, fx),
            Plan::Nowhere | Plan::Gone => {
                fx.seen.see_if(plan == Plan::Nowhere, Witness::HomeGone);
                if reserved {
                    self.site.cache.release(usize::from(op.block()));
                }
            }
            Plan::Wait => {}
        }
        let thread = &mut self.threads[at];
        if plan != Plan::Wait && thread.client.event.is_none() {
            thread.finish();
        }
        self.note_neighbours(at, layout, fx);
    }

    fn begin(&mut self, at: usize, purpose: Purpose, block: u8, layout: &Layout, fx: &mut Effects) {
        let (thread, tag) = (&mut self.threads[at], layout.tag(block));
        let entry = purpose.leaves().map(|_| usize::from(block));
        if let Some(entry) = entry {
            self.site.cache.reserve(entry, tag);
        }
        let waits = thread.client.engine.tail().is_some();
        fx.seen.see_if(waits, Witness::TailWaited);
        thread.reserved = false;
        let again = thread.store == Store::CutOff && !layout.mutated(Mutation::StoreAnew);
        let client = &mut thread.client;
        let offset = match purpose {
            Purpose::Call(Kind::Fetch) => 1,
            Purpose::Call(Kind::Store) if again => STORE_AGAIN,
            _ => 0,
        };
        client.begin(purpose, (tag, offset), (entry, None), NOW, &mut self.site);
        self.follow(None, layout, fx);
    }

    /// An answer for a thread's requester.
    pub fn answered(
        &mut self,
        to: RequesterId,
        packet: &ExplorerPacket,
        layout: &Layout,
        fx: &mut Effects,
    ) {
        let at = usize::from(to.slot);
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
            let event = thread.client.event;
            let did = thread.client.go_on(NOW, &mut self.site);
            self.watch_step(at, event, did, fx);
            match (did, event.and_then(|event| event.entry)) {
                (Did::Wait | Did::Held, _) => break,
                (Did::Use, Some(slot)) => self.perform(at, slot, layout, fx),
                (Did::Over(event, then), _) => self.over(at, event, then, fx),
                _ => {}
            }
        }
        self.follow(None, layout, fx);
    }

    /// A thread's event is over.
    fn over(&mut self, at: usize, event: Event, then: Then, fx: &mut Effects) {
        let reserved = then == Then::Relook;
        if let Some(slot) = event.entry.filter(|_| !reserved) {
            self.site.cache.release(slot);
        }
        self.watch_end_of(at, event, then, fx);
        let thread = &mut self.threads[at];
        let stores = event.access.purpose() == Purpose::Call(Kind::Store);
        match then {
            Then::Done if stores && !has_stored(&thread.client.engine) => {
                fx.seen.see(Witness::StoreRefused);
                thread.store = Store::Refused;
            }
            Then::Done | Then::Fail(Reason::Lost) => thread.finish(),
            _ => {
                if stores {
                    thread.store = Store::CutOff;
                }
                (thread.refused, thread.reserved) = (true, reserved);
            }
        }
    }
}

/// Whether home has taken the block of a store that it has answered.
fn has_stored(engine: &Requester) -> bool {
    matches!(engine.step(), Step::Held(grant) if grant.stored() > 0)
}
