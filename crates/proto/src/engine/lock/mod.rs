//! One lock at one node: the node's side of it, its directory entry where the node is its home,
//! and the threads of the node that wait for it.
//!
//! This is a section: what a host's lock covers, and what explorers take as one step. One thread at
//! a time waits in the blade, and a writer only when no thread of the node is inside; the others
//! stand in line in front of it, and hand over among themselves as often as the bound of a cohort
//! allows. What a lock sends to its own node is taken in the same section where the host says so
//! ([`LockFx::loops`]).
//!
//! | question | answered in |
//! |---|---|
//! | which thread is inside, and which is next? | `threads.rs`, `line.rs` |
//! | what follows from a packet or a step? | `acting.rs` |
//! | what does a node keep of a lock, and how does it come home? | `home.rs` |
//! | what does an epoch do to it? | `epoch.rs` |

mod acting;
mod epoch;
mod home;
mod line;
mod threads;

pub use epoch::Told;
pub use home::ended_life;

use self::acting::Turn;
use self::line::Line;
use super::Defect;
use crate::call::Pace;
use crate::gcp::{
    Blade, BladeConfig, BladeCounters, Body, Entered, Entry, Known, Life, Lock, LockDirectory,
    LockPlace, Regions, Steps,
};
use crate::wire::{Dest, Header, NodeId, Record, Tag};
use alloc::boxed::Box;
use core::hash::{Hash, Hasher};

/// What a lock needs of its host: the bytes that it protects, a port, and threads to let in. These
/// come in the order in which they are decided.
pub trait LockFx {
    /// What names a thread that waits.
    type Seat;

    /// Keeps the body of the packet at hand beside what the lock protects, at its `offset`:
    /// it is not current yet.
    fn store(&mut self, header: &Header);
    /// What is kept beside takes the place of what there was. `inside`:
    /// threads are inside who read the same bytes there.
    fn install(&mut self, inside: bool);
    /// What the lock protects is not needed here any more.
    fn clear(&mut self);
    /// Which lock of this place it is, as the bytes say.
    fn life(&self) -> Life {
        Life::NONE
    }
    /// Sends a packet; what the lock protects, as it is now.
    fn send(&mut self, to: Dest, header: &Header, body: &Body);
    /// A thread that waited is inside. `at_once`: without a packet.
    fn inside(&mut self, seat: Self::Seat, entered: Entered, at_once: bool);
    /// A thread waits in vain: the lock's home is no more.
    fn send_away(&mut self, seat: Self::Seat);
    /// Whether what a lock sends to its own node is taken in the same step. Otherwise it is sent
    /// like everything else: an explorer sees more orders then.
    fn loops(&self) -> bool {
        true
    }
    /// The rule that is broken on purpose.
    fn defect(&self) -> Option<Defect> {
        None
    }
}

/// See the module. `S` names a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeLock<S> {
    tag: Tag,
    blade: Blade,
    directory: Option<Box<LockDirectory>>,
    line: Line<S>,
    /// No program makes it: its home does when it first hears of it, from the requests for it,
    /// which say how long it is.
    implicit: bool,
    /// Its home is no more.
    over: bool,
    /// Its home has it, and does not need this node for it.
    taken_home: bool,
    /// When to ask again for what has not come.
    pace: Pace,
}

/// Whether a node serves a lock's home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtHome {
    /// It does not.
    No,
    /// It does, of a group's home, and has yet to hear from all others in this epoch.
    Settling,
    /// It does: a lock that it does not know is new, or at rest.
    Yes,
}

impl AtHome {
    /// Where each node serves its own memory, and nothing else.
    pub fn of(node: NodeId, tag: Tag) -> Self {
        match tag.home().is_of(node) {
            true => AtHome::Yes,
            false => AtHome::No,
        }
    }
}

/// How a node takes part in a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The node.
    pub node: NodeId,
    /// The epoch.
    pub epoch: u32,
    /// Whether requests go to a switch first.
    pub switch: bool,
    /// [`BladeConfig::cohort`].
    pub cohort: u8,
    /// See [`NodeLock`].
    pub implicit: bool,
    /// Whether it serves the lock's home.
    pub home: AtHome,
}

