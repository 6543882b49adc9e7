//! A node's home agent and cache agent, as the fabric calls them.

use crate::cache::Cache;
use crate::kept::Kept;
use crate::locked::Locks;
use crate::locked::compared::Compared;
use crate::membership::Role;
use crate::memory::GlobalMemory;
use crate::migration::Migrating;
use crate::reach::{self, Reach};
use crate::rebuilding::Rebuilding;
use crate::requester::Requesters;
use crate::standing::Standing;
use rackmem_fabric::{Body, Handler, Net, Nobody, PacketStats, Receiver};
use rackmem_proto::baseline::delegate::{self, Results};
use rackmem_proto::flowcc::cache_agent::{self, Reaction};
use rackmem_proto::flowcc::{
    Executed, HomeAction, HomeAgent, HomeConfig, HomeCounters, LocalStatus, Rebuild, ShadowCounters,
};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Copyset, Flags, GlobalStatus, Header, Kind, NodeId, Record, Tag};
use rackmem_proto::{Data, Dest, Output};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

/// In an AcceptLoss: the block begins anew, empty, and whatever home still had of it is gone.
pub(crate) const ACCEPT_EMPTY: u32 = 1;

/// The home agent's state and the results of delegated operations, which go together.
struct Home {
    agent: HomeAgent,
    results: Results,
}

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
    node: NodeId,
    pub standing: Arc<Standing>,
    /// Held while a packet is handled, on fabrics that can lose packets: an epoch ends between packets.
    gate: RwLock<()>,
    pub cache: Cache,
    pub memory: GlobalMemory,
    home: Mutex<Home>,
    /// What is kept on fabrics that can lose packets.
    pub kept: Kept,
    /// Its part in ownership migration, in a rack with a switch.
    migrating: Option<Migrating>,
    /// Its part when the directory is made anew.
    pub rebuilding: Rebuilding,
    /// Its part in locks.
    pub locks: Locks,
    /// Its part in locks over memory, and beside it.
    pub compared: Compared,
    /// Where to find this node's requesters, on fabrics whose requesters may have gone on.
    requesters: OnceLock<Weak<Requesters>>,
    /// Which members it can reach, where cables can be cut.
    reach: OnceLock<Arc<Reach>>,
    pub counters: AgentCounters,
    pub packets: PacketStats,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // State behind these locks is consistent between statements: a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agents {
    pub fn new(
        config: HomeConfig,
        cache_bytes: usize,
        lossy: bool,
        migrating: Option<Migrating>,
        standing: Arc<Standing>,
        rebuilding: Rebuilding,
        locks: Locks,
    ) -> Self {
        Agents {
            node: config.node,
            compared: Compared::new(config.node),
            locks,
            standing,
            rebuilding,
            gate: RwLock::new(()),
            cache: Cache::new(cache_bytes, config.block as usize),
            memory: GlobalMemory::new(config.block as usize, config.chunks, config.incarnation),
            home: Mutex::new(Home {
                agent: HomeAgent::new(config),
                results: Results::default(),
            }),
            kept: Kept::new(lossy),
            migrating,
            requesters: OnceLock::new(),
            reach: OnceLock::new(),
            counters: AgentCounters::default(),
            packets: PacketStats::default(),
        }
    }

    /// From now on, what comes here for a requester goes to it.
    pub fn plug(&self, requesters: &Arc<Requesters>) {
        let _ = self.requesters.set(Arc::downgrade(requesters));
    }

    /// From now on, looks which members it can reach.
    pub fn know(&self, reach: Arc<Reach>) {
        let _ = self.reach.set(reach);
    }

    fn to_requester(&self, net: &dyn Net, header: &Header, reply: &mut dyn Receiver) {
        let requesters = self.requesters.get().and_then(Weak::upgrade);
        if !requesters.is_some_and(|requesters| requesters.deliver(header)) {
            let to = Dest::Requester(header.requester);
            net.send(to, header, Body::None, reply);
        }
    }

    pub fn home_counters(&self) -> HomeCounters {
        locked(&self.home).agent.counters()
    }

    /// What this node's shadow has done and knows, if it keeps it.
    pub fn shadow(&self) -> Option<(ShadowCounters, usize)> {
        self.migrating.as_ref().and_then(Migrating::shadow)
    }

    pub fn chunks(&self) -> u32 {
        locked(&self.home).agent.chunks()
    }

    pub fn inspect(&self, tag: Tag) -> Option<(u16, GlobalStatus, u32, bool)> {
        let (lock, status, copyset, in_switch) = locked(&self.home).agent.inspect(tag)?;
        Some((lock, status, copyset.0, in_switch))
    }

    fn cache_agent(&self, net: &dyn Net, header: &Header, reply: &mut dyn Receiver) {
        let executed = self.kept.executed(header);
        if header.kind == Kind::ReadMiss {
            if header.status == GlobalStatus::Modified && executed != Executed::Old {
                self.kept.downgraded(header.tag);
            }
            return self.provide_shared(net, header, executed, reply);
        }
        let Some(entry) = self.cache.lock_tag(header.tag) else {
            return self.answer_without_copy(net, header, executed, reply);
        };
        let reaction = cache_agent::react(self.node, header, entry.status(), executed, true);
        let block = self.cache.block(entry.entry());
        if entry.status() != reaction.next {
            self.kept.left(header.tag);
        }
        if reaction.retain {
            self.kept.retain(header, block);
        }
        if reaction.next == LocalStatus::Invalid {
            self.counters.invalidated.fetch_add(1, Relaxed);
            if header.flags.has(Flags::IN_SWITCH)
                && let Some(migrating) = &self.migrating
            {
                migrating.invalidated(header.tag);
            }
        }
        // The bytes leave while the entry is locked: once it is invalid another block may move in.
        self.send(net, &reaction, block, reply);
        entry.set(reaction.next);
    }

    /// A read miss leaves the copy where it is, so it need not stay locked while its bytes travel: the entry's
    /// lock at its owner keeps writers and evictions away.
    fn provide_shared(
        &self,
        net: &dyn Net,
        header: &Header,
        executed: Executed,
        reply: &mut dyn Receiver,
    ) {
        let copy = self
            .cache
            .find(header.tag)
            .filter(|&entry| self.cache.status(entry) == LocalStatus::Shared);
        if let Some(entry) = copy {
            let reaction =
                cache_agent::react(self.node, header, LocalStatus::Shared, executed, true);
            return self.send(net, &reaction, self.cache.block(entry), reply);
        }
        let Some(entry) = self.cache.lock_tag(header.tag) else {
            return self.answer_without_copy(net, header, executed, reply);
        };
        let reaction = cache_agent::react(self.node, header, entry.status(), executed, true);
        let block = self.cache.block(entry.entry());
        entry.set(reaction.next);
        self.send(net, &reaction, block, reply);
    }

    /// No copy here: an invalidation has nothing to do, and data may have been retained.
    fn answer_without_copy(
        &self,
        net: &dyn Net,
        header: &Header,
        executed: Executed,
        reply: &mut dyn Receiver,
    ) {
        let kept = self.kept.recall(header);
        let has_data = kept.is_some();
        let invalid = LocalStatus::Invalid;
        let reaction = cache_agent::react(self.node, header, invalid, executed, has_data);
        self.send(net, &reaction, kept.as_deref().unwrap_or_default(), reply);
    }

    /// The rack is in a new epoch: packets of the last one do nothing here any more.
    pub fn enter(&self, view: &View) {
        let _nobody = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        self.standing.adopt(view);
        self.with_home(|home| home.freeze(view.epoch));
        self.kept.enter();
        self.locks.enter(view);
    }

    /// Lives by what a view says of the switch and its shadow.
    pub fn follow(&self, view: &View) {
        let Some(migrating) = &self.migrating else {
            return;
        };
        let policy = view.switch.map(|_| migrating.policy());
        self.with_home(|home| home.set_migration(policy));
        migrating.set_shadow(view.shadow, view.epoch);
    }

    /// Does something to the home agent.
    pub fn with_home<R>(&self, f: impl FnOnce(&mut HomeAgent) -> R) -> R {
        f(&mut locked(&self.home).agent)
    }

    /// Drops the copies of blocks whose home is not what it was, and what was kept for requesters that are no more: a
    /// node that comes back uses their numbers again.
    pub fn forget(&self, gone: Copyset) {
        self.kept.forget(gone);
        self.locks.forget(gone);
        self.compared.forget(gone);
        let copies = self.cache.copies();
        for (tag, _) in copies.filter(|(tag, _)| gone.contains(tag.home())) {
            if let Some(entry) = self.cache.lock_tag(tag) {
                entry.set(LocalStatus::Invalid);
            }
            self.kept.left(tag);
        }
    }

    fn send(
        &self,
        net: &dyn Net,
        reaction: &Reaction,
        block: &[AtomicU64],
        reply: &mut dyn Receiver,
    ) {
        for output in reaction.outputs.iter() {
            let body = match output.data {
                Data::Cache => Body::Block(block),
                _ => Body::None,
            };
            if output.header.flags.has(Flags::PROVIDER) && output.header.kind == Kind::Ack {
                self.counters.provided.fetch_add(1, Relaxed);
            }
            self.dispatch(net, output, body, reply);
        }
    }

    fn dispatch(&self, net: &dyn Net, output: &Output, body: Body<'_>, reply: &mut dyn Receiver) {
        for (to, header) in output.copies() {
            net.send(to, &header, body, reply);
        }
    }

    fn home_agent(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        let mut result = [0; 8];
        let outputs = {
            let mut home = locked(&self.home);
            // Nobody can be granted the block before the home agent's lock is let go of.
            let anew = header.kind == Kind::AcceptLoss
                && header.offset == ACCEPT_EMPTY
                && home.agent.lost(header.tag);
            let (outputs, action) = match (header.kind, body) {
                (Kind::Free, Body::Bytes(objects)) => {
                    let outputs = home.agent.free(header, Record::all(objects));
                    (outputs, HomeAction::None)
                }
                _ => home.agent.handle(header, body.len() as u32),
            };
            if anew && !home.agent.lost(header.tag) {
                let block = self.memory.block(header.tag).into_iter().flatten();
                block.for_each(|word| word.store(0, Relaxed));
            }
            match action {
                HomeAction::None => {}
                HomeAction::Store => {
                    if let Some(block) = self.memory.block(header.tag) {
                        body.copy_to(block, header.offset as usize);
                    }
                }
                HomeAction::Delegate(executed) => {
                    let old = self.delegate(header, body, executed);
                    result = home
                        .results
                        .settle(header.requester, executed, old)
                        .to_ne_bytes();
                }
            }
            outputs
        };
        for output in outputs.iter() {
            match output.data {
                Data::Home => match self.memory.block(header.tag) {
                    Some(block) => self.dispatch(net, output, Body::Block(block), reply),
                    None => {
                        self.counters.ignored.fetch_add(1, Relaxed);
                    }
                },
                Data::Operand => self.dispatch(net, output, Body::Bytes(&result), reply),
                _ => self.dispatch(net, output, Body::None, reply),
            }
        }
    }

    fn control_or_home(
        &self,
        net: &dyn Net,
        header: &Header,
        body: Body<'_>,
        reply: &mut dyn Receiver,
    ) {
        if let Some(migrating) = &self.migrating
            && Migrating::concerns(header.kind)
        {
            migrating.handle(net, header, body);
            let for_home = matches!(header.kind, Kind::AddAck | Kind::RemoveAck);
            if !for_home || header.requester.node != self.node {
                return;
            }
        }
        self.counters.at_home.fetch_add(1, Relaxed);
        self.home_agent(net, header, body, reply);
    }

    fn delegate(&self, header: &Header, body: Body<'_>, executed: Executed) -> u64 {
        let word = self
            .memory
            .block(header.tag)
            .and_then(|block| block.get(header.offset as usize / 8));
        let Some(word) = word else { return 0 };
        let old = word.load(Relaxed);
        let [operand, second] = body.operands();
        if executed == Executed::New
            && let Some(new) = delegate::apply(header.kind, old, operand, second)
        {
            word.store(new, Relaxed);
        }
        old
    }
}

