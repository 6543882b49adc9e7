//! What threads of a node do: begin an operation, take answers, install, unlock, try again.
//!
//! A thread goes on by itself until it has to wait, in one step with whatever let it go on.
//! When it begins an operation, lets a lock go or tries again is the explorer's choice.

use super::effects::Effects;
use super::node::ExplorerNode;
use super::packet::ExplorerPacket;
use super::plan::Plan;
use super::witness::Witness;
use crate::site::{Did, Load};
use rackmem_proto::engine::{Do, Purpose, Stored, Then};
use rackmem_proto::wire::{Kind, Reason, RequesterId};

/// Explorers have no clock: everything happens at this time.
const NOW: u64 = 0;

impl ExplorerNode {
    /// It is a thread's turn.
    pub fn step(&mut self, at: usize, fx: &mut Effects<'_>) {
        let thread = &mut self.threads[at];
        if thread.client.event.is_some() {
            thread.client.let_go();
            return self.advance(at, fx);
        }
        let Some(op) = thread.op(fx.layout) else {
            return;
        };
        let (plan, value) = (self.plan(op, at, fx.layout), self.next_value(at));
        let client = &mut self.threads[at].client;
        client.operand = Load::Block(value);
        let tail = client.engine.tail().is_some();
        let did = match plan {
            Plan::Wait => Did::Park(None),
            Plan::Want(want, _) => self.site.attempt(client, want, NOW),
            Plan::Nowhere | Plan::Gone | Plan::Removed => self.site.go_on(client, NOW),
            Plan::InPlace => {
                self.write_in_place(at, op.block(), fx);
                Did::Emptied
            }
        };
        if did == Did::Hit {
            self.perform(at, fx);
        }
        if matches!(did, Did::Hit | Did::Emptied) {
            self.threads[at].finish();
        }
        fx.seen.see_if(plan == Plan::Nowhere, Witness::HomeGone);
        fx.seen.see_if(plan == Plan::Removed, Witness::RegionGone);
        fx.seen
            .see_if(did == Did::Began && tail, Witness::TailWaited);
        self.follow(None, fx);
        self.note_neighbours(at, fx);
    }

    /// An answer for a thread's requester.
    pub fn answered(&mut self, to: RequesterId, packet: &ExplorerPacket, fx: &mut Effects<'_>) {
        let at = usize::from(to.slot);
        if let Some(thread) = self.threads.get_mut(at) {
            let (client, header) = (&mut thread.client, &packet.header);
            self.site.answer(client, NOW, header, &packet.body);
            self.advance(at, fx);
        }
    }

    /// Does what can be done now.
    pub fn advance(&mut self, at: usize, fx: &mut Effects<'_>) {
        while self.threads[at].client.event.is_some()
            && let Did::Step(event, todo) = self.site.go_on(&mut self.threads[at].client, NOW)
        {
            self.watch_step(at, (event, todo), fx);
            match todo {
                Do::Wait | Do::Held => break,
                Do::Use => self.perform(at, fx),
                Do::Over(then) => {
                    let thread = &mut self.threads[at];
                    let stores = [Kind::Store, Kind::Operate].map(Purpose::Call);
                    let stores = stores.contains(&event.purpose());
                    match (then, thread.client.stored) {
                        (Then::Done | Then::Fail(Reason::Lost), _) => thread.finish(),
                        // The store says that the region is removed.
                        (Then::Fail(_), _) if !event.tag().home().is_own() => thread.finish(),
                        (_, Stored::Refused) if stores => fx.seen.see(Witness::StoreRefused),
                        _ => thread.refused = true,
                    }
                }
                Do::Send(_) | Do::Set(_) => {}
            }
        }
        self.follow(None, fx);
    }
}
