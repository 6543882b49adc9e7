//! A node's home agent and cache agent, as the fabric calls them.

use crate::bytes::desk::Desk;
use crate::bytes::memory::GlobalMemory;
use crate::bytes::node_cache::{LockedEntry, NodeCache, Other};
use crate::bytes::twins::LentTwins;
use crate::config::migration::Migration;
use crate::guest::Guest;
use crate::host::atomics::Contended;
use crate::host::bounded::BoundedItems;
use crate::host::here::{Block, Here};
use crate::host::hot::HotBlocks;
use crate::host::kept::Kept;
use crate::host::locks::{Effort, IN_A_TICK, Locks};
use crate::host::metrics::MissCounters;
use crate::host::names::Names;
use crate::host::objects::Objects;
use crate::host::rebuilding::Rebuilding;
use crate::host::replicated::Replicas;
use crate::host::waiting::Waiting;
use crate::membership::Role;
use crate::membership::current_view::CurrentView;
use crate::membership::reach::{self, Reach};
use crate::ports::requester::Requesters;
use rackmem_fabric::Whole;
use rackmem_fabric::{Body, Handler, Net, Nobody, PacketStats, Receiver};
use rackmem_proto::Dest;
use rackmem_proto::engine::{self, Copies, Home, Migrating, Part};
use rackmem_proto::flowcc::{
    HomeAgent, HomeConfig, HomeCounters, LocalStatus, Members, ShadowCounters, Shards,
};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Contract, GlobalStatus, Header, Kind, NodeId, Tag};
use std::ops::Add;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
use std::time::{Duration, Instant};

/// Locks of other homes may take this part of a node's cache, and more where blocks leave room.
const LOCKS_SHARE: usize = 4;

/// What a cache agent has done.
#[derive(Default)]
pub(crate) struct AgentCounters {
    pub at_home: AtomicU64,
    pub invalidated: AtomicU64,
    pub provided: AtomicU64,
    pub ignored: AtomicU64,
}

/// Both agents of a node.
pub(crate) struct Agents {
    pub node: NodeId,
    pub standing: Arc<CurrentView>,
    /// Held while a packet is handled, on fabrics that can lose packets:
    /// an epoch ends between packets.
    gate: RwLock<()>,
    pub cache: NodeCache,
    /// What the kernel shares that answers for the cache agent.
    pub desk: Option<Desk>,
    pub memory: GlobalMemory,
    /// Blocks of it that the kernel has as well, which answers for the home.
    pub twins: Option<LentTwins>,
    /// Its home, in parts that are served side by side, and behind them the homes that groups keep.
    pub homes: Box<[Mutex<Home>]>,
    pub shards: Shards,
    /// What its cache does for others: nothing to share where packets cannot be lost.
    pub copies: Option<Mutex<Copies<Block>>>,
    /// Its part in ownership migration, in a rack with a switch.
    pub migrating: Option<Mutex<Migrating>>,
    policy: Migration,
    period: Mutex<Instant>,
    /// Its part when the directory is made anew.
    pub rebuilding: Rebuilding,
    /// Its part in locks.
    pub locks: Locks,
    /// Its part in replicated memory.
    pub replicas: Replicas,
    /// The table of regions, where a group has copies of it.
    pub names: Option<Names>,
    /// Its part in homes that groups keep.
    pub kept: Kept,
    /// Its part in objects.
    pub objects: Objects,
    /// Its part in bounded memory.
    pub bounded: BoundedItems,
    /// Requests for pages that the program has pinned.
    pub waiting: Waiting,
    /// A protocol that is no part of the rack.
    pub guest: Option<Arc<dyn Guest>>,
    /// Where to find this node's requesters, on fabrics whose requesters may have gone on.
    requesters: OnceLock<Weak<Requesters>>,
    /// Which members it can reach, where cables can be cut.
    reach: OnceLock<Arc<Reach>>,
    pub counters: AgentCounters,
    /// Events of its threads.
    pub events: MissCounters,
    /// The blocks of most of them.
    pub hot: HotBlocks,
    /// The blocks whose words they change, and others as well.
    pub contended: Contended,
    pub packets: PacketStats,
}

