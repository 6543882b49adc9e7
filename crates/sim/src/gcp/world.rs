//! One state of a rack: its roles, its data, its packets, its threads.

use super::canon::{Canon, FIRST_EPOCH};
use super::host::{LockSite, LocksOnly};
use super::lives::{self, FIRST};
use super::mutation::Mutation;
use super::oracle::Oracle;
use super::packet::Ways;
use super::scenario::{Budget, Op, Place, Scenario};
use crate::driver::Unpacked;
use crate::site::{Cell, Site};
use rackmem_proto::flowcc::Members;
use rackmem_proto::gcp::{Access, Entry, Lock, LockPlace, Report};
use rackmem_proto::membership::View;
use rackmem_proto::switch::{LockConfig, SwitchLocks};
use rackmem_proto::wire::{Contract, Copyset, Tag};
use std::hash::Hash;
use std::rc::Rc;

/// The lock. Its home is node 0.
pub const TAG: Tag = Tag(0x1000).under(Contract::Locked);
/// See [`TAG`].
pub const HOME: u8 = 0;

macro_rules! witnesses {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Something that must have been seen, or a scenario shows nothing.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Witness { $($(#[$doc])* $name,)* }

        impl Witness {
            /// All of them.
            pub const ALL: &'static [Witness] = &[$(Witness::$name,)*];
        }
    };
}

witnesses! {
    /// A thread entered without a packet.
    Cached,
    /// The lock went from writer to writer: case (ii) to (ii).
    HandedOver,
    /// The lock went from a writer to readers only: case (ii) to (i).
    ToReaders,
    /// The lock went to readers and the queue to the writer behind them: case (ii) to (iii).
    ToReadersAndWriter,
    /// A writer came over readers: case (i) to (iii).
    OverReaders,
    /// Readers of two nodes were inside together.
    ReadTogether,
    /// A release was refused because a request was under way.
    Denied,
    /// A release was repeated that had been approved.
    Over,
    /// A node got the lock that no thread of it wanted any more.
    Unasked,
    /// Threads of a node handed over while another node waited.
    Cohort,
    /// A thread was told that a holder had died.
    OwnerDied,
    /// A thread was told that the data is older still.
    Lost,
    /// A node was taken for dead with a thread inside.
    FencedInside,
    /// An epoch began after one that a member had not gone on in, though others had been served in
    /// it.
    Overtaken,
    /// An epoch began after one that a node had entered and the home never settled.
    Skipped,
    /// The next epoch began while the home waited for the switch to take the lock.
    CutPlacing,
    /// A thread was told of a death that another one had been told of in an epoch before.
    ToldAgain,
    /// A node forgot what it kept, since the lock was home.
    Dropped,
    /// A thread's handle was on an earlier lock.
    Refused,
    /// A lock was to be freed that had been.
    FreedTwice,
    /// A lock was made in the place of one that had been freed.
    MadeAnew,
    /// A lock was made elsewhere, because the home did not know that this one had been freed.
    Elsewhere,
    /// A lock lived on, because who had freed it died before the home knew.
    Revived,
    /// A node gave a copy up that others had, too.
    GaveCopyUp,
    /// A home kept nothing of the lock but a number, which others had had before.
    Rested,
}

/// What acquisitions have cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Entries without a packet.
    pub local: u64,
    /// Entries by a grant.
    pub granted: u64,
    /// Requests to the directory: coherence transactions.
    pub requests: u64,
    /// Releases to the directory.
    pub releases: u64,
    /// Packets of any kind.
    pub packets: u64,
}

/// Who serves the lock now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Serves {
    /// Its home.
    Home,
    /// The switch.
    Switch,
    /// Nobody: the switch is dead or has not taken it yet, or the home has yet to settle it.
    Nobody,
}

/// A node.
#[derive(Clone)]
pub struct LockNode {
    /// Its side of the lock, what the lock protects as it has it, and what it was told at the home
    /// for the newest epoch that all have entered.
    pub site: LockSite,
    /// Entries by a grant before its home kept no more than a number of the lock,
    /// and made it again.
    pub granted_before: u64,
    /// It runs.
    pub up: bool,
    /// The newest view is without it.
    pub gone: bool,
    /// The others have gone on without it.
    pub fenced: bool,
    /// A defect: what it had when the first epoch ended that it has not gone on after.
    pub noted: Option<Box<Report>>,
}

