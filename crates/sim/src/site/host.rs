//! The host of a node's engine.

use super::{Cache, Form, LockDeed, Locks, Words};
use crate::world::Mutation;
use rackmem_proto::Output;
use rackmem_proto::engine::{
    self, Change, Copies, Defect, FlowCc, Gcp, Home, Host, Migrating, Note, Part, Payload,
    Protocols, Recovery,
};
use rackmem_proto::flowcc::{
    HomeAgent, HomeConfig, Interrupted, LocalStatus, Migration, Settled, ShadowConfig, Shards,
};
use rackmem_proto::gcp::SEGMENT;
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Copyset, GlobalStatus, Header, HomeId, NodeId, Record, Tag};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// Bytes behind a header that is to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Load<B> {
    /// None.
    Nothing,
    /// A block.
    Block(B),
    /// Records.
    Records(Vec<Record>),
    /// What a lock protects.
    Words(Words),
}

/// A block, its entry (lock word, status, copyset, and whether the switch owned it),
/// and whether its last content was lost.
pub type Before = (Tag, Option<(u16, GlobalStatus, Copyset, bool)>, bool);

/// What the engine wants done, or has done.
#[derive(Clone)]
pub enum Deed<B> {
    /// Send this.
    Sent(Output, Load<B>),
    /// A copy has come or gone, or its status has changed; in the words of a story.
    Copy(Tag, &'static str),
    /// Something has happened.
    Noted(Note),
    /// Its home has made its entries anew, and these are what they were.
    Settled(Change, Vec<Before>),
    /// Something has happened to a lock.
    Lock(Tag, LockDeed),
}

/// Which protocols a node speaks, and what it has of them besides its sections.
pub trait Speaks<B: Form>: Sized {
    /// The list.
    type Protocols: Protocols<Site<B, Self>>;

    /// A packet for a part that is not in the engine.
    fn elsewhere(_: &mut Site<B, Self>, _: Part, _: &Header) {}
}

/// What ships.
#[derive(Clone, Copy, Debug)]
pub struct Product;

impl<B: Form> Speaks<B> for Product {
    type Protocols = (FlowCc, Gcp);
}

/// See the module.
#[derive(Clone)]
pub struct Site<B: Form, X = Product> {
    /// Its number.
    pub id: NodeId,
    /// What it knows of the rack.
    pub view: View,
    /// The view in which this home's entries were made.
    pub settled: View,
    /// Its cache.
    pub cache: Cache<B>,
    /// Its home, in shards as a library's node has them.
    pub homes: Vec<Home>,
    shards: Shards,
    pub(super) memory: Memory<B>,
    /// What its cache does for others.
    pub copies: Copies<B>,
    /// What it does about the switch, if there is one, and which entries go there.
    pub migrating: Option<Migrating>,
    /// See [`Site::migrating`].
    pub policy: Option<Migration>,
    /// Its locks.
    pub locks: Locks,
    /// What it has of the protocols that it speaks.
    pub part: X,
    /// A defect.
    pub mutation: Option<Mutation>,
    /// What is to be carried out.
    pub deeds: Vec<Deed<B>>,
    /// Whether the packet at hand is for one of its requesters.
    pub passed: bool,
    /// Elsewhere while something happens to it.
    recovery: Option<Recovery<B>>,
    /// The copy that is held, or was until it was let go in this step.
    held: Option<(usize, Tag)>,
    before: Vec<Before>,
    /// Blocks that are at home here, of which it says what becomes of them.
    pub blocks: Vec<Tag>,
}

/// Home's memory, and the packet at hand.
#[derive(Clone)]
pub struct Memory<B: Form> {
    blocks: BTreeMap<Tag, B>,
    pub(super) came: Option<(Header, B::Body)>,
    /// What a requester is to get that keeps no copy: one block.
    gathered: Option<B>,
    /// What was where a requester that keeps no copy has put a block.
    found: Option<B>,
}

impl<B: Form> Memory<B> {
    fn block(&mut self, tag: Tag) -> &mut B {
        self.blocks.entry(tag).or_insert_with(B::zeroes)
    }
}

impl<B: Form> engine::Memory for Memory<B> {
    type Bytes = B;

    fn store(&mut self, header: &Header) {
        if let Some((_, body)) = &self.came {
            let block = self.blocks.entry(header.tag).or_insert_with(B::zeroes);
            block.put(header.offset, body);
        }
    }

    fn put(&mut self, tag: Tag, bytes: &B) {
        *self.block(tag) = bytes.clone();
    }

    fn clear(&mut self, tag: Tag) {
        *self.block(tag) = B::zeroes();
    }

    fn gather(&mut self, tag: Tag) -> bool {
        let room = self.gathered.is_none();
        if room {
            self.gathered = Some(self.block(tag).clone());
        }
        room
    }