/// Takes a lock.
impl Agents {
    pub fn new(
        (config, shards): (HomeConfig, Shards),
        (cache, desk): (NodeCache, Option<Desk>),
        lossy: bool,
        (migrating, policy): (Option<Migrating>, Migration),
        standing: Arc<CurrentView>,
        rebuilding: Rebuilding,
        (locks, replicas, objects, bounded): (Locks, Replicas, Objects, BoundedItems),
    ) -> Self {
        let shards = shards.with_kept();
        let mut homes = HomeAgent::sharded(config, shards);
        homes.push(HomeAgent::of_groups(config));
        Agents {
            kept: Kept::new((config.block, config.epoch), lossy),
            node: config.node,
            waiting: Waiting::default(),
            guest: None,
            names: None,
            locks,
            replicas,
            objects,
            bounded,
            standing,
            rebuilding,
            gate: RwLock::new(()),
            cache,
            desk,
            memory: GlobalMemory::new(config.block as usize, config.chunks, config.incarnation),
            twins: None,
            homes: homes
                .into_iter()
                .map(|agent| Mutex::new(Home::new(agent)))
                .collect(),
            shards,
            copies: lossy.then(|| Mutex::new(Copies::new(true))),
            migrating: migrating.map(Mutex::new),
            policy,
            period: Mutex::new(Instant::now()),
            requesters: OnceLock::new(),
            reach: OnceLock::new(),
            counters: AgentCounters::default(),
            events: MissCounters::default(),
            hot: HotBlocks::default(),
            contended: Contended::default(),
            packets: PacketStats::default(),
        }
    }

    /// From now on, what comes here for a requester goes to it.
    pub fn plug(&self, requesters: &Arc<Requesters>) {
        let _ = self.requesters.set(Arc::downgrade(requesters));
    }

    /// Whether locks of other homes may take more than their share.
    #[inline]
    pub fn crowded(&self) -> bool {
        self.locks.crowded(self.cache.bytes() / LOCKS_SHARE)
    }

    /// Gives locks up if what is kept of them takes more than blocks leave room for,
    /// and than their share of the cache.
    pub fn relieve(&self, effort: Effort, net: &dyn Net) {
        if !self.crowded() {
            return;
        }
        let (all, block) = (self.cache.bytes(), self.cache.block_bytes());
        let room = || {
            let blocks = self.cache.sets().copies().count() * block;
            all.saturating_sub(blocks).max(all / LOCKS_SHARE)
        };
        self.locks.relieve(room, effort, net, &mut Nobody);
    }

    /// Whether an address is of a home that a group keeps, as far as this process has heard; if it
    /// has not, it asks.
    pub fn has_kept(&self, tag: Tag) -> bool {
        let block = self.cache.tag_of(tag.under(Contract::Coherent).0);
        self.kept.has_heard_of(block) && self.memory.block(block).is_some()
    }

    /// An entry of the cache is this block's from here on, and its status this; not for long, if
    /// the block's region was removed meanwhile.
    #[inline]
    pub fn install(&self, locked: LockedEntry<'_>, tag: Tag, status: LocalStatus) {
        let mut here = self;
        engine::install(&mut here, tag, |_| locked.install(tag, status));
    }

    /// From now on, looks which members it can reach.
    pub fn know(&self, reach: Arc<Reach>) {
        let _ = self.reach.set(reach);
    }

    pub(crate) fn to_requester(&self, net: &dyn Net, header: &Header, reply: &mut dyn Receiver) {
        let requesters = self.requesters.get().and_then(Weak::upgrade);
        if !requesters.is_some_and(|requesters| requesters.deliver(header)) {
            let to = Dest::Requester(header.requester);
            net.send(to, header, Body::None, reply);
        }
    }

    /// A question who can be reached, or an answer, or that somebody goes.
    pub(crate) fn reach(&self, net: &dyn Net, header: &Header, reply: &mut dyn Receiver) {
        match self.reach.get() {
            _ if header.kind == Kind::Farewell => self.standing.hear_farewell(header),
            Some(reach) => drop(reach.packet(net, header, reply)),
            None if header.kind == Kind::Ping => {
                reach::answer(Role::Node(self.node), net, header, reply);
            }
            None => {}
        }
    }

    pub fn home_counters(&self) -> HomeCounters {
        let each = self
            .homes
            .iter()
            .map(|home| home.lock().whole().agent.counters());
        each.fold(HomeCounters::default(), Add::add)
    }

    /// What this node's shadow has done and knows, if it keeps it.
    pub fn shadow(&self) -> Option<(ShadowCounters, usize)> {
        self.migrating.as_ref()?.lock().whole().counters()
    }

