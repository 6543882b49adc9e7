//! What a node's engine needs of a process: its cache, its memory,
//! its locks around the engine's sections, and a port.
//!
//! Nothing here decides what a packet means: `rackmem_proto::engine` does, and this carries it out.

use crate::bytes::mapped::Stop;
use crate::bytes::memory::GlobalMemory;
use crate::bytes::node_cache::LockedEntry;
use crate::bytes::twins::LentTwins;
use crate::host::agents::Agents;
use crate::host::atomics::apply;
use crate::host::gathered::Gathered;
use crate::host::names::Names;
use crate::host::objects::telling as objects;
use crate::host::replicated::telling;
use crate::host::{hot, rows, told};
use rackmem_fabric::Whole;
use rackmem_fabric::{Body, Net, Receiver, words};
use rackmem_proto::Output;
use rackmem_proto::call::Executed;
use rackmem_proto::engine::{
    self, Bounded, Change, CoherentHost, Copies, FlowCc, Gcp, Home, Host, Migrating, Note, Objects,
    Part, Payload, Recovery, Replicated,
};
use rackmem_proto::flowcc::{LocalStatus, Migration, Settled, Shards};
use rackmem_proto::wire::{AtomicOp, Flags, Header, HomeId, Kind, MAX_BODY, NodeId, Record, Tag};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A block's words, kept apart from cache and memory.
pub(crate) type Block = Arc<[AtomicU64]>;

/// Copies words; whoever calls keeps writers away.
pub(crate) fn kept_apart(from: &[AtomicU64]) -> Block {
    let copy: Block = from.iter().map(|_| AtomicU64::new(0)).collect();
    words::copy(&copy, from);
    copy
}

/// Records as a body.
pub(crate) fn bytes(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(|r| r.to_bytes()).collect()
}

fn records(body: Body<'_>) -> Vec<Record> {
    match body {
        Body::Bytes(bytes) => Record::all(bytes).collect(),
        _ => Vec::new(),
    }
}

/// The copy that the engine holds.
enum Held<'a> {
    Nothing,
    /// Its entry is locked.
    Locked(LockedEntry<'a>),
    /// Its entry is not, or not any more: what is in it may still be sent.
    Free(usize),
}

/// What a rebuild has come to.
#[derive(Default)]
pub(crate) struct Results {
    /// Of blocks, once they are settled.
    pub blocks: Option<Settled>,
    /// Locks that are lost.
    pub locks_lost: u64,
}

/// A node's agents, while a packet is handled or an epoch begins.
pub(crate) struct Here<'a> {
    pub(super) agents: &'a Agents,
    pub(super) net: &'a dyn Net,
    pub(super) body: Body<'a>,
    pub(super) reply: &'a mut dyn Receiver,
    /// Where the body of the packet at hand belongs.
    pub(super) offset: u32,
    held: Held<'a>,
    /// The page that the packet at hand is about, locked already.
    early: Option<LockedEntry<'a>>,
    /// Blocks of home's memory for a requester that keeps no copy.
    gathered: Gathered,
    /// Blocks that others' homes now have.
    pub rescued: u64,
    /// What a rebuild has come to.
    pub settled: Results,
}

impl<'a> Here<'a> {
    pub fn new(
        agents: &'a Agents,
        net: &'a dyn Net,
        body: Body<'a>,
        reply: &'a mut dyn Receiver,
    ) -> Self {
        Here {
            agents,
            net,
            body,
            reply,
            offset: 0,
            held: Held::Nothing,
            early: None,
            gathered: Gathered::default(),
            rescued: 0,
            settled: Results::default(),
        }
    }

    /// Of a packet whose body belongs there.
    pub fn at(mut self, offset: u32) -> Self {
        self.offset = offset;
        self
    }

    /// Of a packet about a page that this thread has locked for it.
    pub fn with(mut self, early: Option<LockedEntry<'a>>) -> Self {
        self.early = early;
        self
    }

