//! What packets do to a lock at a node.
//!
//! A packet is believed if its version is above the floor: the directory numbers what it does,
//! so whatever is newer than the last right given up is still true, asked for or not.
//! What no thread asked for (a late copy of a request was served) is taken all the same,
//! and handed off on demand.

use super::lock::{Acks, At, Event, Lock, Owed, Promise, Right, Steps};
use super::queue::{Queue, Waiter};
use super::regions::used;
use super::settle::age;
use super::{Access, version};
use crate::wire::{Copyset, Flags, GlobalStatus, Header, Kind, Reason, Record};

impl Lock {
    /// Takes a packet; `len` is its body's, in bytes.
    pub(super) fn handle(
        &mut self,
        at: &At,
        header: &Header,
        len: u32,
        records: &[Record],
        steps: &mut Steps,
    ) {
        match header.kind {
            Kind::Grant | Kind::Invalidate => self.concerned(at, header, steps),
            Kind::Wait => self.enqueue(at, header, steps),
            Kind::InvAck => self.acknowledged(header),
            Kind::Give => self.given(header, len, steps),
            Kind::Queue => self.take_queue(at, header, records),
            Kind::ReleaseAck => self.answered(header),
            Kind::YieldAck => self.is_home(header, steps),
            _ => return,
        }
        self.settle(at, steps);
    }

    /// The directory has done something that concerns this node: as the next holder, as a reader,
    /// as a sharer that makes way, as the keeper of the data, or as several of these.
    fn concerned(&mut self, at: &At, header: &Header, steps: &mut Steps) {
        let version = version(header);
        let (who, granted) = (header.requester.node, header.kind == Kind::Grant);
        let keeper = header.flags.has(Flags::PROVIDER);
        let modified = header.status == GlobalStatus::Modified;
        let mut given = false;
        if let Some(releasing) = &self.releasing {
            // Nothing else can have happened to a lock that this node holds.
            if version > releasing.version {
                given = granted && version == releasing.version + 1;
                self.approved(version);
            }
        }
        if keeper && who != at.node && !given {
            self.provide(at, who, version, steps);
        }
        if who == at.node {
            match (modified, granted) {
                (true, _) => self.promised(at, header, keeper),
                (false, true) => self.join(header, keeper),
                (false, false) => {}
            }
            return;
        }
        if !header.copyset.contains(at.node) {
            return;
        }
        let owed = Owed { to: who, version };
        match (granted, modified) {
            (true, false) if !keeper => self.join(header, false),
            (true, true) if self.joins(version) => {
                self.join(header, false);
                self.owed = Some(owed);
            }
            (_, true) => self.asked_to_make_way(at, owed, steps),
            _ => {}
        }
    }

    /// This node is the holder from here on (line 1; cases (ii) and (iii)).
    fn promised(&mut self, at: &At, header: &Header, own: bool) {
        let version = version(header);
        let known = self.promise.is_some_and(|p| p.access == Access::Write);
        if version <= self.floor || version <= self.since || self.right == Right::Modified || known
        {
            return;
        }
        let mut missing = header.copyset.without(at.node);
        if self.acks.version == version {
            missing = Copyset(missing.0 & !self.acks.from.0);
        }
        self.promise = Some(Promise {
            access: Access::Write,
            version,
            missing,
            own,
        });
        self.owed = None;
        self.reason = header.reason;
        self.seen = self.seen.max(version);
    }

    /// Whether a grant to read is for a thread here.
    fn joins(&self, version: u64) -> bool {
        let older = |p: Promise| p.access == Access::Read && p.version <= version;
        let reads = self.promise.is_none_or(older);
        let new = version > self.floor && self.right == Right::None;
        new && reads && self.want == Some(Access::Read)
    }

    /// This node is one of the sharers from here on. If no thread wants that any more,
    /// it is one in name only, and says so when a writer asks.
    fn join(&mut self, header: &Header, own: bool) {
        let version = version(header);
        if !self.joins(version) || self.promise.is_some_and(|p| p.version == version) {
            return;
        }
        self.promise = Some(Promise {
            access: Access::Read,
            version,
            missing: Copyset::EMPTY,
            own,
        });
        self.reason = header.reason;
    }