    pub fn chunks(&self) -> u32 {
        self.books(|home| home.chunks())
    }

    pub fn inspect(&self, tag: Tag) -> Option<(u16, GlobalStatus, u32, bool)> {
        let home = &self.homes[self.shards.of(tag)];
        let (lock, status, copyset, in_switch) = home.lock().whole().agent.inspect(tag)?;
        Some((lock, status, copyset.0, in_switch))
    }

    /// Blocks that have left the cache for events that may not have received them yet.
    pub fn given(&self) -> Vec<Tag> {
        let copies = self.copies.as_ref().map(|copies| copies.lock().whole());
        let given = copies.iter().flat_map(|copies| copies.given());
        given.map(|(_, _, tag)| tag).collect()
    }

    /// Whether a copy of this node's may be all that there is of a block as it is now.
    pub fn alone_has(&self, tag: Tag, status: LocalStatus) -> bool {
        status == LocalStatus::Modified || self.copies.is_some() && self.cache.is_downgraded(tag)
    }

    /// The rack is in a new epoch: packets of the last one do nothing here any more.
    pub fn enter(&self, view: &View, net: &dyn Net) {
        let _nobody = self.gate.write().whole();
        self.objects.answer_in(None);
        if let Some(desk) = &self.desk {
            desk.close();
            desk.forget();
        }
        if let Some(twins) = &self.twins {
            twins.close();
        }
        self.standing.adopt(view);
        self.objects.follow(view);
        self.kept.enter(view.epoch);
        if view.keeper() != Some(self.node) {
            self.memory.discard_kept();
        }
        let mut reply = Nobody;
        let members = Members {
            epoch: view.epoch,
            founders: view.founders,
            switch: view.switch.is_some(),
        };
        engine::stop(&mut Here::new(self, net, Body::None, &mut reply), members);
    }

    /// Which entries go to a switch, where there is one.
    pub fn policy(&self) -> Option<rackmem_proto::flowcc::Migration> {
        self.migrating.as_ref().map(|_| self.policy.policy())
    }

    /// Lives by what a view says of the switch and its shadow.
    pub fn follow(&self, view: &View, net: &dyn Net) {
        let mut reply = Nobody;
        engine::follow(&mut Here::new(self, net, Body::None, &mut reply), view);
    }

    /// Does something to the books of this home's memory, and lets all of it know.
    pub fn books<R>(&self, f: impl FnOnce(&mut HomeAgent) -> R) -> R {
        let (result, news) = {
            let mut home = self.homes[Shards::BOOKS].lock().whole();
            (f(&mut home.agent), home.agent.news())
        };
        if let Some(news) = &news {
            for home in &self.homes[1..self.shards.count()] {
                home.lock().whole().agent.hear(news);
            }
            self.homes[Shards::BOOKS].lock().whole().agent.heard(news);
        }
        result
    }

    /// Whether other nodes have anything of this home's memory, as far as it knows.
    pub fn is_held_elsewhere(&self) -> bool {
        let mut homes = self.homes[..self.shards.count()].iter();
        homes.any(|home| home.lock().whole().agent.is_held_elsewhere())
    }

    /// Memory for an object of `len` bytes, and whether it is zeros:
    /// made so here where the books and its block are behind one lock,
    /// and no cache has anything of it.
    pub fn give(&self, class: u64, len: u64) -> Option<(Tag, bool)> {
        self.books(|home| {
            let (object, zeros) = home.give_known(class)?;
            let block = self.cache.tag_of(object.0);
            let alone = self.shards.of(block) == Shards::BOOKS && self.cache.find(block).is_none();
            let wipe = &mut |from, len| self.memory.wipe(from, len);
            let zeros = zeros || (alone && home.wipe(object, len.next_multiple_of(8), wipe));
            Some((object, zeros))
        })
    }

    /// Makes a part of a block of this home zeros, where no cache has anything of it.
    /// Says whether it has.
    pub fn wipe(&self, from: Tag, len: u64) -> bool {
        let wipe = &mut |from, len| self.memory.wipe(from, len);
        let shard = self.shards.of(self.cache.tag_of(from.0));
        self.homes[shard].lock().whole().agent.wipe(from, len, wipe)
    }