    /// The words of the copy that is held, or was.
    fn copy(&self) -> &'a [AtomicU64] {
        let entry = match &self.held {
            Held::Nothing => return &[],
            Held::Locked(entry) => entry.entry(),
            Held::Free(entry) => *entry,
        };
        self.agents.cache.block(entry)
    }
}

/// Home's memory, and the body of the packet at hand.
pub(crate) struct Memory<'m> {
    memory: &'m GlobalMemory,
    twins: Option<&'m LentTwins>,
    names: Option<&'m Names>,
    body: Body<'m>,
    gathered: &'m mut Gathered,
    /// Bytes that may be gathered.
    room: usize,
}

impl engine::Memory for Memory<'_> {
    type Bytes = Block;

    fn store(&mut self, header: &Header) {
        if let Some(block) = self.memory.block(header.tag) {
            self.body.copy_to(block, header.offset as usize);
        }
        self.follow(header.tag);
    }

    fn put(&mut self, tag: Tag, bytes: &Block) {
        if let Some(block) = self.memory.block(tag) {
            words::copy(block, bytes);
        }
        self.follow(tag);
    }

    fn clear(&mut self, tag: Tag) {
        self.memory.block(tag).into_iter().for_each(words::zero);
        self.follow(tag);
    }

    fn gather(&mut self, tag: Tag) -> bool {
        let Some(block) = self.memory.block(tag) else {
            return false;
        };
        self.gathered.add(block, self.room)
    }

    fn scatter(&mut self, tag: Tag, nth: u16) {
        let Some(block) = self.memory.block(tag) else {
            return;
        };
        let len = block.len() * 8;
        let from = usize::from(nth) * len;
        match self.body {
            Body::Bytes(bytes) => {
                if let Some(part) = bytes.get(from..from + len) {
                    words::write(block, part);
                }
            }
            Body::Block(words) => {
                if let Some(part) = words.get(from / 8..) {
                    words::copy(block, part);
                }
            }
            Body::None => {}
        }
    }

    fn can_operate(&self, tag: Tag) -> bool {
        self.operation(tag).is_some()
    }

    fn operate(&mut self, tag: Tag) -> u64 {
        let asked = self.operation(tag);
        asked.map_or(0, |(op, word)| apply(op, word))
    }

    fn show(&mut self, tag: Tag) {
        let Some(twins) = self.twins else { return };
        // What a packet about the table of regions says waits for a majority.
        if self.names.is_some_and(|names| names.has(tag)) {
            return;
        }
        if let Some(block) = self.memory.block(tag) {
            twins.show(tag, block);
        }
    }

    fn hide(&mut self, tag: Tag) {
        self.twins.into_iter().for_each(|twins| twins.hide(tag));
    }

    fn hide_all(&mut self) {
        self.twins.into_iter().for_each(LentTwins::hide_all);
    }
}

impl Memory<'_> {
    /// What has come home of a block comes to the kernel before anybody is told. (What is written
    /// in place is of no block that the switch decides about.)
    fn follow(&self, tag: Tag) {
        if let (Some(twins), Some(block)) = (self.twins, self.memory.block(tag)) {
            twins.write(tag, block);
        }
    }

    /// What the packet at hand says is to be done, and to which word of this block.
    fn operation(&self, tag: Tag) -> Option<(AtomicOp, &AtomicU64)> {
        let Body::Bytes(bytes) = self.body else {
            return None;
        };
        let (op, nth) = AtomicOp::from_bytes(bytes)?;
        let word = self.memory.block(tag)?.get(nth as usize)?;
        Some((op, word))
    }
}