impl<S> NodeLock<S> {
    /// A lock that the node has never had, or, at its home, a new one. `known`: what the node
    /// remembers of it, if it has forgotten the lock in this epoch.
    pub fn new(tag: Tag, regions: Regions, part: Part, known: Option<Known>) -> Self {
        let Part {
            node,
            epoch,
            switch,
            cohort,
            implicit,
            home,
        } = part;
        let mut blade = Blade::new(BladeConfig {
            node,
            epoch,
            switch: switch && tag.home().is_own(),
            cohort,
            locks: 1,
        });
        match (home, known) {
            (AtHome::Yes, Some(Known::Home(rest))) => blade.wake(tag, regions, rest),
            (AtHome::Yes, _) => blade.create(tag, regions),
            (_, Some(Known::Abroad(floor))) => blade.reopen(tag, regions, floor),
            _ => blade.open(tag, regions),
        };
        let mut served = LockDirectory::new(node, epoch);
        let directory = match (home, known) {
            (AtHome::No, _) => None,
            (AtHome::Settling, _) => Some(LockDirectory::taken_over(node, tag)),
            (AtHome::Yes, Some(Known::Home(rest))) => {
                served.wake(tag, rest);
                Some(served)
            }
            (AtHome::Yes, _) => {
                served.create(tag);
                Some(served)
            }
        };
        NodeLock {
            tag,
            blade,
            directory: directory.map(Box::new),
            line: Line::new(),
            implicit,
            over: false,
            taken_home: false,
            pace: Pace::default(),
        }
    }

    /// Its address.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// The node's side, to look at.
    pub fn lock(&self) -> Option<&Lock> {
        self.blade.lock(self.tag)
    }

    /// The entry, who serves it, and since which epoch, at its home.
    pub fn entry(&self) -> Option<(Entry, LockPlace, u32)> {
        let directory = self.directory.as_ref()?;
        let (entry, place) = directory.entry(self.tag)?;
        Some((entry, place, directory.epoch()))
    }

    /// Whether requests go to a switch first.
    pub fn has_switch(&self) -> bool {
        self.blade.has_switch()
    }

    /// Whether this node is its home.
    pub fn is_home(&self) -> bool {
        self.directory.is_some()
    }

    /// Its home is no more.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// What it has cost.
    pub fn counters(&self) -> BladeCounters {
        self.blade.counters()
    }

    /// Whether the lock is to come to this node though none of its threads wants it:
    /// others want to be rid of it.
    pub fn comes_home(&self) -> bool {
        self.line.iter().any(|waiting| waiting.seat.is_none())
    }

    /// Whether something is under way that may have to be asked for again.
    pub fn busy(&self) -> bool {
        !self.over && (self.placing() || self.lock().is_some_and(Lock::unfinished))
    }

    /// The end of a section, by a clock of milliseconds: what the lock waits for is to be asked for
    /// again in time. Says whether there is anything.
    pub fn await_news(&mut self, now: impl FnOnce() -> u32) -> bool {
        let awaits = match self.over {
            true => 0,
            false => self.lock().map_or(0, Lock::awaits) << 1 | u32::from(self.placing()),
        };
        self.pace.await_news(awaits, now);
        awaits != 0
    }

    /// Whether it is time to ask again ([`NodeLock::retry`]).
    pub fn due(&mut self, now: impl FnOnce() -> u32) -> bool {
        self.pace.due(now)
    }

    /// A packet has come, with a body of `len` bytes or these records.
    pub fn packet(
        &mut self,
        header: &Header,
        (len, records): (u32, &[Record]),
        fx: &mut impl LockFx<Seat = S>,
    ) {
        if self.over {
            return;
        }
        let mut turn = Turn::new(fx);
        self.take(header, Some((len, records)), &mut turn);
        self.settle_here(&mut turn);
    }

    /// Asks again for what has not come. `false`: the node waits for nothing.
    pub fn retry(&mut self, fx: &mut impl LockFx<Seat = S>) -> bool {
        let mut turn = Turn::new(fx);
        if self.placing() {
            self.place(&mut turn);
        }
        let mut steps = Steps::new();
        let waits = self.blade.retry(self.tag, &mut steps);
        self.run(steps, None, &mut turn);
        self.settle_here(&mut turn);
        waits
    }
}

impl<S: Hash> NodeLock<S> {
    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.lock().hash(into);
        self.entry().hash(into);
        // Whether the home has it is asked by who leaves, and by nothing here.
        (&self.line, self.over).hash(into);
    }
}