    /// Does something with a block of this home in home's memory, at one moment, if that may be
    /// read or written in place.
    #[inline]
    pub fn in_place<R>(
        &self,
        tag: Tag,
        writes: bool,
        f: impl FnOnce(&[AtomicU64]) -> R,
    ) -> Option<R> {
        let home = self.homes[self.shards.of(tag)].lock().whole();
        let may = match writes {
            true => home.agent.has_alone(tag),
            false => home.agent.has_current(tag),
        };
        may.then(|| self.memory.block(tag).map(f)).flatten()
    }

    /// Does something to a word of this home in home's memory, if home's memory is all that there
    /// is of its block.
    pub fn at_home(&self, tag: Tag, f: impl FnOnce(&[AtomicU64]) -> u64) -> Option<u64> {
        let mut home = self.homes[self.shards.of(tag)].lock().whole();
        if !home.agent.has_alone(tag) {
            return None;
        }
        let old = self.memory.block(tag).map(f)?;
        home.agent.takes_turn(tag, self.node);
        Some(old)
    }

    /// Makes zeros of free blocks from one on, of which no cache has anything.
    /// Says which were looked at.
    ///
    /// The books stay locked, so that none of them is given out before it is zeros; nobody else
    /// holds two of these locks.
    pub fn clean(&self, from: u64, most: u64) -> Option<Range<u64>> {
        let mut books = self.homes[Shards::BOOKS].lock().whole();
        let part = books.agent.used_from(from, most)?;
        let discard = &mut |from, len| self.memory.discard(from, len);
        let block = self.cache.block_bytes() as u64;
        for nth in part.clone() {
            let Some(tag) = books.agent.nth_block(nth) else {
                continue;
            };
            let zeros = match self.shards.of(tag) {
                Shards::BOOKS => books.agent.wipe(tag, block, discard),
                shard => self.homes[shard]
                    .lock()
                    .whole()
                    .agent
                    .wipe(tag, block, discard),
            };
            if zeros {
                books.agent.cleaned(nth);
            }
        }
        Some(part)
    }

    /// All homes serve in the new epoch.
    pub fn resume(&self, net: &dyn Net) {
        let mut reply = Nobody;
        engine::resume(&mut Here::new(self, net, Body::None, &mut reply));
    }

    /// Whether a period of ownership migration has ended since this last said so.
    fn period_ended(&self) -> bool {
        let period: Duration = self.policy.period;
        let mut began = self.period.lock().whole();
        let due = self.migrating.is_some() && began.elapsed() >= period;
        if due {
            *began = Instant::now();
        }
        due
    }
}

impl Agents {
    /// Does what a packet asks for.
    pub fn serve(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        // What belongs to no epoch waits for none to begin.
        let of_none = || {
            let asks = matches!(engine::part(header), Part::Reach | Part::Inspect);
            asks || header.kind.is_fenced_by_config()
        };
        let waits = self.copies.is_some() && !of_none();
        let _here = waits.then(|| self.gate.read().whole());
        // Behind the gate: who ends an epoch locks entries, too. No thread waits for a pin in it.
        let early = match self.waiting.page(self, header) {
            Other::Elsewhere => None,
            Other::Locked(early) => Some(early),
            Other::Pinned => return,
        };
        let here = Here::new(self, net, body, reply).with(early);
        engine::packet(&mut here.at(header.offset), header);
    }
}

impl Handler for Agents {
    fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.packets.count(header.kind);
        if let Some(names) = &self.names {
            names.let_leave(net, reply);
            if names.takes(self, header, body) {
                return;
            }
        }
        self.kept.let_leave(net, reply);
        if self.kept.takes(self, net, header, body, reply) {
            return;
        }
        self.serve(net, header, body, reply);
    }

    fn tick(&self, net: &dyn Net) {
        if let Some(reach) = self.reach.get() {
            reach.tick(net, self.standing.epoch());
        }
        self.rebuilding.tick(self, net);
        if let Some(names) = &self.names {
            names.let_leave(net, &mut Nobody);
        }
        self.kept.let_leave(net, &mut Nobody);
        self.waiting.again(self, net);
        self.relieve(IN_A_TICK, net);
        if let Some(guest) = &self.guest {
            guest.tick(net, self.standing.epoch());
        }
        let mut reply = Nobody;
        let mut here = Here::new(self, net, Body::None, &mut reply);
        engine::tick(&mut here, self.period_ended());
    }
}
