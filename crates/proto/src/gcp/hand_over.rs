//! Algorithm 1: what the queue holder does when it is done, and the directory's approval.
//!
//! The lock moves in one one-way trip: the release goes through the directory to the next holder,
//! the data and the queue go there straight, all at the same time. They count when the directory
//! has approved, which it does only if the holder has heard of every request that was sent to it
//! (§4.2.2 "Consistency during queue transfers").

use super::lock::{At, Body, Event, Lock, Owed, Releasing, Right, Send, Steps};
use super::queue::Queue;
use crate::wire::{Copyset, Dest, GlobalStatus, Kind};
use alloc::boxed::Box;

impl Lock {
    /// On Release at Writer (Algorithm 1, lines 4–15), as soon as nobody is in the way and somebody
    /// waits.
    ///
    /// Line 6 says that a writer without waiting requests drops the queue. It keeps an empty one,
    /// and the lock: that is what lets the lock stay where it is (§3.3), and the directory has to
    /// know where to send the next request.
    pub(super) fn release(&mut self, at: &At, steps: &mut Steps) {
        if self.right != Right::Modified || self.releasing.is_some() || self.writer {
            return;
        }
        // Line 8: dequeue.
        let (readers, writer, rest) = self.queue.next();
        if readers.is_empty() && (writer.is_none() || self.readers > 0) {
            return;
        }
        // Lines 12–15. Readers that are inside here stay, together with those that come.
        let stay = !readers.is_empty() && (writer.is_none() || self.readers > 0);
        let releasing = Releasing {
            version: self.seen,
            readers,
            writer,
            rest,
            stay,
        };
        self.queue = Queue::default();
        steps.push(Event::Send(self.release_packet(at, &releasing)));
        let next = self.seen + 1;
        if let Some(writer) = releasing.writer {
            // Lines 10 and 13: transfer the queue to the next writer.
            self.pass_queue(at, writer.node, next, &releasing.rest, steps);
        }
        for waiter in releasing.readers.iter().chain(&releasing.writer) {
            self.give(at, waiter.node, next, steps);
        }
        self.releasing = Some(Box::new(releasing));
    }

    /// The packet that asks the directory for its approval.
    pub(super) fn release_packet(&self, at: &At, releasing: &Releasing) -> Send {
        let next = releasing.writer.map_or(at.node, |writer| writer.node);
        let mut header = at.header(Kind::Release, next, releasing.version);
        header.status = match releasing.writer {
            Some(_) => GlobalStatus::Modified,
            None => GlobalStatus::Shared,
        };
        header.reason = self.reason;
        header.copyset = releasing
            .readers
            .iter()
            .fold(Copyset::EMPTY, |set, waiter| set.with(waiter.node));
        if releasing.stay {
            header.copyset = header.copyset.with(at.node);
        }
        Send {
            to: at.directory,
            header,
            body: Body::None,
        }
    }

    /// Sends a queue, unless it is empty. It may be lost: waiting nodes ask again,
    /// and only loses its place.
    pub(super) fn pass_queue(
        &self,
        at: &At,
        to: u16,
        version: u64,
        queue: &Queue,
        steps: &mut Steps,
    ) {
        if !queue.is_empty() {
            steps.push(Event::Send(Send {
                to: Dest::Agent(to),
                header: at.header(Kind::Queue, to, version),
                body: Body::Queue(queue.clone()),
            }));
        }
    }

    /// The directory has approved, as what its number `current` is or an earlier one:
    /// the lock is the others'.
    pub(super) fn approved(&mut self, current: u64) {
        let Some(releasing) = self.releasing.take() else {
            return;
        };
        // A number beyond the directory's was made up: whatever is granted next would be taken for
        // older.
        let version = (releasing.version + 1).min(current);
        self.queue = Queue::default();
        self.asked = None;
        self.keeper = true;
        if releasing.stay {
            self.right = Right::Shared;
            self.since = version;
            let to = releasing.writer.map(|writer| writer.node);
            self.owed = to.map(|to| Owed { to, version });
        } else {
            self.right = Right::None;
            self.floor = version;
            self.passes = 0;
        }
        let Releasing { writer, rest, .. } = *releasing;
        self.given = writer.map(|writer| (writer.node, rest));
    }

    /// The directory has refused: requests are under way that this holder has not heard of.
    /// They came before the refusal, or are lost, and then their senders ask again.
    pub(super) fn denied(&mut self, current: u64) {
        let Some(releasing) = self.releasing.take() else {
            return;
        };
        let Releasing {
            readers,
            writer,
            rest,
            ..
        } = *releasing;
        let mut queue = rest;
        for waiter in readers.into_iter().chain(writer) {
            queue.add(waiter);
        }
        for waiter in self.queue.iter() {
            queue.add(*waiter);
        }
        self.queue = queue;
        if releasing.version > current {
            // No directory has given that number: a packet made it up, and maybe some who wait.
            // To go on by it would be refused for ever, each time with all that a release sends.
            self.queue.believe(current);
            self.seen = current;
        } else {
            self.seen = self.seen.max(current);
        }
    }
}
