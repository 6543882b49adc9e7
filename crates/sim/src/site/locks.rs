//! Locks at a node: the engine's, with a few words in place of the bytes that they protect.

use super::{Deed, Form, Load, Site, Speaks, mutate};
use crate::gcp;
use crate::world::Mutation;
use rackmem_proto::Output;
use rackmem_proto::engine::{AtHome, Defect, Host, LockFx, LockHost, LockPart, NodeLock, Told};
use rackmem_proto::gcp::{Body, Entered, Known, Life, Region, Regions, Right, SEGMENT};
use rackmem_proto::wire::{Dest, Header, Tag};
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

/// What has come of a turn at a lock beside packets, in order; with the data as it was then.
#[derive(Clone, Debug)]
pub enum LockDeed {
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
pub struct Cell<B> {
    /// The shipped lock.
    pub lock: NodeLock<u16>,
    /// What it acts by.
    pub fx: Fx<B>,
}

/// What a turn acts by: what the lock protects, and the packet at hand.
#[derive(Clone)]
pub struct Fx<B> {
    /// What the lock protects, as the node has it.
    pub data: Words,
    /// What has come for it beside.
    pub beside: Words,
    loops: bool,
    tag: Tag,
    body: Vec<u64>,
    broken: (Option<gcp::Mutation>, Option<Defect>),
    /// The node's, during a turn.
    pub(crate) deeds: Vec<Deed<B>>,
}

impl<B> Fx<B> {
    fn done(&mut self, deed: LockDeed) {
        self.deeds.push(Deed::Lock(self.tag, deed));
    }
}

impl<B> LockFx for Fx<B> {
    type Seat = u16;

    fn store(&mut self, header: &Header) {
        let at = (header.offset / SEGMENT) as usize;
        if let Some(part) = self.beside.get_mut(at..at + self.body.len()) {
            part.copy_from_slice(&self.body);
        }
    }

    fn install(&mut self, _: bool) {
        if self.broken.0 != Some(gcp::Mutation::SkipInstall) {
            self.data = self.beside;
        }
    }

    fn clear(&mut self) {
        self.data = FORGOTTEN;
        self.done(LockDeed::Dropped);
    }

    fn life(&self) -> Life {
        Life::from_word(self.data[LIFE])
    }

    fn send(&mut self, to: Dest, header: &Header, body: &Body) {
        let load = match body {
            Body::None => Load::Nothing,
            Body::Regions => Load::Words(self.data),
            Body::Queue(queue) => Load::Records(queue.records().collect()),
        };
        self.deeds.push(Deed::Sent(Output::new(to, *header), load));
    }

    fn inside(&mut self, seat: u16, entered: Entered, at_once: bool) {
        let entered = mutate::entered(entered, self.broken.0);
        self.done(LockDeed::Inside(seat, entered, at_once, self.data));
    }

    fn send_away(&mut self, seat: u16) {
        self.done(LockDeed::Gone(seat));
    }

    fn loops(&self) -> bool {
        self.loops
    }

    fn defect(&self) -> Option<Defect> {
        self.broken.1
    }
}

impl<B: Clone> Cell<B> {
    /// Whether the node may write.
    pub fn owned(&self) -> bool {
        let right = self.lock.lock().map(|lock| lock.right());
        right == Some(Right::Modified)
    }

