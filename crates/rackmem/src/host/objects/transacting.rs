//! A thread commits a transaction over several objects, or has that under way among others.

use super::Objects;
use super::operating::silence;
use crate::error::{AccessError, RackError};
use crate::host::access::Access;
use crate::host::driving::errand::{Came, Question};
use crate::host::here::Here;
use crate::host::replicated::LOOK_UP;
use crate::membership::current_view::Looked;
use crate::ports::requester::Slot;
use rackmem_fabric::{Body, Nobody};
use rackmem_proto::engine::ObjectHost;
use rackmem_proto::sabre::transaction::{Parts, Plan};
use rackmem_proto::sabre::{Outcome, Sabre};
use rackmem_proto::wire::{Copyset, Tag};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What homes are asked to make one step. An error that comes of it: it has not begun.
pub(crate) struct Commits {
    pub plan: Plan,
    pub parts: Parts,
}

/// Nobody knows what came of a transaction, or it was given up. The node goes on until nothing of
/// it is locked.
pub(crate) struct Left {
    pub error: AccessError,
    /// Whether it may take effect, or has.
    pub decided: bool,
}

impl Commits {
    /// Where it is asked for.
    fn tags(&self) -> impl Iterator<Item = Tag> {
        let written = self.plan.parts.iter().map(|part| part.first);
        let read = self.plan.reads.iter().map(|(object, _)| object.tag);
        let kept = self.plan.kept.iter().map(|part| part.first);
        written.chain(read).chain(kept)
    }
}

impl Question for Commits {
    type Answer = Result<Outcome, Left>;

    fn has_answerer(
        &self,
        access: &Access,
        seen: &mut Option<Looked>,
    ) -> Option<Result<(), AccessError>> {
        for tag in self.tags() {
            let alive = access.alive_now(tag, seen)?;
            if let Err(error) = alive.and_then(|()| access.is_there(tag)) {
                return Some(Err(error));
            }
        }
        Some(Ok(()))
    }

    fn unanswered(&self, access: &Access) -> AccessError {
        silence(access, self.tags().next().unwrap_or(Tag(0)))
    }
}

/// A transaction that is under way in a requester's slot, for the thread that waits for it or has
/// more.
pub(in crate::host) struct Transacting<'a> {
    access: &'a Access,
    /// What is asked once the slot may.
    asks: Option<Commits>,
    /// Some objects are of homes that groups keep.
    kept: bool,
    began: Instant,
    /// When a keeper was asked last.
    again: Instant,
}

impl<'a> Transacting<'a> {
    /// This one, which the first look begins.
    pub fn new(access: &'a Access, commits: Commits) -> Self {
        let kept = commits.tags().any(|tag| !tag.home().is_own());
        let now = Instant::now();
        Transacting {
            access,
            kept,
            asks: Some(commits),
            began: now,
            again: now,
        }
    }

    /// What has come of it, once it has ended or is waited for no longer.
    pub fn look(&mut self, slot: &Slot) -> Option<Came<Commits>> {
        let (access, nth) = (self.access, slot.number());
        let objects = &access.agents.objects;
        // An earlier one, which was given up, may still be under way here.
        let may = |_: &mut _| objects.part().sabre.may_transact(nth);
        if let Some(Commits { plan, mut parts }) = self.asks.take_if(may) {
            objects.arrange(nth, slot.reply_port(), &mut parts);
            access.within(slot, |sabre, fx| sabre.transact(nth, plan, fx));
        }
        let begun = self.asks.is_none();
        if let Some(outcome) = begun.then(|| objects.outcome(nth)).flatten() {
            return Some(Ok(Ok(outcome)));
        }
        let Some(error) = access.given_up(nth, self.began) else {
            access.drop_lost(slot);
            return None;
        };
        if !begun {
            return Some(Err(error));
        }
        objects.listen_no_more(nth);
        let decided = access.within(slot, |sabre, fx| sabre.leave(nth, fx));
        Some(Ok(match objects.outcome(nth) {
            Some(Outcome::Committed) => Ok(Outcome::Committed),
            _ => Err(Left { error, decided }),
        }))
    }

    /// Waits for packets, no longer than this, and takes those that come.
    pub fn wait(&mut self, slot: &mut Slot, at_most: Duration) {
        let again = (self.kept && self.asks.is_none()).then_some(&mut self.again);
        self.access.wait_for_homes(slot, at_most, again);
    }
}

impl Access {
    /// Commits it. Where its thread gives it up, the node goes on until nothing of it is locked.
    pub fn transact(&self, commits: Commits) -> Came<Commits> {
        for tag in commits.tags() {
            self.alive(tag)?;
            self.is_there(tag)?;
        }
        let mut slot = self.requesters.borrow()?;
        let mut transacting = Transacting::new(self, commits);
        loop {
            if let Some(came) = transacting.look(&slot) {
                return came;
            }
            transacting.wait(&mut slot, LOOK_UP);
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
    fn drop_lost(&self, slot: &Slot) {
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
        slot: &Slot,
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
