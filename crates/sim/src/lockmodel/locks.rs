//! A blade's locks: hosts of the engine's [`NodeLock`], as the library's are, without bytes.

use super::params::Scheme;
use super::{BLOCK, EPOCH};
use rackmem_proto::Outputs;
use rackmem_proto::engine::{LockFx, LockPart, NodeLock};
use rackmem_proto::gcp::{
    Access, BladeCounters, Body, Entered, Lock, Region, Regions, Right, Send,
};
use rackmem_proto::wire::{Dest, Header, Kind, NodeId, Record, Tag};

/// Hand-overs inside a blade while another one waits: the library's.
const COHORT: u8 = 16;
/// What follows, in order.
pub enum Follows {
    /// A packet is sent.
    Send(Send),
    /// A thread is inside.
    Inside(Inside),
}

/// A thread that is let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inside {
    /// Which.
    pub thread: u16,
    /// Whether another blade or the memory blade gave the lock; otherwise it was here.
    pub remote: bool,
    /// Requests to the directory since the last thread that was let in so.
    pub transactions: u32,
}

/// A lock of this blade.
struct Cell {
    lock: NodeLock<u16>,
    /// Requests to the directory since a thread was let in by a packet.
    transactions: u32,
    /// It has been used here; locks that do not stay are not used again until they have come anew.
    worn: bool,
}

/// What a lock acts by: nothing has bytes here.
struct Fx<'a> {
    me: NodeId,
    /// A packet has come.
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
        self.follows.push(Follows::Send(Send {
            to,
            header: *header,
            body: body.clone(),
        }));
    }

    fn inside(&mut self, thread: u16, _: Entered, at_once: bool) {
        let remote = self.packet && !at_once;
        let transactions = match remote {
            true => std::mem::take(self.transactions),
            false => 0,
        };
        self.follows.push(Follows::Inside(Inside {
            thread,
            remote,
            transactions,
        }));
    }

    fn send_away(&mut self, _: u16) {}

    /// What a blade sends to itself takes time like the rest.
    fn loops(&self) -> bool {
        false
    }
}

/// See the module.
pub struct Locks {
    me: NodeId,
    /// Whether locks stay where they were used.
    stay: bool,
    cells: Box<[Cell]>,
}

/// The tag of a lock.
pub fn tag(home: NodeId, lock: u32) -> Tag {
    super::memory::tag(home, lock)
}

/// What a lock protects, if it brings that along.
fn regions(lock: u32, combined: bool) -> Regions {
    let region = Region {
        addr: u64::from(lock) * u64::from(BLOCK),
        len: BLOCK,
    };
    let list = if combined { &[region][..] } else { &[] };
    Regions::new(list).unwrap_or_default()
}

impl Locks {
    /// So many locks; all are at the memory blade.
    pub fn new(me: NodeId, home: NodeId, locks: u32, scheme: Scheme, switch: bool) -> Self {
        let part = LockPart {
            node: me,
            epoch: EPOCH,
            switch,
            cohort: COHORT,
            implicit: false,
        };
        let cell = |lock| Cell {
            lock: NodeLock::new(
                tag(home, lock),
                regions(lock, scheme.combines()),
                part,
                None,
            ),
            transactions: 0,
            worn: false,
        };
        Locks {
            me,
            stay: scheme != Scheme::Evicted,
            cells: (0..locks).map(cell).collect(),
        }
    }

    /// Before a run: the switch takes over what it has room for.
    pub fn place(&mut self, mut switch: impl FnMut(&Header) -> Outputs) {
        for lock in 0..self.cells.len() as u32 {
            let mut asks = Vec::new();
            self.act(lock, false, &mut asks, |lock, fx| lock.place_at_switch(fx));
            for ask in asks {
                let Follows::Send(ask) = ask else { continue };
                for answer in switch(&ask.header).iter() {
                    self.packet(&answer.header, 0, &[], &mut Vec::new());
                }
            }
        }
    }

    fn lock(&self, lock: u32) -> Option<&Lock> {
        self.cells.get(lock as usize)?.lock.lock()
    }

    /// Bytes that a lock brings along.
    pub fn bytes(&self, tag: Tag) -> u32 {
        let lock = self.lock(super::memory::block(tag));
        lock.map_or(0, Lock::protects)
    }

    /// Whether a thread may enter at once, and tell nobody: the lock is here, free, and nobody else wants it.
    pub fn at_hand(&self, lock: u32, access: Access) -> bool {
        let cell = &self.cells[lock as usize];
        let releases = self.lock(lock).is_none_or(|l| l.releasing().is_some());
        !cell.worn && !releases && cell.lock.at_hand(access)
    }

    /// Whether a lock that does not stay has been used here, and is still here.
    pub fn is_worn(&self, lock: u32) -> bool {
        self.cells[lock as usize].worn
    }

    /// What it has cost.
    pub fn counters(&self) -> BladeCounters {
        let counters = self.cells.iter().map(|cell| cell.lock.counters());
        counters.fold(BladeCounters::default(), BladeCounters::and)
    }

    /// Whether leaving concerns another blade.
    pub fn is_waited_for(&self, lock: u32) -> bool {
        self.lock(lock).is_some_and(Lock::contended)
    }

    /// A thread wants to enter.
    pub fn enter(&mut self, lock: u32, thread: u16, access: Access, follows: &mut Vec<Follows>) {
        self.act(lock, false, follows, |lock, fx| {
            lock.enter(thread, access, fx);
        });
    }

    /// A thread leaves; whoever is next here enters with it, as often as the bound of a cohort allows.
    pub fn leave(&mut self, lock: u32, access: Access, follows: &mut Vec<Follows>) {
        self.cells[lock as usize].worn = !self.stay;
        self.act(lock, false, follows, |lock, fx| lock.leave(access, fx));
    }

    /// The memory blade takes a lock back as soon as nobody is inside.
    pub fn take_back(&mut self, lock: u32, follows: &mut Vec<Follows>) {
        let here = self
            .lock(lock)
            .is_some_and(|l| l.right() == Right::Modified);
        if !here && self.cells[lock as usize].lock.waiting() == 0 {
            self.act(lock, false, follows, |lock, fx| {
                lock.bring(Access::Write, fx);
            });
        }
    }

    /// A packet has come.
    pub fn packet(
        &mut self,
        header: &Header,
        len: u32,
        records: &[Record],
        follows: &mut Vec<Follows>,
    ) {
        let lock = super::memory::block(header.tag);
        self.act(lock, true, follows, |lock, fx| {
            lock.packet(header, (len, records), fx);
        });
    }

    fn act(
        &mut self,
        lock: u32,
        packet: bool,
        follows: &mut Vec<Follows>,
        act: impl FnOnce(&mut NodeLock<u16>, &mut Fx<'_>),
    ) {
        let Some(cell) = self.cells.get_mut(lock as usize) else {
            return;
        };
        let mut fx = Fx {
            me: self.me,
            packet,
            transactions: &mut cell.transactions,
            follows,
        };
        act(&mut cell.lock, &mut fx);
        let right = cell.lock.lock().map_or(Right::None, Lock::right);
        cell.worn &= right != Right::None;
    }
}