impl LockNode {
    /// One that nothing has happened to.
    pub fn new(number: u8, rack: &LockRack, switch: bool) -> Self {
        let all = Copyset((1 << rack.scenario.nodes) - 1);
        let mut view = View::first(all, switch);
        view.epoch = FIRST_EPOCH;
        let mut site = Site::bare(number.into(), view, 1, LocksOnly);
        site.mutation = rack.mutation.map(Mutation::in_worlds);
        site.locks.loops = false;
        site.locks.cohort = match rack.has(Mutation::NeverLeave) {
            true => u8::MAX,
            false => rack.scenario.cohort,
        };
        site.open_lock(TAG, FIRST, None);
        LockNode {
            site,
            granted_before: 0,
            up: true,
            gone: false,
            fenced: false,
            noted: None,
        }
    }

    /// The epoch that it is in.
    pub fn epoch(&self) -> u32 {
        self.site.view.epoch
    }

    /// Its side of the lock.
    pub fn cell(&self) -> &Cell<()> {
        // There is one: it is not searched for.
        let cell = self.site.locks.cells.values().next();
        cell.expect("every node knows the lock")
    }

    /// The same, to change what the lock protects.
    pub fn cell_mut(&mut self) -> &mut Cell<()> {
        let cell = self.site.locks.cells.values_mut().next();
        cell.expect("every node knows the lock")
    }
}

/// Where a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum At {
    /// About to enter for its next operation, or done.
    Outside,
    /// Waiting to be let in.
    Waiting,
    /// In its critical section.
    Inside,
    /// Dead.
    Gone,
}

/// A thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Thread {
    /// Its node.
    pub node: u8,
    /// Operations that it has ended.
    pub done: u8,
    /// The life that its handle is of, and the lock that it truly is.
    pub handle: (u64, u64),
    /// It is inside, and leaves without having done anything.
    pub refused: bool,
    /// Where it is.
    pub at: At,
}

/// A state.
#[derive(Clone)]
pub struct World {
    /// The epoch of the newest view.
    pub(super) view: u32,
    /// Failures of the scenario so far.
    pub(super) failed: u8,
    pub(super) nodes: Vec<Rc<LockNode>>,
    /// The nodes of the epoch that the home has settled last.
    pub(super) founders: Copyset,
    /// The switch, while it lives.
    pub(super) switch: Option<Rc<SwitchLocks>>,
    /// The newest epoch that all have entered, until the home settles: it has been told everything.
    pub(super) told: Option<Members>,
    pub(super) ways: Ways,
    pub(super) threads: Vec<Thread>,
    pub(super) left: Budget,
    pub(super) oracle: Oracle,
    /// Witnesses seen by the last move.
    pub(super) seen: u32,
    pub(super) packets: u64,
    /// Nothing can go wrong.
    pub(super) calm: bool,
}

/// What does not change: the scenario, and the defect if any.
#[derive(Clone, Copy, Debug)]
pub struct LockRack {
    /// The scenario.
    pub scenario: Scenario,
    /// A defect.
    pub mutation: Option<Mutation>,
    /// Members do what they like while others have not learned of the newest epoch.
    /// Otherwise they only learn of it, which loses nothing: who has entered it hears nothing of
    /// those who have not, and what these hear was sent before, so whatever they would do they
    /// might have done before the failure.
    pub loose: bool,
}

impl LockRack {
    /// Whether it has this defect.
    pub fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Whether nothing can go wrong.
    pub fn faultless(&self) -> bool {
        self.scenario.budget == Budget::default() && self.scenario.failures.is_empty()
    }

    /// The first state.
    pub fn first(&self) -> World {
        let Scenario {
            nodes,
            threads,
            place,
            budget,
            ..
        } = self.scenario;
        let switch = place == Place::Switch;
        let node = |node: u8| Rc::new(LockNode::new(node, self, switch));
        let nodes: Vec<Rc<LockNode>> = (0..nodes).map(node).collect();
        let switch = switch.then(|| {
            let (epoch, ways, sets) = (FIRST_EPOCH, 1, 1);
            let locks = LockConfig { epoch, ways, sets };
            Rc::new(SwitchLocks::new(locks, false))
        });
        let mut world = World {
            view: FIRST_EPOCH,
            failed: 0,
            founders: Copyset((1 << nodes.len()) - 1),
            switch,
            told: None,
            oracle: Oracle::new(
                nodes.len(),
                nodes[0].cell().lock.lock().map_or(0, Lock::since),
            ),
            nodes,
            ways: Ways::default(),
            threads: threads
                .iter()
                .map(|(node, _)| Thread {
                    node: *node,
                    done: 0,
                    handle: lives::handle(&FIRST),
                    refused: false,
                    at: At::Outside,
                })
                .collect(),
            left: budget,
            seen: 0,
            packets: 0,
            calm: self.faultless(),
        };
        // The first request of an epoch would place it; here it begins placed.
        world.taken_by_switch();
        world
    }