impl Host for Here<'_> {
    type Protocols = (FlowCc, Gcp, Replicated, Objects, Bounded);
    type Bytes = Block;

    fn me(&self) -> NodeId {
        self.agents.node
    }

    fn epoch(&self) -> u32 {
        self.agents.standing.epoch()
    }

    fn host_of(&self, home: HomeId) -> Option<NodeId> {
        self.agents.standing.host(home)
    }

    fn incarnation(&self, node: NodeId) -> u32 {
        self.agents.standing.incarnation(node)
    }

    fn recovery(&mut self, section: impl FnOnce(&mut Recovery<Block>, &mut Self)) {
        let agents = self.agents;
        agents.rebuilding.packet(|recovery| {
            section(recovery, self);
            std::mem::take(&mut self.rescued)
        });
    }

    fn body_len(&self) -> u32 {
        self.body.len() as u32
    }

    fn records(&self) -> Vec<Record> {
        records(self.body)
    }

    fn send(&mut self, output: &Output, payload: Payload<'_, Block>) {
        let agents = self.agents;
        let (listed, gathered, apart);
        let body = match payload {
            Payload::Nothing => Body::None,
            Payload::Copy => Body::Block(self.copy()),
            Payload::Kept(block) => Body::Block(block),
            // Another region may have the memory while it is sent.
            Payload::Home if !output.header.tag.home().is_own() => {
                let home = agents.homes[agents.shards.of(output.header.tag)].lock();
                let _whole = home.whole();
                let block = agents.memory.block(output.header.tag);
                let Some(block) = block.map(kept_apart) else {
                    agents.counters.ignored.fetch_add(1, Relaxed);
                    return;
                };
                apart = block;
                Body::Block(&apart)
            }
            Payload::Home => match agents.memory.block(output.header.tag) {
                Some(block) => Body::Block(block),
                None => {
                    agents.counters.ignored.fetch_add(1, Relaxed);
                    return;
                }
            },
            Payload::Gathered => {
                gathered = std::mem::take(&mut self.gathered);
                Body::Block(gathered.blocks())
            }
            Payload::Records(records) => {
                listed = bytes(records);
                Body::Bytes(&listed)
            }
        };
        if output.header.flags.has(Flags::PROVIDER) && output.header.kind == Kind::Ack {
            agents.counters.provided.fetch_add(1, Relaxed);
        }
        for (to, header) in output.copies(|home| agents.standing.host(home)) {
            self.net.send(to, &header, body, self.reply);
        }
    }

    fn elsewhere(&mut self, part: Part, header: &Header) {
        let (agents, net) = (self.agents, self.net);
        match part {
            Part::Reach => agents.reach(net, header, self.reply),
            Part::Inspect if header.offset == rows::ASK_ROWS => {
                rows::inspect(agents, agents.locks.room, net, header, self.reply);
            }
            Part::Inspect if header.offset == telling::ASK_GROUPS => {
                telling::inspect(agents, agents.locks.room, net, header, self.reply);
            }
            Part::Inspect if header.offset == objects::ASK_OBJECTS => {
                objects::inspect(agents, agents.locks.room, net, header, self.reply);
            }
            Part::Inspect if header.offset == told::ASK_FIGURES => {
                told::inspect(agents, agents.locks.room, net, header, self.reply);
            }
            Part::Inspect if header.offset == hot::ASK_HOT => {
                hot::inspect(agents, agents.locks.room, net, header, self.reply);
            }
            Part::Inspect => agents.locks.inspect(net, header, self.reply),
            Part::Guest => match &agents.guest {
                Some(guest) => guest.packet(net, header, self.body, self.reply),
                None => drop(agents.counters.ignored.fetch_add(1, Relaxed)),
            },
            _ => {}
        }
    }

    fn note(&mut self, note: Note) {
        let agents = self.agents;
        let counters = &agents.counters;
        match note {
            Note::NotOfNow { later } => {
                counters.ignored.fetch_add(1, Relaxed);
                // Whoever has just come would wait until this node looks by itself.
                if later {
                    agents.standing.hurry();
                }
            }
            Note::AtHome => drop(counters.at_home.fetch_add(1, Relaxed)),
            Note::Rescued(tag) if !self.is_home_of(tag) => self.rescued += 1,
            _ => {}
        }
    }
}