    fn scatter(&mut self, tag: Tag, _: u16) {
        if let Some((_, body)) = &self.came {
            let block = self.blocks.entry(tag).or_insert_with(B::zeroes);
            self.found = Some(block.clone());
            block.put(0, body);
        }
    }
}

impl<B: Form, X: Speaks<B>> Site<B, X> {
    /// A node that starts with `view`, and whose home has given so many chunks out. Lists go in
    /// packets of `fit` records.
    pub fn new(
        config: HomeConfig,
        (shards, given, fit): (u32, u32, usize),
        view: View,
        cache: Cache<B>,
        part: X,
    ) -> Self {
        let shards = Shards::new(shards, config.block);
        let mut agents = HomeAgent::sharded(config, shards);
        agents[Shards::BOOKS].grow(given);
        let mut site = Site {
            id: config.node,
            view,
            settled: view,
            cache,
            homes: agents.into_iter().map(Home::new).collect(),
            shards,
            memory: Memory {
                blocks: BTreeMap::new(),
                came: None,
                gathered: None,
                found: None,
            },
            copies: Copies::new(true),
            migrating: None,
            policy: config.migration,
            locks: Locks {
                cohort: 2,
                bytes: size_of::<Words>() as u32 / 8 * SEGMENT,
                loops: true,
                ..Locks::default()
            },
            part,
            mutation: None,
            deeds: Vec::new(),
            passed: false,
            recovery: Some(Recovery::new(config.block, fit)),
            held: None,
            before: Vec::new(),
            blocks: Vec::new(),
        };
        engine::spread(&mut site);
        site
    }

    /// Takes part in migration, as the shadow if it is the one.
    pub fn migrate(&mut self, shadow: ShadowConfig, tracked: u32, reported: usize) {
        self.migrating = Some(Migrating::new(shadow, tracked, reported));
        self.choose_shadow();
    }

    /// Lives by what its view says of the shadow.
    pub fn choose_shadow(&mut self) {
        if let Some(migrating) = &mut self.migrating {
            migrating.set_shadow(self.view.shadow, self.view.epoch);
        }
    }

    /// A packet for its agents.
    pub fn take(&mut self, header: &Header, body: B::Body) {
        self.memory.came = Some((*header, body));
        engine::packet(self, header);
        self.memory.came = None;
    }

    /// Something that happens to it because of no packet.
    pub fn recover<R>(&mut self, act: impl FnOnce(&mut Recovery<B>, &mut Self) -> R) -> Option<R> {
        let mut recovery = self.recovery.take()?;
        let result = act(&mut recovery, self);
        self.recovery = Some(recovery);
        Some(result)
    }

    /// Its part in a rebuild.
    pub fn recovery(&self) -> &Recovery<B> {
        let recovery = self.recovery.as_ref();
        recovery.expect("it is back when something has happened to it")
    }

    /// Whether no rebuild is under way here.
    pub fn in_service(&self) -> bool {
        self.recovery().in_service()
    }

    /// The rack goes on to another epoch: nothing of the last one is served from here on.
    pub fn stop(&mut self, view: View, change: &Change) {
        self.view = view;
        engine::stop(self, change.members);
    }

    /// It has stopped, and so have its requesters: it takes its part in the rebuild.
    pub fn begin(&mut self, change: Change, cut: Vec<Interrupted>) {
        if let Some(migrating) = &mut self.migrating {
            migrating.set_shadow(None, self.view.epoch);
        }
        self.recover(|recovery, site| recovery.begin(change, cut, site));
    }

    /// Does what can be done. True once, when it goes on.
    pub fn proceed(&mut self) -> bool {
        let goes_on = self.recover(Recovery::proceed) == Some(true);
        if goes_on {
            self.choose_shadow();
            engine::resume(self);
        }
        goes_on
    }

    /// A rebuild that is over, without a trace.
    pub fn forget_rebuild(&mut self, block: u32, fit: usize) {
        self.recovery = Some(Recovery::new(block, fit));
    }

    /// What was in its memory where a requester that keeps no copy has just put a block.
    pub fn overwritten(&mut self) -> Option<B> {
        self.memory.found.take()
    }

    /// A block of its memory.
    pub fn memory(&mut self, tag: Tag) -> &mut B {
        self.memory.block(tag)
    }

    /// The home agent that has a block.
    pub fn home_of(&mut self, tag: Tag) -> &mut HomeAgent {
        &mut self.homes[self.shards.of(tag)].agent
    }

    /// The one that has the books.
    pub fn books(&self) -> &HomeAgent {
        &self.homes[Shards::BOOKS].agent
    }

    /// Moves under way.
    pub fn moves(&self) -> impl Iterator<Item = Output> {
        self.agents().flat_map(HomeAgent::resend)
    }

    /// All of them.
    pub fn agents(&self) -> impl Iterator<Item = &HomeAgent> {
        self.homes.iter().map(|home| &home.agent)
    }