    /// What a thread does next, if it has anything left.
    pub fn op(&self, world: &World, thread: usize) -> Option<Op> {
        self.op_of(world.threads[thread].done, thread)
    }

    /// What a thread does after so many operations.
    pub fn op_of(&self, done: u8, thread: usize) -> Option<Op> {
        let program = self.scenario.threads[thread].1;
        program.get(usize::from(done)).copied()
    }

    /// As what it enters for that.
    pub fn next(&self, world: &World, thread: usize) -> Option<Access> {
        self.op(world, thread).map(Op::access)
    }
}

impl World {
    /// A node's side of the lock.
    pub fn lock(&self, node: u8) -> &Lock {
        let lock = self.nodes[usize::from(node)].cell().lock.lock();
        lock.expect("every node knows the lock")
    }

    /// Who serves the lock, as its home has it.
    pub(super) fn place(&self) -> Option<LockPlace> {
        self.nodes[0].cell().lock.entry().map(|(_, place, _)| place)
    }

    /// The epoch that the home has settled last.
    pub(super) fn served_epoch(&self) -> u32 {
        self.nodes[0]
            .cell()
            .lock
            .entry()
            .map_or(0, |(_, _, epoch)| epoch)
    }

    /// Whether the home waits for the lock though no thread of it does:
    /// another node wants to be rid of it.
    pub(super) fn comes_home(&self) -> bool {
        self.nodes[0].cell().lock.comes_home()
    }

    /// Who serves the lock now, to those who are in the same epoch.
    pub fn serves(&self) -> Serves {
        match self.place() {
            Some(LockPlace::Here | LockPlace::Undecided)
                if self.served_epoch() == self.nodes[0].epoch() =>
            {
                Serves::Home
            }
            Some(LockPlace::Switch) if self.switch.is_some() => Serves::Switch,
            _ => Serves::Nobody,
        }
    }

    /// The directory's entry, if anybody serves it, and of which epoch.
    pub fn entry(&self) -> Option<(u32, Entry)> {
        match self.serves() {
            Serves::Home => {
                let entry = self.nodes[0].cell().lock.entry();
                entry.map(|(entry, _, epoch)| (epoch, entry))
            }
            Serves::Switch => self.switch.as_ref().and_then(|switch| switch.entry(TAG)),
            Serves::Nobody => None,
        }
    }

    /// Whether every operation has ended and nothing is in flight.
    pub fn done(&self, rack: &LockRack) -> bool {
        let ended = |(nth, thread): (usize, &Thread)| {
            thread.at == At::Gone
                || self.nodes[usize::from(thread.node)].fenced
                || (thread.at == At::Outside && rack.next(self, nth).is_none())
        };
        self.ways.is_empty() && self.settled() && self.threads.iter().enumerate().all(ended)
    }

    /// What it has cost so far.
    pub fn cost(&self) -> Cost {
        let mut cost = Cost {
            packets: self.packets,
            ..Cost::default()
        };
        for node in &self.nodes {
            let counters = node.cell().lock.counters();
            cost.local += counters.local;
            cost.granted += counters.granted + node.granted_before;
            cost.requests += counters.requests;
            cost.releases += counters.releases;
        }
        cost
    }

    pub(super) fn witness(&mut self, witness: Witness) {
        self.seen |= 1 << witness as u32;
    }
}

impl Unpacked for World {
    /// 128 bits that stand for the state. Counters are no part of it,
    /// but whether each acquisition had its one request.
    fn fingerprint(&self) -> u128 {
        let mut canon = Canon::default();
        self.switch.hash(&mut canon);
        (self.view, self.failed, self.founders).hash(&mut canon);
        (self.told, &self.nodes[usize::from(HOME)].site.locks.told).hash(&mut canon);
        let mut open = 0u64;
        for node in &self.nodes {
            node.cell().lock.fingerprint(&mut canon);
            // One by one: as a slice they are hashed by their bytes.
            let words = node.cell().fx.data.iter().chain(&node.cell().fx.beside);
            words.for_each(|word| word.hash(&mut canon));
            (node.up, node.gone).hash(&mut canon);
            (node.fenced, node.epoch(), &node.noted).hash(&mut canon);
            let counters = node.cell().lock.counters();
            open = open
                .wrapping_add(counters.requests)
                .wrapping_sub(counters.granted);
        }
        if self.calm {
            (open as u32).hash(&mut canon);
        }
        self.ways.hash(&mut canon);
        self.threads.hash(&mut canon);
        self.left.hash(&mut canon);
        self.oracle.hash(&mut canon);
        canon.print()
    }
}
