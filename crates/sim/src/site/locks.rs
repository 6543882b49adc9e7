//! Locks at a node: the engine's, with a few words in place of the bytes that they protect.

use super::{Deed, Form, Site, Speaks};
use crate::gcp::Mutation;
use rackmem_proto::engine::{Defect, Gcp, Host, LockCommand, LockFx, LockHost};
use rackmem_proto::engine::{LockPart, NodeLock, Protocol, Told};
use rackmem_proto::gcp::{Body, Entered, Life, LockPlace, Region, Regions, Right, SEGMENT};
use rackmem_proto::wire::{Dest, Header, Kind, NodeId, Reason, Tag};
use std::collections::BTreeMap;

/// Words of what a lock protects, one a segment, so that it can be torn.
pub const WORDS: usize = 4;

/// What a lock protects, in a simulation's words.
pub trait Words: Copy {
    /// One of them.
    type Word: Copy;
    /// Where the data was, and is not needed any more: no writer leaves this.
    const FORGOTTEN: Self;
    /// Whether what a lock sends to its own node is taken in the same step. Otherwise it travels,
    /// may be lost and overtaken: whatever the library does is one of these orders.
    const LOOPS: bool;

    /// All of them.
    fn words(&mut self) -> &mut [Self::Word];
    /// Which lock of its place it is.
    fn life(&self) -> Life {
        Life::NONE
    }
}

impl Words for [u64; WORDS] {
    type Word = u64;
    const FORGOTTEN: Self = [u64::MAX; WORDS];
    const LOOPS: bool = true;

    fn words(&mut self) -> &mut [u64] {
        self
    }
}

/// What has come of a turn at a lock, in order; with the data as it was then.
#[derive(Clone, Debug)]
pub enum LockDeed<W> {
    /// A packet is sent.
    Sent(Dest, Header, Body, W),
    /// The thread of this seat is inside; at once, or by a packet.
    Inside(u16, Entered, bool, W),
    /// The thread of this seat waits in vain: the lock is gone with its home.
    Gone(u16),
    /// The data was dropped.
    Dropped,
    /// The node may write, and did not before.
    Gained(W),
    /// Its home has made its entry anew.
    Settled,
}

/// A lock at a node, and what it protects there.
#[derive(Clone)]
pub struct Cell<W> {
    /// The shipped lock.
    pub lock: NodeLock<u16>,
    /// What it protects, as the node has it.
    pub data: W,
    /// What has come for it beside.
    pub beside: W,
}

/// What a turn acts by.
pub struct Fx<'a, W: Words> {
    data: &'a mut W,
    beside: &'a mut W,
    body: &'a [W::Word],
    mutation: Option<Mutation>,
    broken: Option<Defect>,
    done: Vec<LockDeed<W>>,
}

impl<W: Words> LockFx for Fx<'_, W> {
    type Seat = u16;

    fn store(&mut self, header: &Header) {
        let at = (header.offset / SEGMENT) as usize;
        if let Some(part) = self.beside.words().get_mut(at..at + self.body.len()) {
            part.copy_from_slice(self.body);
        }
    }

    fn install(&mut self, _: bool) {
        if self.mutation != Some(Mutation::SkipInstall) {
            *self.data = *self.beside;
        }
    }

    fn clear(&mut self) {
        *self.data = W::FORGOTTEN;
        self.done.push(LockDeed::Dropped);
    }

    fn life(&self) -> Life {
        self.data.life()
    }

    fn send(&mut self, to: Dest, header: &Header, body: &Body) {
        let sent = LockDeed::Sent(to, *header, body.clone(), *self.data);
        self.done.push(sent);
    }

    fn inside(&mut self, seat: u16, mut entered: Entered, at_once: bool) {
        match self.mutation {
            Some(Mutation::ForgetDeath) => entered.reason = Reason::None,
            Some(Mutation::TokenRestarts) => entered.token &= (1 << 41) - 1,
            _ => {}
        }
        let inside = LockDeed::Inside(seat, entered, at_once, *self.data);
        self.done.push(inside);
    }

    fn send_away(&mut self, seat: u16) {
        self.done.push(LockDeed::Gone(seat));
    }

    fn loops(&self) -> bool {
        W::LOOPS
    }

    fn defect(&self) -> Option<Defect> {
        self.broken
    }
}

impl<W: Words> Cell<W> {
    /// A lock with this data, from what the node remembers of it.
    pub fn new(lock: NodeLock<u16>, data: W) -> Self {
        Cell {
            lock,
            data,
            beside: data,
        }
    }

    /// Whether the node may write.
    pub fn owned(&self) -> bool {
        let right = self.lock.lock().map(|lock| lock.right());
        right == Some(Right::Modified)
    }

