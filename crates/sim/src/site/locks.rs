//! Locks at a node: the engine's, with a few words in place of the bytes that they protect.

use super::{Deed, Form, Load, Site, Speaks, mutate};
use crate::gcp::Mutation;
use rackmem_proto::Output;
use rackmem_proto::engine::{Defect, Host, LockFx, LockHost, LockPart, NodeLock, Told};
use rackmem_proto::gcp::{Body, Entered, Life, Region, Regions, Right, SEGMENT};
use rackmem_proto::wire::{Dest, Header, NodeId, Tag};
use std::collections::BTreeMap;

/// What a lock protects: words, one a segment, so that it can be torn.
pub type Words = [u64; 4];
/// The word that says which lock of its place it is.
pub const LIFE: usize = 1;
/// What stands where the data was and is not needed any more: no writer leaves this,
/// and the lives of locks are not of it.
const FORGOTTEN: Words = {
    let mut words = [0xdead_beee; 4];
    words[LIFE] = 0;
    words
};

/// How long a tick is to the pauses of locks: a network here is a hundred times as fast as those
/// that they are made for, and a tick forty microseconds.
const A_TICK: u32 = 4;

/// What has come of a turn at a lock, in order; with the data as it was then.
#[derive(Clone, Debug)]
pub enum LockDeed {
    /// A packet is sent.
    Sent(Output, Body, Words),
    /// The thread of this seat is inside; at once, or by a packet.
    Inside(u16, Entered, bool, Words),
    /// The thread of this seat waits in vain: the lock is gone with its home.
    Gone(u16),
    /// The data was dropped.
    Dropped,
    /// The node may write, and did not before.
    Gained(Words),
    /// Its home has made its entry anew.
    Settled,
}

/// A lock at a node, and what it protects there.
#[derive(Clone)]
pub struct Cell {
    /// The shipped lock.
    pub lock: NodeLock<u16>,
    /// What it protects, as the node has it.
    pub data: Words,
    /// What has come for it beside.
    pub beside: Words,
    /// Whether what a lock sends to its own node is taken in the same step. Otherwise it travels,
    /// may be lost and overtaken: whatever the library does is one of these orders.
    pub loops: bool,
}

/// What a turn acts by.
pub struct Fx<'a> {
    data: &'a mut Words,
    beside: &'a mut Words,
    body: &'a [u64],
    loops: bool,
    mutation: Option<Mutation>,
    broken: Option<Defect>,
    done: Vec<LockDeed>,
}

impl LockFx for Fx<'_> {
    type Seat = u16;

    fn store(&mut self, header: &Header) {
        let at = (header.offset / SEGMENT) as usize;
        if let Some(part) = self.beside.get_mut(at..at + self.body.len()) {
            part.copy_from_slice(self.body);
        }
    }

    fn install(&mut self, _: bool) {
        if self.mutation != Some(Mutation::SkipInstall) {
            *self.data = *self.beside;
        }
    }

    fn clear(&mut self) {
        *self.data = FORGOTTEN;
        self.done.push(LockDeed::Dropped);
    }

    fn life(&self) -> Life {
        Life::from_word(self.data[LIFE])
    }

    fn send(&mut self, to: Dest, header: &Header, body: &Body) {
        let output = Output::new(to, *header);
        let sent = LockDeed::Sent(output, body.clone(), *self.data);
        self.done.push(sent);
    }

    fn inside(&mut self, seat: u16, entered: Entered, at_once: bool) {
        let entered = mutate::entered(entered, self.mutation);
        let inside = LockDeed::Inside(seat, entered, at_once, *self.data);
        self.done.push(inside);
    }

    fn send_away(&mut self, seat: u16) {
        self.done.push(LockDeed::Gone(seat));
    }

    fn loops(&self) -> bool {
        self.loops
    }

    fn defect(&self) -> Option<Defect> {
        self.broken
    }
}

impl Cell {
    /// Whether the node may write.
    pub fn owned(&self) -> bool {
        let right = self.lock.lock().map(|lock| lock.right());
        right == Some(Right::Modified)
    }

