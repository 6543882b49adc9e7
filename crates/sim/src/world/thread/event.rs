//! Goes on with a thread's event, and with what follows it.

use super::{Around, Thread};
use crate::site::{Did, Want};
use crate::world::mutation::Mutation;
use rackmem_proto::engine::{Access, Do, Then};
use rackmem_proto::flowcc::LocalStatus;

/// The first back-off, at most, in nanoseconds; it doubles with every attempt.
const BACKOFF: u64 = 2_000;
/// How long a thread holds a lock for its own purposes, at most.
const HOLDING: u64 = 20_000;

impl Thread {
    /// Looks whether it has what it wants, and begins what it takes to get it;
    /// false when there is something to wait for.
    pub(super) fn want(&mut self, want: Want, around: &mut Around<'_>) -> bool {
        let now = around.fabric.now;
        let did = around.node.attempt(&mut self.client, want, now);
        self.follow(did, around)
    }

    /// Goes on with its event; false when there is something to wait for.
    pub(super) fn drive(&mut self, around: &mut Around<'_>) -> bool {
        let now = around.fabric.now;
        if let Some((tag, shared)) = self.client.holding() {
            around.oracle.let_go(tag, shared);
            self.client.let_go();
        }
        let did = around.node.go_on(&mut self.client, now);
        self.follow(did, around)
    }

    fn follow(&mut self, did: Did, around: &mut Around<'_>) -> bool {
        let now = around.fabric.now;
        self.send(around);
        let (event, todo) = match did {
            Did::Park(_) => {
                around.node.parked.push(self.index);
                return false;
            }
            Did::Hit => {
                self.used(true, around);
                self.judged.work.hits += 1;
                self.finish(around);
                return true;
            }
            Did::Began | Did::Emptied => return true,
            Did::Step(event, todo) => (event, todo),
        };
        if let Do::Use | Do::Held | Do::Set(LocalStatus::Invalid) = todo {
            around.oracle.grant(event.tag());
        }
        match todo {
            Do::Wait => return false,
            Do::Send(_) => {}
            Do::Use => self.used(true, around),
            Do::Set(status) => self.judged.work.set(&event, status),
            Do::Held => {
                self.holds(around);
                self.until = now + self.random.below(HOLDING);
            }
            Do::Over(then) => self.over(&event, then, around),
        }
        true
    }

    /// The event is over, and its lock with it.
    fn over(&mut self, event: &Access, then: Then, around: &mut Around<'_>) {
        let tag = self.about(event);
        if !matches!(then, Then::Done | Then::Lost) {
            self.refused(tag, around);
        }
        if then == Then::Relook {
            return;
        }
        self.rest(around.fabric.now);
        match then {
            Then::Done => self.happened(event, around),
            Then::Lost => self.complain(tag, "a requester gave up".into()),
            // It finds that out itself.
            _ if !around.node.reaches(tag) => {}
            Then::Fail(reason) => self.failed(event, reason, around),
            Then::BackOff => self.back_off(around),
            Then::Again | Then::Relook => self.asks_again(event),
        }
    }

    /// Waits before it tries again.
    pub(super) fn back_off(&mut self, around: &mut Around<'_>) {
        if self.config.mutation == Some(Mutation::NeverBackOff) {
            return;
        }
        self.attempt += 1;
        let wait = self.random.pause(BACKOFF, self.attempt);
        self.rest(around.fabric.now + wait);
    }
}
