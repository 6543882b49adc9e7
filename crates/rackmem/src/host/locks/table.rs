//! The locks that a node knows.

use super::SHARDS;
use super::arrays::Arrays;
use super::cell::{Cell, Fx, State};
use super::clock;
use super::ledger::Ledger;
use super::outbox::Outbox;
use super::places::{Ends, Places};
use super::pressure::Pressure;
use super::seat::Seat;
use super::taking::told_all;
use crate::error::{AccessError, LockError};
use crate::membership::current_view::CurrentView;
use rackmem_fabric::Whole;
use rackmem_fabric::{Body, Net, Nobody, Receiver};
use rackmem_proto::engine::{AtHome, LockPart, NodeLock, Told};
use rackmem_proto::gcp::{BladeCounters, MAX_LOCKED, Region, Regions};
use rackmem_proto::wire::{HomeId, NodeId, Tag};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// Locks that a node knows at most: those that it has made or attached to, and all of its arrays.
/// It remembers them as long as it lives, or their home.
pub(crate) const MAX_LOCKS: usize = 1 << 21;
/// How often threads of a node enter one after the other while another node waits,
/// beside the first of them.
const COHORT: u8 = 16;
/// Locks that one tick looks at, to ask again for what has not come;
/// the others have their turn in the next ones.
const LOCKS_A_TICK: usize = 512;

/// How a node comes to know a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// It makes it, or attaches to it.
    Made,
    /// It is one of an array for which there is room.
    Array,
    /// Its home hears of it.
    Heard,
}

type Shard = RwLock<HashMap<Tag, Arc<Cell>>>;

/// What a node's locks have cost so far.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{LockMetrics, Mutex};
///
/// let rack = Rack::local(1)?;
/// let lock = Mutex::create(&rack.node(0), 0u64)?;
/// for _ in 0..10 {
///     *lock.lock()? += 1;
/// }
/// let LockMetrics { local, requests, .. } = rack.node(0).lock_metrics();
/// assert!(local >= 10 && requests == 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockMetrics {
    /// Locks that the node knows.
    pub known: usize,
    /// Of those whose home it is: places of locks that have been freed,
    /// in which the next ones are made.
    pub vacant: usize,
    /// Acquisitions without a packet: the lock was here.
    pub local: u64,
    /// Acquisitions by a coherence transaction: one each.
    pub granted: u64,
    /// Requests to directories: those of the transactions, and what had to be asked again.
    pub requests: u64,
    /// Releases to directories, likewise: one hands the lock to another node,
    /// or to several readers.
    pub releases: u64,
    /// Releases that a directory refused, because a request was under way.
    pub denied: u64,
    /// Packets that were dropped: about a lock that this node does not know.
    pub dropped: u64,
    /// Bytes that the node keeps for locks whose home is its own memory, what they protect
    /// included.
    pub kept_home: usize,
    /// Bytes that it keeps for the others, which count under its cache.
    pub kept: usize,
    /// Bytes that it keeps of locks that it has forgotten, until the epoch ends.
    pub remembered: usize,
    /// Of those others, how often it has dropped what it kept: for want of room,
    /// or since the home had it.
    pub given_up: u64,
}

/// See the module.
pub(crate) struct Locks {
    pub(crate) me: NodeId,
    /// What others have told of locks whose home this is, while an epoch begins.
    pub(crate) told: Mutex<Told>,
    /// Bytes of body that packets have room for.
    pub(crate) room: usize,
    pub(crate) standing: Arc<CurrentView>,
    pub(crate) shards: Box<[Shard]>,
    /// Locks that are not of an array which has been reserved.
    pub(crate) known: AtomicUsize,
    pub(crate) arrays: Arrays,
    /// Where locks of this home were that have been freed.
    pub(crate) places: Places,
    /// Of lives that threads here have ended: what homes know.
    pub(crate) ends: Ends,
    /// Bytes of addresses that an incarnation of a node has.
    span: u64,
    /// Those with something under way that may have to be asked for again, in turn.
    busy: Mutex<VecDeque<Arc<Cell>>>,
    dropped: AtomicU64,
    /// Bytes kept for locks whose home is elsewhere, and for those whose home is here.
    pub(crate) kept: [Arc<AtomicUsize>; 2],
    /// Locks of other nodes that have been dismissed, and locks of this one that rest,
    /// since some were forgotten last.
    pub(crate) idle: AtomicUsize,
    /// What is remembered of those that have been forgotten in this epoch:
    /// as many as locks at most.
    ledger: Mutex<Ledger>,
    /// The epoch in which this node keeps homes of groups, and all have told of locks there.
    pub(super) told_all: AtomicU32,
    /// The epoch in which it could not take over all of these locks.
    pub(super) untaken: AtomicU32,
    /// Bytes that it takes.
    pub(crate) remembered: AtomicUsize,
    given_up: AtomicU64,
    pub(crate) pressure: Pressure,
}

