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
    began: Instant,
    /// When what is under way was asked for last.
    again: Instant,
}

impl<'a> Transacting<'a> {
    /// This one, which the first look begins.
    pub fn new(access: &'a Access, commits: Commits) -> Self {
        let now = Instant::now();
        Transacting {
            access,
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
        let decided = access.leave(slot);
        Some(Ok(match objects.outcome(nth) {
            Some(Outcome::Committed) => Ok(Outcome::Committed),
            _ => Err(Left { error, decided }),
        }))
    }

    /// Waits for packets, no longer than this, and takes those that come.
    pub fn wait(&mut self, slot: &mut Slot, at_most: Duration) {
        self.access.wait_for_homes(slot, at_most, &mut self.again);
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

    /// Its thread does not wait for the transaction of a slot any longer: whether that may take
    /// effect.
    fn leave(&self, slot: &Slot) -> bool {
        let nth = slot.number();
        self.agents.objects.listen_no_more(nth);
        self.within(slot, |sabre, fx| sabre.leave(nth, fx))
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

#[cfg(test)]
mod tests {
    use super::super::{HomeWords, Part};
    use super::*;
    use crate::diagnostics::{End, Faults};
    use crate::object::Object;
    use crate::{Contract, Fabric, Mode, Rack, RegionSpec};
    use rackmem_proto::sabre::transaction::Used;
    use rackmem_proto::sabre::{Ref, Section, Sender};
    use rackmem_proto::wire::{HomeId, Reason};

    /// Longer than anything here takes on a loaded machine.
    const LONG: Duration = Duration::from_secs(60);
    const ENDS: [End; 2] = [End::Node(0), End::Node(1)];

    fn rack(fabric: Fabric) -> Rack {
        let rack = Rack::builder(2).fabric(fabric).patience(LONG);
        rack.faults(Faults::NONE).build().unwrap()
    }

    /// An object of a node's home.
    fn object(rack: &Rack, node: usize, value: u64) -> Object<u64> {
        let spec = RegionSpec::new(&format!("of {node}"), 1 << 20).contract(Contract::Object);
        let region = rack.node(node).create_region(&spec.on(node as u16));
        region.unwrap().alloc(value).unwrap()
    }

    fn writes(object: Ref, value: u64) -> Commits {
        let bytes = value.to_ne_bytes();
        let used = Used {
            object,
            read: None,
            write: Some(&bytes),
        };
        let (plan, parts) = Plan::of(&[used]);
        Commits { plan, parts }
    }

    fn at(object: &Object<u64>) -> Ref {
        Ref {
            tag: Tag(object.addr()),
            generation: object.at().generation(),
        }
    }

    /// One that was given up is still under way in its slot, for its home is silent: the next one
    /// there begins when that has ended, and has an outcome of its own.
    #[test]
    fn a_slot_has_one_transaction_after_the_other() {
        for fabric in [Fabric::Shm, Fabric::Udp] {
            let rack = rack(fabric);
            let (far, near) = (object(&rack, 0, 1), object(&rack, 1, 1));
            let node = rack.node(1);
            let access = &node.inner.access;
            let mut slot = access.requesters.borrow().unwrap();
            let network = rack.faults().unwrap();
            network.part(&ENDS[..1], &ENDS[1..]);
            let mut first = Transacting::new(access, writes(at(&far), 2));
            assert!(first.look(&slot).is_none(), "{fabric:?}");
            assert!(!access.leave(&slot));
            let mut second = Transacting::new(access, writes(at(&near), 3));
            for _ in 0..3 {
                assert!(second.look(&slot).is_none(), "{fabric:?}");
                second.wait(&mut slot, Duration::ZERO);
            }
            assert_eq!(near.read(), Ok(1), "{fabric:?}");
            network.heal();
            let came = loop {
                if let Some(came) = second.look(&slot) {
                    break came;
                }
                second.wait(&mut slot, LOOK_UP);
            };
            assert!(matches!(came, Ok(Ok(Outcome::Committed))), "{fabric:?}");
            assert_eq!((far.read(), near.read()), (Ok(1), Ok(3)), "{fabric:?}");
        }
    }

    /// Nobody listens in its slot any more, and it ends there all the same.
    #[test]
    fn one_that_was_given_up_ends_without_its_thread() {
        for fabric in [Fabric::Shm, Fabric::Udp] {
            let rack = rack(fabric);
            let far = object(&rack, 0, 1);
            let node = rack.node(1);
            let access = &node.inner.access;
            let slot = access.requesters.borrow().unwrap();
            let network = rack.faults().unwrap();
            network.part(&ENDS[..1], &ENDS[1..]);
            let mut given_up = Transacting::new(access, writes(at(&far), 2));
            assert!(given_up.look(&slot).is_none(), "{fabric:?}");
            access.leave(&slot);
            network.heal();
            let (objects, began) = (&access.agents.objects, Instant::now());
            while !objects.part().sabre.may_transact(slot.number()) {
                assert!(began.elapsed() < LONG, "{fabric:?}: it does not end");
                std::thread::sleep(LOOK_UP);
            }
            assert_eq!(far.read(), Ok(1), "{fabric:?}");
        }
    }

    /// Where packets are calls and no switch has periods, a keeper that has not answered one hears
    /// of it again.
    #[test]
    fn what_was_not_answered_is_asked_for_again() {
        let rack = Rack::builder(3).fabric(Fabric::Inline).mode(Mode::HomeOnly);
        let rack = rack.patience(LONG).build().unwrap();
        let spec = RegionSpec::new("kept", 4 * 64).contract(Contract::Object);
        let region = rack.node(1).create_region(&spec.copies(3).line(64));
        let object: Object<u64> = region.unwrap().alloc(1).unwrap();
        let node = rack.node(2);
        let access = &node.inner.access;
        let mut slot = access.requesters.borrow().unwrap();
        let (objects, nth) = (&access.agents.objects, slot.number());
        let Commits { plan, mut parts } = writes(at(&object), 2);
        objects.arrange(nth, slot.reply_port(), &mut parts);
        let mut part = objects.part();
        let Part {
            sabre,
            values,
            kept,
        } = &mut *part;
        let sender = Sender {
            node: objects.me,
            epoch: access.standing.epoch(),
            room: objects.room,
            broken: None,
        };
        // What it sends is lost.
        let mut fx = Section::new(HomeWords(objects, kept), values, (0, &[]), sender);
        assert!(sabre.transact(nth, plan, &mut fx));
        drop(part);
        let began = Instant::now();
        let mut transacting = Transacting {
            access,
            asks: None,
            began,
            again: began,
        };
        let came = loop {
            assert!(began.elapsed() < LONG, "it is not asked again");
            transacting.wait(&mut slot, LOOK_UP);
            if let Some(came) = transacting.look(&slot) {
                break came;
            }
        };
        assert!(matches!(came, Ok(Ok(Outcome::Committed))));
        assert_eq!(object.read(), Ok(2));
    }

    /// There was a home when it was looked for, and is none when it is asked.
    #[test]
    fn a_home_that_is_gone_before_it_is_asked_is_not_waited_for() {
        let rack = rack(Fabric::Udp);
        let node = rack.node(1);
        let access = &node.inner.access;
        let slot = access.requesters.borrow().unwrap();
        let tag = HomeId::of(7).start().under(Contract::Object);
        let gone = Ref { tag, generation: 1 };
        let mut transacting = Transacting::new(access, writes(gone, 2));
        assert!(transacting.look(&slot).is_none());
        let lost = Outcome::Aborted(Reason::Lost, tag);
        assert!(matches!(transacting.look(&slot), Some(Ok(Ok(is))) if is == lost));
    }
}
