//! A thread commits a transaction over several objects.

use super::Objects;
use crate::error::{AccessError, RackError};
use crate::host::access::Access;
use crate::host::here::Here;
use crate::ports::requester::Borrowed;
use rackmem_fabric::{Body, Nobody};
use rackmem_proto::engine::ObjectHost;
use rackmem_proto::sabre::transaction::{Parts, Plan};
use rackmem_proto::sabre::{Outcome, Sabre};
use rackmem_proto::wire::{Copyset, Tag};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Why nobody knows what came of a transaction, or why it was given up.
pub(crate) struct Unfinished {
    pub error: AccessError,
    /// Whether it may take effect, or has.
    pub decided: bool,
}

impl Unfinished {
    fn before(error: AccessError) -> Self {
        let decided = false;
        Unfinished { error, decided }
    }
}

impl Access {
    /// Commits it. Where its thread gives it up, the node goes on until nothing of it is locked.
    pub fn transact(&self, plan: Plan, mut parts: Parts) -> Result<Outcome, Unfinished> {
        let written = plan.parts.iter().map(|part| part.first);
        let read = plan.reads.iter().map(|(object, _)| object.tag);
        let kept = plan.kept.iter().map(|part| part.first);
        let tags: Vec<Tag> = written.chain(read).chain(kept).collect();
        let at_keeper = tags.iter().copied().find(|tag| !tag.home().is_own());
        for tag in tags {
            let there = self.alive(tag).and_then(|()| self.is_there(tag));
            there.map_err(Unfinished::before)?;
        }
        let objects = &self.agents.objects;
        let slot = self.requesters.borrow().map_err(AccessError::from);
        let mut slot = slot.map_err(Unfinished::before)?;
        let (nth, began) = (slot.number(), Instant::now());
        // An earlier one, which its thread has given up, may still be under way here.
        while !objects.part().sabre.may_transact(nth) {
            if let Some(error) = self.given_up(nth, began) {
                return Err(Unfinished::before(error));
            }
            self.drop_lost(&slot);
            self.listen(&mut slot, |time| objects.wait(time));
        }
        objects.arrange(nth, slot.reply_port(), &mut parts);
        self.within(&slot, |sabre, fx| sabre.transact(nth, plan, fx));
        loop {
            if let Some(outcome) = objects.outcome(nth) {
                return Ok(outcome);
            }
            if let Some(error) = self.given_up(nth, began) {
                objects.listen_no_more(nth);
                let decided = self.within(&slot, |sabre, fx| sabre.leave(nth, fx));
                return match objects.outcome(nth) {
                    Some(Outcome::Committed) => Ok(Outcome::Committed),
                    _ => Err(Unfinished { error, decided }),
                };
            }
            self.drop_lost(&slot);
            self.listen(&mut slot, |time| objects.wait(time));
            self.ask_keeper_again(&slot, at_keeper);
        }
    }

    /// Why a thread waits no longer for the transaction of a slot.
    fn given_up(&self, slot: u8, began: Instant) -> Option<AccessError> {
        if self.closed.load(Relaxed) {
            return Some(AccessError::Rack(RackError::Closed));
        }
        if self.standing.is_fenced() {
            return Some(AccessError::Rack(RackError::Fenced));
        }
        let late = began.elapsed() >= self.patience;
        late.then(|| {
            let awaited = self.agents.objects.part().sabre.awaited(slot);
            let node = awaited.and_then(|home| self.standing.host(home));
            let node = node.unwrap_or(self.me());
            AccessError::Rack(RackError::Timeout { node })
        })
    }

    /// A home may have died before the transaction had it in its plan.
    fn drop_lost(&self, slot: &Borrowed<'_>) {
        let nth = slot.number();
        let homes = self.agents.objects.part().sabre.homes(nth);
        let lost = homes.iter().filter(|node| !self.standing.live(*node));
        let lost = lost.fold(Copyset::EMPTY, Copyset::with);
        if !lost.is_empty() {
            self.within(slot, |sabre, fx| sabre.lose(nth, lost, fx));
        }
    }

    fn within<R>(
        &self,
        slot: &Borrowed<'_>,
        section: impl FnOnce(&mut Sabre, &mut super::Fx<'_>) -> R,
    ) -> R {
        let mut nobody = Nobody;
        let mut here = Here::new(&self.agents, slot.net(), Body::None, &mut nobody);
        here.objects(section)
    }
}

impl Objects {
    /// A thread is about to commit this in a slot that it has for itself.
    fn arrange(&self, slot: u8, reply_port: u16, parts: &mut Parts) {
        let mut part = self.part();
        part.values.begin_transaction(slot, reply_port, parts);
    }

    fn listen_no_more(&self, slot: u8) {
        self.part().values.leave_transaction(slot);
    }

    fn outcome(&self, slot: u8) -> Option<Outcome> {
        self.part().values.end_transaction(slot)
    }
}