impl Locks {
    pub fn new(me: NodeId, room: usize, span: u64, standing: Arc<CurrentView>) -> Self {
        Locks {
            me,
            told: Mutex::default(),
            room,
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            known: AtomicUsize::new(0),
            arrays: Arrays::default(),
            places: Places::default(),
            ends: Ends::default(),
            span,
            busy: Mutex::default(),
            dropped: AtomicU64::new(0),
            kept: Default::default(),
            idle: AtomicUsize::new(0),
            ledger: Mutex::new(Ledger::new(standing.epoch())),
            told_all: AtomicU32::new(told_all(me, &standing)),
            untaken: AtomicU32::new(0),
            remembered: AtomicUsize::new(0),
            given_up: AtomicU64::new(0),
            pressure: Pressure::default(),
            standing,
        }
    }

    /// Whether this node serves a lock's home.
    pub(crate) fn is_home(&self, tag: Tag) -> bool {
        self.host(tag.home()) == Some(self.me)
    }

    pub(super) fn shard(&self, tag: Tag) -> &Shard {
        // Locks lie at multiples of sixteen, and often one behind the other.
        &self.shards[(tag.0 >> 6) as usize % SHARDS]
    }

    pub(crate) fn find(&self, tag: Tag) -> Option<Arc<Cell>> {
        let shard = self.shard(tag).read();
        shard.whole().get(&tag).cloned()
    }

    /// Whether this is the address of a lock that is known here, and not of an array.
    pub fn is_lock(&self, tag: Tag) -> bool {
        // Memory is freed all the time on nodes that have no lock.
        if self.known.load(Relaxed) == 0 {
            return false;
        }
        let shard = self.shard(tag).read();
        shard.whole().get(&tag).is_some_and(|cell| !cell.implicit)
    }

    /// Whether the lock is known here.
    pub(crate) fn knows(&self, tag: Tag) -> bool {
        self.find(tag).is_some()
    }

    /// Whether an address is memory of its home as that is now: a member,
    /// and not one that has begun anew since.
    pub(crate) fn is_current(&self, tag: Tag) -> bool {
        let incarnation = tag.offset() / self.span + 1;
        // What a group keeps is of no incarnation.
        let now = |home| u64::from(self.standing.incarnation(home)) == incarnation;
        let home = self.host(tag.home());
        let own = tag.home().is_own();
        home.is_some_and(|home| self.standing.live(home) && (!own || now(home)))
    }

    /// Which node serves the locks of a home.
    pub(crate) fn host(&self, home: HomeId) -> Option<NodeId> {
        self.standing.host(home)
    }

    /// The lock of this address, which protects up to `len` bytes, known here from now on.
    pub(crate) fn open(
        &self,
        tag: Tag,
        len: usize,
        origin: Origin,
    ) -> Result<Arc<Cell>, LockError> {
        if let Some(cell) = self.find(tag) {
            return Ok(cell);
        }
        let bad = || {
            LockError::Access(AccessError::BadRange {
                addr: tag.0,
                len,
                block: MAX_LOCKED as usize,
            })
        };
        let region = Region {
            addr: tag.0,
            len: u32::try_from(len.next_multiple_of(8)).map_err(|_| bad())?,
        };
        let regions = match len {
            0 => Regions::default(),
            _ => Regions::new(&[region]).map_err(|_| bad())?,
        };
        let cells = self.shard(tag).write();
        let mut cells = cells.whole();
        if let Some(other) = cells.get(&tag) {
            return Ok(other.clone());
        }
        if origin != Origin::Array {
            self.claim(1)?;
        }
        // Whoever begins another epoch comes by the shard afterwards, and finds the lock.
        let epoch = self.standing.epoch();
        let cell = Arc::new(self.cell(tag, (len, origin != Origin::Made), regions, epoch));
        cells.insert(tag, cell.clone());
        Ok(cell)
    }

    /// Room for so many more.
    pub(crate) fn claim(&self, more: usize) -> Result<(), LockError> {
        let add = |known: usize| known.checked_add(more).filter(|sum| *sum <= MAX_LOCKS);
        let claimed = self.known.fetch_update(Relaxed, Relaxed, add);
        claimed
            .map(|_| ())
            .map_err(|_| LockError::TooManyLocks { most: MAX_LOCKS })
    }

    pub(super) fn cell(&self, tag: Tag, what: (usize, bool), regions: Regions, epoch: u32) -> Cell {
        let home = self.is_home(tag);
        // Looked at under the shard's lock: what is settled afterwards finds this lock.
        let told = tag.home().is_own() || self.told_all.load(SeqCst) == epoch;
        let part = LockPart {
            node: self.me,
            epoch,
            switch: self.standing.switch(),
            cohort: COHORT,
            implicit: what.1,
            home: match (home, told) {
                (false, _) => AtHome::No,
                (true, false) => AtHome::Settling,
                (true, true) => AtHome::Yes,
            },
        };
        let known = self.ledger().take(tag, epoch);
        let lock = NodeLock::new(tag, regions, part, known);
        // What a group's home has is not for ever this node's to keep, and may be given up as what
        // other homes have.
        let own = home && tag.home().is_own();
        Cell::new(lock, what, self.kept[usize::from(own)].clone())
    }