    /// Everything that decides what it will do, but for its locks.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        let live = self.view.live.iter();
        let started: Vec<_> = live
            .map(|node| (node, self.view.incarnation(node)))
            .collect();
        (self.view.epoch, started).hash(into);
        (self.settled.epoch, self.settled.founders).hash(into);
        self.agents().for_each(|agent| agent.fingerprint(into));
        self.copies.fingerprint(into);
        (&self.memory.blocks, self.cache.slots(), &self.recovery).hash(into);
    }
}

impl<B: Form, X: Speaks<B>> Host for Site<B, X> {
    type Protocols = X::Protocols;
    type Bytes = B;
    type Memory<'m>
        = Memory<B>
    where
        Self: 'm;

    fn me(&self) -> NodeId {
        self.id
    }

    fn epoch(&self) -> u32 {
        self.view.epoch
    }

    fn host_of(&self, home: HomeId) -> Option<NodeId> {
        self.view.host(home)
    }

    fn incarnation(&self, node: NodeId) -> u32 {
        let incarnations = &self.view.incarnations;
        incarnations.get(usize::from(node)).copied().unwrap_or(0)
    }

    fn shards(&self) -> Shards {
        self.shards
    }

    fn home<'m, R>(
        &'m mut self,
        shard: usize,
        section: impl FnOnce(&mut Home, &mut Self::Memory<'m>) -> R,
    ) -> R {
        section(&mut self.homes[shard], &mut self.memory)
    }

    fn copies<R>(&mut self, section: impl FnOnce(&mut Copies<B>) -> R) -> R {
        section(&mut self.copies)
    }

    fn migrating<R>(&mut self, section: impl FnOnce(&mut Migrating) -> R) -> Option<R> {
        self.migrating.as_mut().map(section)
    }

    fn policy(&self) -> Option<Migration> {
        self.policy
    }

    fn recovery(&mut self, section: impl FnOnce(&mut Recovery<B>, &mut Self)) {
        self.recover(section);
    }

    fn body_len(&self) -> u32 {
        self.memory
            .came
            .as_ref()
            .map_or(0, |(_, body)| B::len(body))
    }

    fn records(&self) -> Vec<Record> {
        let records = self.memory.came.as_ref().map(|(_, body)| B::records(body));
        records.unwrap_or_default()
    }

    fn hold(&mut self, tag: Tag, _: bool) -> Option<LocalStatus> {
        let at = self.cache.find(tag)?;
        self.held = Some((at, tag));
        Some(self.cache.slot(at).status)
    }

    fn keep(&mut self) -> B {
        let held = self.held.map(|(at, _)| self.cache.slot(at).words.clone());
        held.unwrap_or_else(B::zeroes)
    }

    fn set(&mut self, status: LocalStatus) {
        let Some((at, tag)) = self.held else {
            return;
        };
        let before = self.cache.slot(at).status;
        assert!(status <= before, "a packet gave a cache more rights");
        if before != status {
            let invalid = status == LocalStatus::Invalid;
            let text = if invalid { "invalid" } else { "downgraded" };
            self.deeds.push(Deed::Copy(tag, text));
            self.cache.lower(at, tag, status);
        }
    }

    fn cached(&mut self) -> Vec<(Tag, LocalStatus)> {
        let copy = |tag| Some((tag, self.cache.copy(tag)?.0));
        self.cache.tags().filter_map(copy).collect()
    }

    fn clean(&mut self, tag: Tag) -> Option<B> {
        let (status, words) = self.cache.copy(tag)?;
        (status == LocalStatus::Shared).then(|| words.clone())
    }

    fn send(&mut self, output: &Output, payload: Payload<'_, B>) {
        let load = match payload {
            Payload::Nothing => Load::Nothing,
            Payload::Copy => Load::Block(self.keep()),
            Payload::Kept(words) => Load::Block(words.clone()),
            Payload::Home => Load::Block(self.memory.block(output.header.tag).clone()),
            Payload::Gathered => self
                .memory
                .gathered
                .take()
                .map_or(Load::Nothing, Load::Block),
            Payload::Records(records) => Load::Records(records.to_vec()),
        };
        self.deeds.push(Deed::Sent(*output, load));
    }

    fn requester(&mut self, _: &Header) {
        self.passed = true;
    }

    fn elsewhere(&mut self, part: Part, header: &Header) {
        X::elsewhere(self, part, header);
    }

    fn settling(&mut self, _: &Change) {
        let (homes, shards) = (&mut self.homes, self.shards);
        let before = self.blocks.iter().map(|&tag| {
            let home = &mut homes[shards.of(tag)].agent;
            (tag, home.inspect(tag), home.lost(tag))
        });
        self.before = before.collect();
    }

    fn settled(&mut self, change: &Change, _: Settled) {
        self.settled = self.view;
        let before = std::mem::take(&mut self.before);
        self.deeds.push(Deed::Settled(*change, before));
    }

    fn note(&mut self, note: Note) {
        self.deeds.push(Deed::Noted(note));
    }

    fn defect(&self) -> Option<Defect> {
        self.mutation.and_then(Mutation::in_engine)
    }
}
