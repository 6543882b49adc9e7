//! A node's locks: the engine's [`NodeLock`]s, without bytes.

use super::EPOCH;
use super::fabric::Records;
use super::layout::{Layout, nth};
use super::node::ModelNode;
use super::program::Inside;
use rackmem_proto::engine::{
    Gcp, LockCommand, LockFx, LockHost, LockPart, NodeLock, Protocol, Told,
};
use rackmem_proto::gcp::{Access, BladeCounters, Body, Entered, Lock, Region, Regions, Right};
use rackmem_proto::wire::{Dest, Header, Kind, NodeId, Tag};
use rackmem_proto::{Data, Output};

/// Hand-overs inside a node while another one waits: the library's.
const COHORT: u8 = 16;

/// What a lock has decided, in order.
pub enum Follows {
    /// A packet is sent.
    Send(Output, Records),
    /// A thread is inside.
    Inside(Inside),
}

/// A lock of a node.
pub struct Cell {
    lock: NodeLock<u16>,
    /// Requests to the directory since a thread was let in by a packet.
    transactions: u32,
    /// It has been used here; locks that do not stay are not used again until they have come anew.
    worn: bool,
}

/// What a lock acts by: nothing has bytes here.
pub struct Fx<'a> {
    me: NodeId,
    lock: Tag,
    protects: Data,
    packet: bool,
    transactions: &'a mut u32,
    follows: &'a mut Vec<Follows>,
}

impl LockFx for Fx<'_> {
    type Seat = u16;

    fn store(&mut self, _: &Header) {}

    fn install(&mut self, _: bool) {}

    fn clear(&mut self) {}

    fn send(&mut self, to: Dest, header: &Header, body: &Body) {
        let asks = header.kind == Kind::Acquire && header.requester.node == self.me;
        *self.transactions += u32::from(asks);
        let (data, records) = match body {
            Body::None => (Data::None, Records::default()),
            Body::Regions => (self.protects, Records::default()),
            Body::Queue(queue) => (Data::Records, queue.records().collect()),
        };
        let output = Output::with(to, *header, data);
        self.follows.push(Follows::Send(output, records));
    }

    fn inside(&mut self, thread: u16, _: Entered, at_once: bool) {
        let remote = self.packet && !at_once;
        let transactions = match remote {
            true => std::mem::take(self.transactions),
            false => 0,
        };
        self.follows.push(Follows::Inside(Inside {
            thread,
            lock: self.lock,
            remote,
            transactions,
        }));
    }

    fn send_away(&mut self, _: u16) {}

    /// What a node sends to itself takes time like the rest.
    fn loops(&self) -> bool {
        false
    }
}

/// The locks of a node, none of which it has used.
pub fn cells(me: NodeId, layout: &Layout, switch: bool) -> Box<[Cell]> {
    let part = LockPart {
        node: me,
        epoch: EPOCH,
        switch,
        cohort: COHORT,
        implicit: false,
    };
    let (count, len) = layout.locks;
    let cell = |tag: Tag| {
        let addr = tag.offset();
        let regions = Regions::new(&[Region { addr, len }][..usize::from(len > 0)]);
        Cell {
            lock: NodeLock::new(tag, regions.unwrap_or_default(), part, None),
            transactions: 0,
            worn: false,
        }
    };
    (0..count).map(|lock| cell(layout.lock(lock))).collect()
}

impl ModelNode {
    fn cell(&self, lock: Tag) -> Option<&Cell> {
        self.locks.get(nth(lock) as usize)
    }

    /// Whether a thread may enter at once, and tell nobody: the lock is here, free,
    /// and nobody else wants it.
    pub fn at_hand(&self, lock: Tag, access: Access) -> bool {
        self.cell(lock).is_some_and(|cell| {
            let releases = cell.lock.lock().is_none_or(|l| l.releasing().is_some());
            !cell.worn && !releases && cell.lock.at_hand(access)
        })
    }

    /// Whether a lock that does not stay has been used here, and is still here.
    pub fn is_worn(&self, lock: Tag) -> bool {
        self.cell(lock).is_some_and(|cell| cell.worn)
    }

    /// Whether leaving concerns another node.
    pub fn is_waited_for(&self, lock: Tag) -> bool {
        let side = self.cell(lock).and_then(|cell| cell.lock.lock());
        side.is_some_and(Lock::contended)
    }

    /// What its locks have cost.
    pub fn counters(&self) -> BladeCounters {
        let counters = self.locks.iter().map(|cell| cell.lock.counters());
        counters.fold(BladeCounters::default(), BladeCounters::and)
    }

    /// A thread wants to enter, or leaves; it pays for what follows.
    pub fn command(&mut self, lock: Tag, command: LockCommand<u16>) {
        let leaves = matches!(command, LockCommand::Leave(_));
        if let Some(cell) = self.locks.get_mut(nth(lock) as usize) {
            cell.worn |= leaves && !self.layout.locks_stay;
        }
        (self.from, self.serves) = (None, false);
        Gcp::command(self, 0, (lock, command));
    }

    /// The home takes a lock back as soon as nobody is inside.
    pub fn take_back(&mut self, tag: Tag, now: u64) {
        (self.from, self.serves) = (Some(now), false);
        self.lock(tag, |lock, fx| {
            let here = lock.lock().is_some_and(|l| l.right() == Right::Modified);
            if !here && lock.waiting() == 0 {
                lock.bring(Access::Write, fx);
            }
        });
    }

    /// Before a run: asks the switch to serve a lock.
    pub fn place(&mut self, tag: Tag) {
        self.lock(tag, |lock, fx| lock.place_at_switch(fx));
    }
}

impl LockHost for ModelNode {
    type Seat = u16;
    type Fx<'f> = Fx<'f>;

    fn lock<R>(
        &mut self,
        tag: Tag,
        section: impl FnOnce(&mut NodeLock<u16>, &mut Fx<'_>) -> R,
    ) -> Option<R> {
        let cell = self.locks.get_mut(nth(tag) as usize)?;
        let mut fx = Fx {
            me: self.id,
            lock: tag,
            protects: if self.layout.locks.1 > 0 {
                Data::Cache
            } else {
                Data::None
            },
            packet: self.serves,
            transactions: &mut cell.transactions,
            follows: &mut self.follows,
        };
        let result = section(&mut cell.lock, &mut fx);
        let right = cell.lock.lock().map_or(Right::None, Lock::right);
        cell.worn &= right != Right::None;
        Some(result)
    }

    fn each_lock(&mut self, mut section: impl FnMut(&mut NodeLock<u16>, &mut Fx<'_>)) {
        for lock in 0..self.layout.locks.0 {
            self.lock(self.layout.lock(lock), &mut section);
        }
    }

    /// Nothing is lost, so nothing is asked for again.
    fn each_due(&mut self, _: impl FnMut(&mut NodeLock<u16>, &mut Fx<'_>)) {}

    /// There is one epoch.
    fn told<R>(&mut self, section: impl FnOnce(&mut Told) -> R) -> R {
        section(&mut Told::default())
    }

    fn remove(&mut self, _: Tag) {}
}