    /// Does something to a lock, and says what is left to do. Packets of it should be sent soon.
    pub(crate) fn turn(
        &self,
        cell: &Arc<Cell>,
        act: impl FnOnce(&mut State, &mut Outbox),
    ) -> Outbox {
        let mut out = Outbox::default();
        let mut state = cell.turn();
        act(&mut state, &mut out);
        state.call_watchers(&mut out);
        let keep = self.end_of_turn(cell, &mut state);
        drop(state);
        if out.dropped {
            self.idle.fetch_add(1, Relaxed);
            self.given_up.fetch_add(1, Relaxed);
        }
        if keep {
            self.busy().push_back(cell.clone());
        }
        out
    }

    /// Has a lock do something on behalf of a thread, or because of the time.
    pub(crate) fn step(
        &self,
        cell: &Arc<Cell>,
        act: impl FnOnce(&mut NodeLock<Arc<Seat>>, &mut Fx<'_>),
    ) -> Outbox {
        self.turn(cell, |state, out| state.act(cell, Body::None, out, act))
    }

    /// Looks at a lock. Nothing is to be sent afterwards.
    pub(crate) fn look<R>(&self, cell: &Cell, see: impl FnOnce(&mut State) -> R) -> R {
        let mut state = cell.turn();
        let seen = see(&mut state);
        state.open(cell);
        seen
    }

    /// Says whether somebody should look after the lock from now on.
    fn end_of_turn(&self, cell: &Cell, state: &mut State) -> bool {
        state.open(cell);
        state.lock.await_news(clock::now) && !std::mem::replace(&mut state.kept, true)
    }

    fn busy(&self) -> MutexGuard<'_, VecDeque<Arc<Cell>>> {
        self.busy.lock().whole()
    }

    /// What was remembered is of an epoch that has ended.
    pub(crate) fn forget_ledger(&self) {
        *self.ledger() = Ledger::new(self.standing.epoch());
        self.remembered.store(0, Relaxed);
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().whole()
    }

    pub(crate) fn send(&self, mut out: Outbox, net: &dyn Net, reply: &mut dyn Receiver) {
        out.send(net, self.room, &self.standing, reply);
        out.finish();
    }

    /// A packet about a lock that this node does not know, and that may be none, was ignored.
    pub(crate) fn drop_unknown(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// Looks no longer after locks for which nothing is under way any more.
    /// Where packets are calls nobody else does.
    pub(crate) fn drop_settled(&self) {
        let mut cells = std::mem::take(&mut *self.busy());
        cells.retain(|cell| {
            self.look(cell, |state| {
                state.kept = state.lock.busy();
                state.kept
            })
        });
        self.busy().append(&mut cells);
    }

    /// Asks again for what has not come in time, for a bounded number of locks a tick.
    pub(crate) fn each_due(
        &self,
        net: &dyn Net,
        mut ask: impl FnMut(&mut NodeLock<Arc<Seat>>, &mut Fx<'_>),
    ) {
        let turns = self.busy().len().min(LOCKS_A_TICK);
        for _ in 0..turns {
            let Some(cell) = self.busy().pop_front() else {
                return;
            };
            let keep = self.look(&cell, |state| {
                state.kept = state.lock.busy();
                state.kept
            });
            if keep {
                let out = self.if_due(&cell, &mut ask);
                self.send(out, net, &mut Nobody);
                self.busy().push_back(cell);
            }
        }
    }

    /// Asks again for what has not come to one lock in time.
    pub(crate) fn again(&self, cell: &Arc<Cell>) -> Outbox {
        self.if_due(cell, |lock, fx| {
            lock.retry(fx);
        })
    }

    fn if_due(
        &self,
        cell: &Arc<Cell>,
        ask: impl FnOnce(&mut NodeLock<Arc<Seat>>, &mut Fx<'_>),
    ) -> Outbox {
        self.turn(cell, |state, out| {
            if state.lock.due(clock::now) {
                state.act(cell, Body::None, out, ask);
            }
        })
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Cell>> {
        let cells = |shard: &Shard| {
            let cells = shard.read().whole();
            cells.values().cloned().collect::<Vec<_>>()
        };
        self.shards.iter().flat_map(cells).collect()
    }

    /// What is kept of them: the figures of [`LockMetrics`] that take no look at each.
    pub fn memory(&self) -> LockMetrics {
        LockMetrics {
            dropped: self.dropped.load(Relaxed),
            vacant: self.places.len(),
            kept: self.kept[0].load(Relaxed),
            kept_home: self.kept[1].load(Relaxed),
            remembered: self.remembered.load(Relaxed),
            given_up: self.given_up.load(Relaxed),
            ..LockMetrics::default()
        }
    }

    /// What all of them have cost.
    pub fn metrics(&self) -> LockMetrics {
        let mut sum = self.memory();
        for cell in self.all() {
            sum.known += 1;
            let BladeCounters {
                local,
                granted,
                requests,
                releases,
                denied,
                ..
            } = self.look(&cell, |state| state.counters());
            sum.local += local;
            sum.granted += granted;
            sum.requests += requests;
            sum.releases += releases;
            sum.denied += denied;
        }
        sum
    }
}