    /// The epoch of its entry, at its home.
    fn settled(&self) -> Option<u32> {
        self.lock.entry().map(|entry| entry.2)
    }
}

/// The locks of a node.
#[derive(Clone)]
pub struct Locks<B> {
    /// Each. Boxed: explorers copy nodes with one lock all day.
    pub cells: BTreeMap<Tag, Box<Cell<B>>>,
    /// What was told of those of this home while an epoch begins.
    pub told: Told,
    /// Entries of its threads while another node waits.
    pub cohort: u8,
    /// Bytes that each protects.
    pub bytes: u32,
    /// Whether what a lock sends to its own node is taken in the same step. Otherwise it travels,
    /// may be lost and overtaken: whatever the library does is one of these orders.
    pub loops: bool,
    /// The node leaves the rack: homes are to take what it has.
    pub leaving: bool,
    /// What pauses are measured by.
    pub clock: u32,
}

impl<B: Form, X: Speaks<B>> Site<B, X> {
    /// A lock becomes known here that protects this; one of its own is made. `known`: what was kept
    /// of it.
    pub fn open_lock(&mut self, tag: Tag, data: Words, known: Option<Known>) {
        let part = LockPart {
            node: self.id,
            epoch: self.view.epoch,
            switch: self.view.switch.is_some(),
            cohort: self.locks.cohort,
            implicit: false,
            home: AtHome::of(self.id, tag),
        };
        let (addr, len, loops) = (tag.0, self.locks.bytes, self.locks.loops);
        let regions = Regions::new(&[Region { addr, len }][..usize::from(len > 0)]);
        let cells = self.locks.cells.entry(tag);
        cells.or_insert_with(|| {
            let lock = NodeLock::new(tag, regions.unwrap_or_default(), part, known);
            let fx = Fx {
                data,
                beside: data,
                loops,
                tag,
                body: Vec::new(),
                broken: (None, None),
                deeds: Vec::new(),
            };
            Box::new(Cell { lock, fx })
        });
    }
}

impl<B: Form, X: Speaks<B>> LockHost for Site<B, X> {
    type Seat = u16;
    type Fx<'f> = Fx<B>;

    fn lock<R>(
        &mut self,
        tag: Tag,
        section: impl FnOnce(&mut NodeLock<u16>, &mut Fx<B>) -> R,
    ) -> Option<R> {
        let broken = (self.mutation.and_then(Mutation::in_locks), self.defect());
        let cell = self.locks.cells.get_mut(&tag)?;
        let (owned, settled, begun) = (cell.owned(), cell.settled(), self.deeds.len());
        let Cell { lock, fx } = &mut **cell;
        (fx.broken, fx.deeds) = (broken, std::mem::take(&mut self.deeds));
        if let Some((header, body)) = &self.memory.came {
            fx.body = B::words(body).to_vec();
            if let Some((to, ack)) = mutate::ack_inside(header, self.id, broken.0) {
                fx.send(to, &ack, &Body::None);
            }
        }
        let result = section(lock, fx);
        lock.await_news(|| self.locks.clock);
        (fx.body, self.deeds) = (Vec::new(), std::mem::take(&mut fx.deeds));
        // What follows from these comes behind them.
        let gained = (!owned && cell.owned()).then_some(LockDeed::Gained(cell.fx.data));
        let settled = (settled != cell.settled()).then_some(LockDeed::Settled);
        let news = gained.into_iter().chain(settled);
        let news = news.map(|deed| Deed::Lock(tag, deed));
        self.deeds.splice(begun..begun, news);
        Some(result)
    }

    fn each_lock(&mut self, mut section: impl FnMut(&mut NodeLock<u16>, &mut Fx<B>)) {
        for tag in Vec::from_iter(self.locks.cells.keys().copied()) {
            LockHost::lock(self, tag, &mut section);
        }
    }

    fn each_due(&mut self, mut section: impl FnMut(&mut NodeLock<u16>, &mut Fx<B>)) {
        self.locks.clock += A_TICK;
        let (clock, leaving) = (self.locks.clock, self.locks.leaving);
        if self.mutation == Some(Mutation::Lock(gcp::Mutation::NeverRetry)) {
            return;
        }
        let cells = self.locks.cells.iter_mut();
        let due = cells.map(|(tag, cell)| (*tag, cell.lock.due(|| clock)));
        let due: Vec<(Tag, bool)> = due.filter(|(_, due)| *due || leaving).collect();
        for (tag, due) in due {
            LockHost::lock(self, tag, |lock, fx| {
                if due {
                    section(lock, fx);
                }
                if leaving {
                    lock.get_rid(fx);
                }
            });
        }
    }

    fn told<R>(&mut self, section: impl FnOnce(&mut Told) -> R) -> R {
        section(&mut self.locks.told)
    }

    fn is_current(&self, tag: Tag) -> bool {
        // What a group keeps is of no incarnation.
        let own = tag.home().is_own();
        let now = self.view.incarnation_of(tag.home());
        now.is_some_and(|now| !own || now == B::incarnation(tag))
    }

    fn remove(&mut self, tag: Tag) {
        self.locks.cells.remove(&tag);
    }
}