impl Agents {
    /// Whether a packet is of this epoch, and its requester of an incarnation that is a member.
    fn is_of_now(&self, header: &Header) -> bool {
        let by_requester = header.kind.is_request()
            || matches!(
                header.kind,
                Kind::Unlock | Kind::WriteBack | Kind::Alloc | Kind::Free | Kind::AcceptLoss
            );
        let node = header.requester.node;
        if header.kind == Kind::Rebuild {
            self.standing.seen_epoch(header.epoch);
        }
        header.epoch == self.standing.epoch()
            && (!by_requester || header.incarnation == self.standing.incarnation(node))
    }
}

impl Handler for Agents {
    fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.packets.count(header.kind);
        if header.kind == Kind::Inspect {
            return self.locks.inspect(net, header, reply);
        }
        if matches!(header.kind, Kind::Ping | Kind::Pong) {
            return match self.reach.get() {
                Some(reach) => drop(reach.packet(net, header, reply)),
                None if header.kind == Kind::Ping => {
                    reach::answer(Role::Node(self.node), net, header, reply);
                }
                None => {}
            };
        }
        let _here = self
            .kept
            .lossy()
            .then(|| self.gate.read().unwrap_or_else(PoisonError::into_inner));
        if !self.is_of_now(header) {
            self.counters.ignored.fetch_add(1, Relaxed);
            return;
        }
        if Rebuild::concerns(header.kind) {
            return self.rebuilding.packet(self, net, header, body);
        }
        if Locks::concerns(header.kind) {
            return self.locks.packet(net, header, body, reply);
        }
        if Compared::concerns(header.kind) {
            return self.compared.packet(net, header, reply);
        }
        let forwarded = header.kind.is_request() && header.flags.has(Flags::GRANTED);
        if forwarded && header.status != GlobalStatus::Unshared {
            self.cache_agent(net, header, reply);
        } else if header.kind == Kind::WriteBackAck {
            self.to_requester(net, header, reply);
        } else {
            self.control_or_home(net, header, body, reply);
        }
    }

    fn tick(&self, net: &dyn Net) {
        if let Some(reach) = self.reach.get() {
            reach.tick(net, self.standing.epoch());
        }
        self.rebuilding.tick(net);
        self.locks.tick(net);
        self.compared.tick(net, self.standing.epoch());
        let period = self.migrating.as_ref().filter(|m| m.period_ended());
        let outputs: Vec<Output> = {
            let agent = &mut locked(&self.home).agent;
            let again: Vec<Output> = agent.resend().collect();
            let moves = if period.is_some() {
                agent.end_period()
            } else {
                agent.start_moves()
            };
            again.into_iter().chain(moves).collect()
        };
        for output in outputs {
            self.dispatch(net, &output, Body::None, &mut Nobody);
        }
        if let Some(migrating) = period {
            migrating.end_period(net, self.standing.epoch());
        }
    }
}
