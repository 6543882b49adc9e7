//! A blade's locks: the host of its [`Blade`], as the library's is. One thread at a time waits in the blade, a writer only
//! when nobody of its blade is inside; the others queue in front of it, and hand over among themselves.

use super::params::Scheme;
use super::{BLOCK, EPOCH};
use rackmem_proto::gcp::{
    Access, Blade, BladeConfig, BladeCounters, Event, Lock, Region, Regions, Right, Send, Steps,
};
use rackmem_proto::wire::{Header, NodeId, Record, Tag};
use std::collections::VecDeque;

/// Hand-overs inside a blade while another one waits: the library's.
const COHORT: u8 = 16;
/// Whoever wants the lock only to have it here: the memory blade, for locks that do not stay where they were used.
const NOBODY: u16 = u16::MAX;

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

#[derive(Clone, Copy)]
struct Waiting {
    thread: u16,
    access: Access,
}

#[derive(Clone, Default)]
struct Seats {
    /// Who waits in the blade.
    first: Option<Waiting>,
    /// As many at most as the node has threads.
    queue: VecDeque<Waiting>,
    transactions: u32,
    /// It has been used here; locks that do not stay are not used again until they have come anew.
    worn: bool,
}

/// See the module.
pub struct Locks {
    home: NodeId,
    blade: Blade,
    /// Whether locks stay where they were used.
    stay: bool,
    seats: Box<[Seats]>,
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
        let mut blade = Blade::new(BladeConfig {
            node: me,
            epoch: EPOCH,
            switch,
            cohort: COHORT,
            locks: locks as usize,
        });
        for lock in 0..locks {
            let (tag, regions) = (tag(home, lock), regions(lock, scheme.combines()));
            match me == home {
                true => blade.create(tag, regions),
                false => blade.open(tag, regions),
            };
        }
        Locks {
            home,
            blade,
            stay: scheme != Scheme::Evicted,
            seats: vec![Seats::default(); locks as usize].into(),
        }
    }

    fn lock(&self, lock: u32) -> Option<&Lock> {
        self.blade.lock(tag(self.home, lock))
    }

    /// Bytes that a lock brings along.
    pub fn bytes(&self, tag: Tag) -> u32 {
        self.blade.lock(tag).map_or(0, Lock::protects)
    }

    /// Whether a thread may wait in the blade: writers are sent there when nobody of this node is inside.
    fn may_go(&self, lock: u32, access: Access, leaves: Option<Access>) -> bool {
        let (mut readers, mut writer) = self.lock(lock).map_or((0, false), Lock::inside);
        match leaves {
            Some(Access::Read) => readers = readers.saturating_sub(1),
            Some(Access::Write) => writer = false,
            None => {}
        }
        let free = self.seats[lock as usize].first.is_none();
        free && !writer && (access == Access::Read || readers == 0)
    }

    /// Whether a thread may enter at once, and tell nobody: the lock is here, free, and nobody else wants it.
    pub fn at_hand(&self, lock: u32, access: Access) -> bool {
        let here = self
            .lock(lock)
            .is_some_and(|l| l.right().allows(access) && !l.contended() && l.releasing().is_none());
        let seats = &self.seats[lock as usize];
        here && !seats.worn && seats.queue.is_empty() && self.may_go(lock, access, None)
    }

    /// Whether a lock that does not stay has been used here, and is still here.
    pub fn is_worn(&self, lock: u32) -> bool {
        self.seats[lock as usize].worn
    }

    /// What it has cost.
    pub fn counters(&self) -> BladeCounters {
        self.blade.counters()
    }

    /// Whether leaving concerns another blade.
    pub fn is_waited_for(&self, lock: u32) -> bool {
        self.lock(lock).is_some_and(Lock::contended)
    }

    /// A thread wants to enter.
    pub fn enter(&mut self, lock: u32, thread: u16, access: Access, follows: &mut Vec<Follows>) {
        let waiting = Waiting { thread, access };
        self.seats[lock as usize].queue.push_back(waiting);
        while self.send_next(lock, follows) {}
    }

    /// A thread leaves; whoever is next here enters with it, as often as the bound of a cohort allows.
    pub fn leave(&mut self, lock: u32, access: Access, follows: &mut Vec<Follows>) {
        let seats = &mut self.seats[lock as usize];
        seats.worn = !self.stay;
        let front = seats.queue.front().map(|waiting| waiting.access);
        let next = front.filter(|next| self.may_go(lock, *next, Some(access)));
        if next.is_some() {
            let seats = &mut self.seats[lock as usize];
            seats.first = seats.queue.pop_front();
        }
        let mut steps = Steps::new();
        let entered = self.count(lock, |blade, tag| {
            blade.leave(tag, access, next, &mut steps)
        });
        if entered.is_some() {
            self.let_in(lock, false, follows);
        }
        self.run(lock, steps, false, follows);
        while self.send_next(lock, follows) {}
    }

    /// The memory blade takes a lock back as soon as nobody is inside.
    pub fn take_back(&mut self, lock: u32, follows: &mut Vec<Follows>) {
        let here = self
            .lock(lock)
            .is_some_and(|l| l.right() == Right::Modified);
        let seats = &self.seats[lock as usize];
        if !here && seats.first.is_none() && seats.queue.is_empty() {
            self.enter(lock, NOBODY, Access::Write, follows);
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
        let mut steps = Steps::new();
        self.count(lock, |blade, _| {
            blade.handle(header, len, records, &mut steps);
        });
        self.run(lock, steps, true, follows);
        while self.send_next(lock, follows) {}
    }

    fn send_next(&mut self, lock: u32, follows: &mut Vec<Follows>) -> bool {
        let front = self.seats[lock as usize].queue.front();
        let front = front.map(|waiting| waiting.access);
        let Some(access) = front.filter(|access| self.may_go(lock, *access, None)) else {
            return false;
        };
        let seats = &mut self.seats[lock as usize];
        seats.first = seats.queue.pop_front();
        let mut steps = Steps::new();
        let entered = self.count(lock, |blade, tag| blade.enter(tag, access, &mut steps).0);
        if entered.is_some() {
            self.let_in(lock, false, follows);
        }
        self.run(lock, steps, false, follows);
        true
    }

    fn let_in(&mut self, lock: u32, remote: bool, follows: &mut Vec<Follows>) {
        let seats = &mut self.seats[lock as usize];
        let Some(Waiting { thread, access }) = seats.first.take() else {
            return;
        };
        if thread == NOBODY {
            return self.leave(lock, access, follows);
        }
        let transactions = match remote {
            true => std::mem::take(&mut seats.transactions),
            false => 0,
        };
        follows.push(Follows::Inside(Inside {
            thread,
            remote,
            transactions,
        }));
    }

    /// Does something with a lock, and counts what it asks the directory for.
    fn count<T>(&mut self, lock: u32, act: impl FnOnce(&mut Blade, Tag) -> T) -> T {
        let before = self.blade.counters().requests;
        let done = act(&mut self.blade, tag(self.home, lock));
        let asked = self.blade.counters().requests - before;
        let gone = self.lock(lock).is_none_or(|l| l.right() == Right::None);
        if let Some(seats) = self.seats.get_mut(lock as usize) {
            seats.transactions += asked as u32;
            seats.worn &= !gone;
        }
        done
    }

    fn run(&mut self, lock: u32, steps: Steps, remote: bool, follows: &mut Vec<Follows>) {
        for step in steps {
            match step {
                Event::Store | Event::Install | Event::Drop => {}
                Event::Enter(_) => self.let_in(lock, remote, follows),
                Event::Send(send) => follows.push(Follows::Send(send)),
            }
        }
    }
}
