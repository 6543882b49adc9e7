//! All locks of one node.

use super::dismiss::Keeping;
use super::few::Few;
use super::lock::{At, Entered, Event, Lock, Steps};
use super::regions::Regions;
use super::settle::Report;
use super::{Access, Right};
use crate::wire::{Copyset, Dest, Header, Kind, NodeId, Reason, Record, Tag};

/// How a node takes part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BladeConfig {
    /// Which node.
    pub node: NodeId,
    /// Epoch of the rack; packets of another are dropped.
    pub epoch: u32,
    /// Whether requests go to the switch, which passes on what is not its own,
    /// or to the lock's home.
    pub switch: bool,
    /// How often threads of this node enter one after the other while another node waits,
    /// beside the first.
    pub cohort: u8,
    /// Locks at most.
    pub locks: usize,
}

/// What a node's locks have cost, since the node began.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BladeCounters {
    /// Threads that entered without a packet: the lock was here.
    pub local: u64,
    /// Threads that entered by a promise that became a right: one coherence transaction each.
    pub granted: u64,
    /// Requests to a directory: those above, and what had to be asked again.
    pub requests: u64,
    /// Releases to a directory, likewise.
    pub releases: u64,
    /// Releases that a directory refused.
    pub denied: u64,
    /// Packets dropped: another epoch, a number that no directory gives in this one,
    /// or an unknown lock.
    pub dropped: u64,
}

impl BladeCounters {
    /// What both have cost.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        BladeCounters {
            local: self.local + other.local,
            granted: self.granted + other.granted,
            requests: self.requests + other.requests,
            releases: self.releases + other.releases,
            denied: self.denied + other.denied,
            dropped: self.dropped + other.dropped,
        }
    }
}

/// The locks of a node. The host serializes calls about one lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Blade {
    config: BladeConfig,
    locks: Few<Lock>,
    counters: BladeCounters,
}

impl Blade {
    /// A node that knows no lock.
    pub fn new(config: BladeConfig) -> Self {
        Blade {
            config,
            locks: Few::new(),
            counters: BladeCounters::default(),
        }
    }

    /// Makes a lock whose home this is: the node has it with permission M. `false`: it exists,
    /// or there are too many.
    pub fn create(&mut self, tag: Tag, regions: Regions) -> bool {
        let epoch = self.config.epoch;
        self.add(tag, || Lock::at_home(regions.len(), epoch))
    }

    /// Makes a lock of another home known here again, which has been forgotten with this
    /// [`Lock::floor`] in the same epoch.
    pub fn reopen(&mut self, tag: Tag, regions: Regions, floor: u64) -> bool {
        self.add(tag, || Lock {
            floor,
            ..Lock::new(regions.len())
        })
    }

    /// Makes a lock of any home known here, once. `false`: it is known, or there are too many.
    pub fn open(&mut self, tag: Tag, regions: Regions) -> bool {
        self.add(tag, || Lock::new(regions.len()))
    }

    pub(super) fn add(&mut self, tag: Tag, lock: impl FnOnce() -> Lock) -> bool {
        if self.locks.len() >= self.config.locks || self.locks.contains(tag) {
            return false;
        }
        self.locks.insert(tag, lock());
        true
    }

    /// A thread wants to enter. `Some`: it is inside. Otherwise it waits for [`Event::Enter`];
    /// `false` in the second place says that the lock is not known, and nothing will come.
    pub fn enter(
        &mut self,
        tag: Tag,
        access: Access,
        steps: &mut Steps,
    ) -> (Option<Entered>, bool) {
        let mut entered = None;
        let known = self.with(tag, steps, |lock, at, steps| {
            entered = lock.enter(at, access, steps);
        });
        self.counters.local += u64::from(entered.is_some());
        (entered, known)
    }

    /// A thread leaves. `next`: another one of this node wants to be next,
    /// and is inside at once if `Some` comes back, as often as [`BladeConfig::cohort`] allows while
    /// other nodes wait; otherwise it waits for [`Event::Enter`].
    pub fn leave(
        &mut self,
        tag: Tag,
        access: Access,
        next: Option<Access>,
        steps: &mut Steps,
    ) -> Option<Entered> {
        let mut entered = None;
        self.with(tag, steps, |lock, at, steps| {
            entered = lock.leave(at, access, next, steps);
        });
        self.counters.local += u64::from(entered.is_some());
        entered
    }

    /// A thread that was let in is not there to enter, and has not seen what is wrong with the
    /// data, if anything is.
    pub fn decline(&mut self, tag: Tag, access: Access, steps: &mut Steps) {
        self.with(tag, steps, |lock, at, steps| {
            lock.decline(at, access, steps)
        });
    }