    /// A writer waits for this sharer. It is told at once, or when the readers inside have left,
    /// or when those have read whose turn was before the writer's and whose data is on its way.
    fn asked_to_make_way(&mut self, at: &At, owed: Owed, steps: &mut Steps) {
        let granted = match (self.right, self.promise) {
            (Right::Modified, _) => return,
            (_, Some(promise)) if promise.access == Access::Write => return,
            (Right::Shared, _) => Some(self.since),
            (Right::None, promise) => promise.map(|p| p.version),
        };
        match granted {
            Some(granted) if granted > owed.version => {}
            Some(_) => self.owed = Some(owed),
            None => self.make_way(at, owed, steps),
        }
    }

    /// Gives what the lock protects, as the one for whom it was granted last.
    fn provide(&mut self, at: &At, to: u16, version: u64, steps: &mut Steps) {
        let none = self.age == 0;
        if none || self.right == Right::Modified || self.age > age(version, Right::Shared) {
            return;
        }
        if let Some((next, queue)) = &self.given
            && *next == to
        {
            self.pass_queue(at, to, version, queue, steps);
        }
        self.give(at, to, version, steps);
    }

    /// The directory takes this node for the queue holder.
    fn enqueue(&mut self, at: &At, header: &Header, steps: &mut Steps) {
        let Some(access) = Access::from_status(header.status) else {
            return;
        };
        let (version, node) = (version(header), header.requester.node);
        if version <= self.floor || node == at.node {
            return;
        }
        self.queue.add(Waiter {
            version,
            node,
            access,
        });
        self.seen = self.seen.max(version);
        let holder = self.right == Right::Modified
            || self.promise.is_some_and(|p| p.access == Access::Write);
        if !holder && self.asked != Some(Access::Write) {
            // The directory is right and its grant was lost: ask for it again.
            self.request(at, Access::Write, steps);
        }
    }

    /// A sharer has made way.
    fn acknowledged(&mut self, header: &Header) {
        let (version, from) = (version(header), header.sender);
        if from as usize >= crate::wire::MAX_NODES {
            return;
        }
        match &mut self.promise {
            Some(promise) if promise.access == Access::Write => {
                if version == promise.version {
                    promise.missing = promise.missing.without(from);
                }
            }
            _ => {
                if version > self.acks.version {
                    self.acks = Acks {
                        version,
                        ..Acks::default()
                    };
                }
                if version == self.acks.version {
                    self.acks.from = self.acks.from.with(from);
                }
            }
        }
    }

    /// A part of the data.
    fn given(&mut self, header: &Header, len: u32, steps: &mut Steps) {
        let version = version(header);
        let asked = self.want.is_some() || self.left.is_some();
        let awaited = asked || self.promise.is_some();
        if version <= self.floor || self.right == Right::Modified || !awaited {
            return;
        }
        let Some(total) = used(header, self.len) else {
            return;
        };
        if self.arrival.add(version, header.offset, len, total) {
            steps.push(Event::Store);
        }
    }

    /// The queue of who was the holder before.
    fn take_queue(&mut self, at: &At, header: &Header, records: &[Record]) {
        let holder = self.right == Right::Modified
            || self.want.max(self.left) == Some(Access::Write)
            || self.promise.is_some_and(|p| p.access == Access::Write);
        if version(header) <= self.floor || !holder {
            return;
        }
        for waiter in records.iter().map(Queue::waiter) {
            if waiter.node != at.node {
                self.queue.add(waiter);
            }
        }
    }

    /// The directory's answer to a release.
    fn answered(&mut self, header: &Header) {
        match &self.releasing {
            Some(releasing) if releasing.version as u32 == header.offset => {}
            _ => return,
        }
        match header.reason {
            Reason::Moved => self.denied(version(header)),
            _ => self.approved(version(header)),
        }
    }
}