    /// A turn at the lock of a node, with the packet at hand and its words.
    pub fn turn<R>(
        &mut self,
        me: NodeId,
        packet: Option<(&Header, &[W::Word])>,
        (mutation, broken): (Option<Mutation>, Option<Defect>),
        section: impl FnOnce(&mut NodeLock<u16>, &mut Fx<'_, W>) -> R,
    ) -> (R, Vec<LockDeed<W>>) {
        let (owned, epoch) = (self.owned(), self.lock.entry().map(|entry| entry.2));
        let mut fx = Fx {
            data: &mut self.data,
            beside: &mut self.beside,
            body: packet.map_or(&[], |(_, words)| words),
            mutation,
            broken,
            done: Vec::new(),
        };
        // A defect: a sharer acknowledges at once, with a reader inside.
        if let Some((header, _)) = packet
            && mutation == Some(Mutation::AckInside)
            && header.kind == Kind::Invalidate
            && header.requester.node != me
        {
            let mut ack = header.answer(Kind::InvAck, me);
            ack.flags = Default::default();
            fx.send(Dest::Agent(header.requester.node), &ack, &Body::None);
        }
        let result = section(&mut self.lock, &mut fx);
        let mut done = fx.done;
        let settled = epoch != self.lock.entry().map(|entry| entry.2);
        let gained = !owned && self.owned();
        let first = gained.then_some(LockDeed::Gained(self.data)).into_iter();
        let first = first.chain(settled.then_some(LockDeed::Settled));
        done.splice(0..0, first);
        (result, done)
    }
}

/// Entries of a node's threads while another node waits.
const COHORT: u8 = 2;

/// The locks of a node.
#[derive(Clone)]
pub struct Locks {
    me: NodeId,
    cells: BTreeMap<Tag, Cell<[u64; WORDS]>>,
    told: Told,
    /// The node leaves the rack: homes are to take what it has.
    pub leaving: bool,
}

impl Locks {
    /// None yet.
    pub fn new(me: NodeId) -> Self {
        Locks {
            me,
            cells: BTreeMap::new(),
            told: Told::default(),
            leaving: false,
        }
    }

    /// A lock becomes known here in an epoch, with a switch or without; one of its own is made.
    pub fn open(&mut self, tag: Tag, (epoch, switch): (u32, bool)) {
        let region = Region {
            addr: tag.0,
            len: WORDS as u32 * SEGMENT,
        };
        let part = LockPart {
            node: self.me,
            epoch,
            switch,
            cohort: COHORT,
            implicit: false,
        };
        let regions = Regions::new(&[region]).unwrap_or_default();
        let cell = || Cell::new(NodeLock::new(tag, regions, part, None), [0; WORDS]);
        self.cells.entry(tag).or_insert_with(cell);
    }

    /// One of them.
    pub fn get(&mut self, tag: Tag) -> Option<&mut Cell<[u64; WORDS]>> {
        self.cells.get_mut(&tag)
    }

    /// Whether this node is not needed for any lock of another home.
    pub fn are_home(&self) -> bool {
        let cells = self.cells.values();
        let mut abroad = cells.filter(|cell| !cell.lock.is_home());
        abroad.all(|cell| cell.lock.forgettable(false).is_some())
    }

    /// The locks that this node may write.
    pub fn owned(&self) -> impl Iterator<Item = Tag> {
        let owned = self.cells.iter().filter(|(_, cell)| cell.owned());
        owned.map(|(tag, _)| *tag)
    }

    /// Whether a lock of this home waits for the switch to take it.
    pub fn placing(&self) -> bool {
        let mut entries = self.cells.values().filter_map(|cell| cell.lock.entry());
        entries.any(|(_, place, _)| place == LockPlace::Placing)
    }
}

impl<B: Form, X: Speaks<B>> Site<B, X> {
    /// The defect of locks' host that is in.
    fn lock_mutation(&self) -> Option<Mutation> {
        match self.mutation {
            Some(crate::world::Mutation::Lock(defect)) => Some(defect),
            _ => None,
        }
    }

    /// A thread of this node does something with a lock.
    pub fn lock_command(&mut self, tag: Tag, seat: u16, command: LockCommand<u16>) {
        Gcp::command(self, seat as u8, (tag, command));
    }

    /// Whether an address is memory of its home in the incarnation that is a member.
    pub fn knows(&self, tag: Tag) -> bool {
        self.view.incarnation_of(tag.home()) == Some(B::incarnation(tag))
    }
}

impl<B: Form, X: Speaks<B>> LockHost for Site<B, X> {
    type Seat = u16;
    type Fx<'f> = Fx<'f, [u64; WORDS]>;

    fn lock<R>(
        &mut self,
        tag: Tag,
        section: impl FnOnce(&mut NodeLock<u16>, &mut Self::Fx<'_>) -> R,
    ) -> Option<R> {
        let broken = (self.lock_mutation(), self.defect());
        let came = self.came.as_ref();
        let came = came.map(|(header, body)| (header, B::words(body)));
        let cell = self.locks.cells.get_mut(&tag)?;
        let (result, done) = cell.turn(self.id, came, broken, section);
        let done = done.into_iter().map(|deed| Deed::Lock(tag, deed));
        self.deeds.extend(done);
        Some(result)
    }

    fn each_lock(&mut self, mut section: impl FnMut(&mut NodeLock<u16>, &mut Self::Fx<'_>)) {
        let tags: Vec<Tag> = self.locks.cells.keys().copied().collect();
        for tag in tags {
            LockHost::lock(self, tag, &mut section);
        }
    }

    fn each_due(&mut self, mut section: impl FnMut(&mut NodeLock<u16>, &mut Self::Fx<'_>)) {
        let leaving = self.locks.leaving;
        if self.lock_mutation() != Some(Mutation::NeverRetry) {
            self.each_lock(|lock, fx| {
                section(lock, fx);
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
        self.knows(tag)
    }

    fn remove(&mut self, tag: Tag) {
        self.locks.cells.remove(&tag);
    }
}