    /// Takes a packet from a directory or another node, with a body of `len` bytes or these
    /// records.
    pub fn handle(&mut self, header: &Header, len: u32, records: &[Record], steps: &mut Steps) {
        let ours = header.epoch == self.config.epoch
            && super::is_of(super::version(header), header.epoch)
            && self.with(header.tag, steps, |lock, at, steps| {
                lock.handle(at, header, len, records, steps);
            });
        self.counters.dropped += u64::from(!ours);
        self.counters.denied +=
            u64::from(header.kind == Kind::ReleaseAck && header.reason != Reason::None);
    }

    /// After a timeout of some round trips: asks again. `false`:
    /// the lock waits for no answer.
    pub fn retry(&mut self, tag: Tag, steps: &mut Steps) -> bool {
        let mut waits = false;
        self.with(tag, steps, |lock, at, steps| waits = lock.retry(at, steps));
        waits
    }

    /// The host needs room: gets rid of what is kept of a lock of another home, at once or by
    /// asking the home to take it. To be asked again while it is not gone: a question may be lost.
    pub fn get_rid(&mut self, tag: Tag, steps: &mut Steps) -> Keeping {
        let mut keeping = Keeping::Nothing;
        self.with(tag, steps, |lock, at, steps| {
            keeping = lock.get_rid(at, steps)
        });
        keeping
    }

    /// What a writer inside has found wrong with the data: whoever enters is told, until one has
    /// written.
    pub fn found(&mut self, tag: Tag, reason: Reason) {
        if let Some(lock) = self.locks.get_mut(tag) {
            lock.found(reason);
        }
    }

    /// No thread of this node waits for the lock any more.
    pub fn cancel(&mut self, tag: Tag) {
        if let Some(lock) = self.locks.get_mut(tag) {
            lock.cancel();
        }
    }

    /// Whose it is.
    pub fn node(&self) -> NodeId {
        self.config.node
    }

    /// The epoch that it is in.
    pub fn epoch(&self) -> u32 {
        self.config.epoch
    }

    /// Forgets a lock.
    pub fn forget(&mut self, tag: Tag) {
        self.locks.retain(|other| other != tag);
    }

    /// Whether requests go to a switch first.
    pub fn has_switch(&self) -> bool {
        self.config.switch
    }

    /// A lock, to look at.
    pub fn lock(&self, tag: Tag) -> Option<&Lock> {
        self.locks.get(tag)
    }

    /// What it has cost.
    pub fn counters(&self) -> BladeCounters {
        self.counters
    }

    /// What this node tells each lock's home for the epoch that it has entered, when it tells it:
    /// every time anew.
    pub fn reports(&self) -> impl Iterator<Item = (Tag, Report)> {
        let epoch = self.config.epoch;
        let locks = self.locks.iter();
        locks.map(move |(tag, lock)| (tag, lock.report(epoch)))
    }

    /// The next epoch: what was under way is over, rights and threads inside stay.
    /// Locks whose home is not in `live` are gone. `switch`: whether there is one. Threads that
    /// wait go on waiting: the host calls [`Blade::resume`] when every directory is made anew.
    pub fn enter_epoch(&mut self, epoch: u32, live: Copyset, switch: bool) {
        let ended = core::mem::replace(&mut self.config.epoch, epoch);
        self.config.switch = switch;
        self.locks.retain(|tag| tag.home().lives_with(live));
        self.locks
            .iter_mut()
            .for_each(|(_, lock)| lock.fence(ended));
    }

    /// Asks for what threads wait for, in a new epoch.
    pub fn resume(&mut self, tag: Tag, steps: &mut Steps) {
        self.with(tag, steps, |lock, at, steps| lock.settle(at, steps));
    }

    /// Does something with a lock, and counts. `false`: it is not known.
    fn with(
        &mut self,
        tag: Tag,
        steps: &mut Steps,
        act: impl FnOnce(&mut Lock, &At, &mut Steps),
    ) -> bool {
        let Some(lock) = self.locks.get_mut(tag) else {
            return false;
        };
        let BladeConfig {
            node,
            epoch,
            switch,
            cohort,
            ..
        } = self.config;
        let at = At {
            node,
            epoch,
            tag,
            directory: match switch {
                true => Dest::Switch,
                false => Dest::Home(tag.home()),
            },
            cohort,
        };
        let from = steps.len();
        let before = lock.right;
        act(lock, &at, steps);
        let rises = lock.right > before;
        for step in &steps[from..] {
            match step {
                Event::Send(send) if send.header.kind == Kind::Acquire => {
                    self.counters.requests += 1
                }
                Event::Send(send) if send.header.kind == Kind::Release => {
                    self.counters.releases += 1
                }
                Event::Enter(_) if rises && before < Right::Modified => self.counters.granted += 1,
                Event::Enter(_) => self.counters.local += 1,
                _ => {}
            }
        }
        true
    }
}