impl CoherentHost for Here<'_> {
    type Memory<'m>
        = Memory<'m>
    where
        Self: 'm;

    fn shards(&self) -> Shards {
        self.agents.shards
    }

    fn home<'m, R>(
        &'m mut self,
        shard: usize,
        section: impl FnOnce(&mut Home, &mut Memory<'m>) -> R,
    ) -> R {
        let mut memory = Memory {
            memory: &self.agents.memory,
            twins: self.agents.twins.as_ref(),
            names: self.agents.names.as_ref(),
            body: self.body,
            gathered: &mut self.gathered,
            room: self.net.segment(MAX_BODY),
        };
        section(&mut self.agents.homes[shard].lock().whole(), &mut memory)
    }

    fn copies<R>(&mut self, section: impl FnOnce(&mut Copies<Block>) -> R) -> R {
        match &self.agents.copies {
            Some(copies) => section(&mut copies.lock().whole()),
            // Nothing is ever kept, so there is nothing to share.
            None => section(&mut Copies::new(false)),
        }
    }

    fn executed(&mut self, header: &Header) -> Option<Executed> {
        let desk = self.agents.desk.as_ref()?;
        Some(desk.execute(header.requester, header.seq))
    }

    fn migrating<R>(&mut self, section: impl FnOnce(&mut Migrating) -> R) -> Option<R> {
        let migrating = self.agents.migrating.as_ref()?;
        Some(section(&mut migrating.lock().whole()))
    }

    fn policy(&self) -> Option<Migration> {
        self.agents.policy()
    }

    fn hold(&mut self, tag: Tag, reads: bool) -> Option<LocalStatus> {
        let cache = &self.agents.cache;
        if let Some(early) = self.early.take() {
            let status = early.status();
            if status == LocalStatus::Invalid {
                return None;
            }
            self.held = Held::Locked(early);
            return Some(status);
        }
        if reads && let Some(entry) = cache.find(tag) {
            let status = cache.status(entry);
            if status == LocalStatus::Shared {
                self.held = Held::Free(entry);
                return Some(status);
            }
        }
        let entry = cache.lock_tag(tag, Stop::to_give(reads))?;
        let status = entry.status();
        if status == LocalStatus::Invalid {
            return None;
        }
        self.held = Held::Locked(entry);
        Some(status)
    }

    fn keep(&mut self) -> Block {
        kept_apart(self.copy())
    }

    fn set(&mut self, status: LocalStatus) {
        match std::mem::replace(&mut self.held, Held::Nothing) {
            Held::Locked(entry) => {
                self.held = Held::Free(entry.entry());
                entry.set(status);
                if status == LocalStatus::Invalid {
                    self.agents.counters.invalidated.fetch_add(1, Relaxed);
                }
            }
            other => self.held = other,
        }
    }

    fn cached(&mut self) -> Vec<(Tag, LocalStatus)> {
        let agents = self.agents;
        let Some(names) = &agents.names else {
            return agents.cache.copies().collect();
        };
        // The table begins anew with each epoch, from what a majority has.
        let (table, others): (Vec<_>, _) =
            (agents.cache.copies()).partition(|(tag, _)| names.is_a_table(*tag, &agents.standing));
        for (tag, _) in table {
            if self.hold(tag, false).is_some() {
                self.set(LocalStatus::Invalid);
            }
        }
        others
    }

    fn downgraded(&mut self) -> Vec<Tag> {
        let agents = self.agents;
        // Where nothing is lost, what was sent home is there.
        let lossy = agents.copies.iter();
        lossy.flat_map(|_| agents.cache.downgraded()).collect()
    }

    fn home_has(&mut self, tag: Tag) {
        self.agents.cache.home_has(tag);
    }

    fn clean(&mut self, tag: Tag) -> Option<Block> {
        let cache = &self.agents.cache;
        let entry = cache.find(tag)?;
        let clean = cache.status(entry) == LocalStatus::Shared;
        clean.then(|| cache.read(tag, kept_apart)).flatten()
    }

    fn requester(&mut self, header: &Header) {
        self.agents.to_requester(self.net, header, self.reply);
    }

    fn settled(&mut self, _: &Change, settled: Settled) {
        self.settled.blocks = Some(settled);
    }
}