    /// A turn at the lock of a node, with the packet at hand and its words.
    pub fn turn<R>(
        &mut self,
        me: NodeId,
        packet: Option<(&Header, &[u64])>,
        (mutation, broken): (Option<Mutation>, Option<Defect>),
        section: impl FnOnce(&mut NodeLock<u16>, &mut Fx<'_>) -> R,
    ) -> (R, Vec<LockDeed>) {
        let before = (self.owned(), self.lock.entry().map(|entry| entry.2));
        let mut fx = Fx {
            data: &mut self.data,
            beside: &mut self.beside,
            body: packet.map_or(&[], |(_, words)| words),
            loops: self.loops,
            mutation,
            broken,
            done: Vec::new(),
        };
        if let Some((to, ack)) = packet.and_then(|p| mutate::ack_inside(p.0, me, mutation)) {
            fx.send(to, &ack, &Body::None);
        }
        let result = section(&mut self.lock, &mut fx);
        let mut done = fx.done;
        if before.1 != self.lock.entry().map(|entry| entry.2) {
            done.insert(0, LockDeed::Settled);
        }
        if !before.0 && self.owned() {
            done.insert(0, LockDeed::Gained(self.data));
        }
        (result, done)
    }
}

/// The locks of a node.
#[derive(Clone, Default)]
pub struct Locks {
    /// Each.
    pub cells: BTreeMap<Tag, Cell>,
    /// What was told of those of this home while an epoch begins.
    pub told: Told,
    /// Entries of its threads while another node waits.
    pub cohort: u8,
    /// Bytes that each protects.
    pub bytes: u32,
    /// See [`Cell::loops`].
    pub loops: bool,
    /// The node leaves the rack: homes are to take what it has.
    pub leaving: bool,
    /// What pauses are measured by.
    pub clock: u32,
}

impl<B: Form, X: Speaks<B>> Site<B, X> {
    /// A lock becomes known here; one of its own is made.
    pub fn open_lock(&mut self, tag: Tag) {
        let part = LockPart {
            node: self.id,
            epoch: self.view.epoch,
            switch: self.view.switch.is_some(),
            cohort: self.locks.cohort,
            implicit: false,
        };
        let (addr, len, loops) = (tag.0, self.locks.bytes, self.locks.loops);
        let regions = Regions::new(&[Region { addr, len }][..usize::from(len > 0)]);
        self.locks.cells.entry(tag).or_insert_with(|| Cell {
            lock: NodeLock::new(tag, regions.unwrap_or_default(), part, None),
            data: [0; 4],
            beside: [0; 4],
            loops,
        });
    }
}

impl<B: Form, X: Speaks<B>> LockHost for Site<B, X> {
    type Seat = u16;
    type Fx<'f> = Fx<'f>;

    fn lock<R>(
        &mut self,
        tag: Tag,
        section: impl FnOnce(&mut NodeLock<u16>, &mut Fx<'_>) -> R,
    ) -> Option<R> {
        let broken = (
            self.mutation.and_then(crate::world::Mutation::in_locks),
            self.defect(),
        );
        let came = self.memory.came.as_ref();
        let came = came.map(|(header, body)| (header, B::words(body)));
        let cell = self.locks.cells.get_mut(&tag)?;
        let (result, done) = cell.turn(self.id, came, broken, section);
        cell.lock.await_news(|| self.locks.clock);
        self.deeds.extend(done.into_iter().map(|deed| match deed {
            LockDeed::Sent(output, Body::None, _) => Deed::Sent(output, Load::Nothing),
            LockDeed::Sent(output, Body::Regions, words) => Deed::Sent(output, Load::Words(words)),
            LockDeed::Sent(output, Body::Queue(queue), _) => {
                Deed::Sent(output, Load::Records(queue.records().collect()))
            }
            deed => Deed::Lock(tag, deed),
        }));
        Some(result)
    }

    fn each_lock(&mut self, mut section: impl FnMut(&mut NodeLock<u16>, &mut Fx<'_>)) {
        let tags: Vec<Tag> = self.locks.cells.keys().copied().collect();
        for tag in tags {
            LockHost::lock(self, tag, &mut section);
        }
    }

    fn each_due(&mut self, mut section: impl FnMut(&mut NodeLock<u16>, &mut Fx<'_>)) {
        self.locks.clock += A_TICK;
        let (clock, leaving) = (self.locks.clock, self.locks.leaving);
        if self.mutation == Some(crate::world::Mutation::Lock(Mutation::NeverRetry)) {
            return;
        }
        self.each_lock(|lock, fx| {
            if lock.due(|| clock) {
                section(lock, fx);
            }
            if leaving {
                lock.get_rid(fx);
            }
        });
    }

    fn told<R>(&mut self, section: impl FnOnce(&mut Told) -> R) -> R {
        section(&mut self.locks.told)
    }

    fn is_current(&self, tag: Tag) -> bool {
        self.view.incarnation_of(tag.home()) == Some(B::incarnation(tag))
    }

    fn remove(&mut self, tag: Tag) {
        self.locks.cells.remove(&tag);
    }
}
