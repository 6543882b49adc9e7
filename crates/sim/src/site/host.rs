//! The host of a node's engine.

use super::telling::{self, Before};
use super::{Cache, Form, LockDeed, Locks, Words};
use crate::world::Mutation;
use rackmem_proto::Output;
use rackmem_proto::engine::keeping::InPlace;
use rackmem_proto::engine::{
    self, Change, CoherentHost, Copies, Defect, FlowCc, Gcp, Home, Host, KeptCopies, Migrating,
    Note, Part, Payload, Protocols, Purpose, Recovery, Told,
};
use rackmem_proto::flowcc::{
    HomeAgent, HomeConfig, Interrupted, KeptBlocks, LocalStatus, Migration, Settled, ShadowConfig,
    Shards, Whereabouts,
};
use rackmem_proto::gcp::SEGMENT;
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Header, HomeId, MIN_BLOCK, NodeId, Record, Tag};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Bytes behind a header that is to be sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Load<B> {
    /// None.
    #[default]
    Nothing,
    /// A block.
    Block(B),
    /// Records.
    Records(Vec<Record>),
    /// What a lock protects.
    Words(Words),
}

/// What the engine wants done, or has done.
#[derive(Clone)]
pub enum Deed<B> {
    /// Send this.
    Sent(Output, Load<B>),
    /// A copy has this status from now on: because of an event for this, or of a packet.
    Copy(Tag, LocalStatus, Option<Purpose>),
    /// Something has happened.
    Noted(Note),
    /// Its home has made its entries anew, and these are what they were.
    Settled(Change, Vec<Before>),
    /// Something has happened to a lock.
    Lock(Tag, LockDeed),
    /// The event on this block has ended, and its slot is free.
    Free(Tag),
    /// The node goes on, in the epoch that it is in.
    Serves,
}

/// Which protocols a node speaks, and what it has of them besides its sections.
pub trait Speaks<B: Form>: Sized {
    /// The list.
    type Protocols: Protocols<Site<B, Self>>;

    /// How many bytes there are behind a header.
    fn body_len(_: &Header, body: &B::Body) -> u32 {
        B::len(body)
    }

    /// A packet for a part that is not in the engine.
    fn elsewhere(_: &mut Site<B, Self>, _: Part, _: &Header) {}

    /// What it has of homes that groups keep, if there are any.
    fn in_place(&self) -> Option<&InPlace> {
        None
    }

    /// The same.
    fn in_place_mut(&mut self) -> Option<&mut InPlace> {
        None
    }
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
    /// The view in which this home's entries were made. Copies of a node share it.
    pub settled: Arc<View>,
    /// Its cache.
    pub cache: Cache<B>,
    /// Its home, in shards as a library's node has them.
    pub homes: Vec<Home>,
    pub(super) shards: Shards,
    pub(super) memory: Memory<B>,
    /// What its cache does for others.
    pub copies: Copies<B>,
    /// What it does about the switch, if there is one, and which entries go there.
    pub migrating: Option<Box<Migrating>>,
    /// See [`Site::migrating`].
    pub policy: Option<Migration>,
    /// Its locks.
    pub locks: Locks<B>,
    /// What it has of the protocols that it speaks.
    pub part: X,
    /// Whether the kernel of its host answers for its agents what it can.
    pub in_kernel: bool,
    /// A defect.
    pub mutation: Option<Mutation>,
    /// What is to be carried out.
    pub deeds: Vec<Deed<B>>,
    /// Whether the packet at hand is for one of its requesters.
    pub passed: bool,
    /// Whether the kernel has answered the packet at hand.
    pub answered: bool,
    /// Whether it has taken away a copy by it that was written here.
    pub took_written: bool,
    /// Whether it has given one to a reader.
    pub gave: bool,
    /// Its part in a rebuild; elsewhere while something happens to it.
    pub recovery: Recovery<B>,
    /// The block whose copy is held, or was until it was let go in this step.
    held: Option<Tag>,
    before: Vec<Before>,
    /// Blocks that are at home here, of which it says what becomes of them.
    pub blocks: Vec<Tag>,
}

/// Home's memory, and the packet at hand.
#[derive(Clone)]
pub struct Memory<B: Form> {
    pub(super) blocks: BTreeMap<Tag, B>,
    pub(super) came: Option<(Header, B::Body)>,
    /// What a requester is to get that keeps no copy: one block.
    gathered: Load<B>,
    /// What was where a requester that keeps no copy has put a block.
    found: Option<B>,
    /// Blocks of it that the kernel of the host has as well.
    pub(super) twins: Twins<B>,
}

/// See [`Memory`].
#[derive(Clone)]
pub(super) struct Twins<B> {
    pub blocks: BTreeMap<Tag, B>,
    /// The kernel answers for the home.
    pub here: bool,
    /// A defect: what comes home does not come to them.
    pub stay: bool,
}

impl<B: Form> Memory<B> {
    pub(super) fn block(&mut self, tag: Tag) -> &mut B {
        self.blocks.entry(tag).or_insert_with(B::zeroes)
    }

    /// What a packet has brought home of a block that the switch decides about.
    fn follow(&mut self, tag: Tag) {
        let Twins { blocks, stay, .. } = &mut self.twins;
        if let (Some(twin), false) = (blocks.get_mut(&tag), *stay) {
            *twin = self.blocks.get(&tag).cloned().unwrap_or_else(B::zeroes);
        }
    }
}

impl<B: Form> engine::Memory for Memory<B> {
    type Bytes = B;

    fn store(&mut self, header: &Header) {
        if let Some((_, body)) = &self.came {
            let block = self.blocks.entry(header.tag).or_insert_with(B::zeroes);
            block.put(header.offset, body);
        }
        self.follow(header.tag);
    }

    fn put(&mut self, tag: Tag, bytes: &B) {
        *self.block(tag) = bytes.clone();
        self.follow(tag);
    }

    fn clear(&mut self, tag: Tag) {
        *self.block(tag) = B::zeroes();
        self.follow(tag);
    }

    fn gather(&mut self, tag: Tag) -> bool {
        let room = matches!(self.gathered, Load::Nothing);
        if room {
            self.gathered = Load::Block(self.block(tag).clone());
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

    fn can_operate(&self, _: Tag) -> bool {
        self.came.is_some()
    }

    fn operate(&mut self, tag: Tag) -> u64 {
        let Some((_, body)) = &self.came else {
            return 0;
        };
        let block = self.blocks.entry(tag).or_insert_with(B::zeroes);
        self.found = Some(block.clone());
        block.operate(body)
    }

    fn show(&mut self, tag: Tag) {
        if self.twins.here {
            let block = self.block(tag).clone();
            self.twins.blocks.entry(tag).or_insert(block);
        }
    }

    fn hide(&mut self, tag: Tag) {
        self.twins.blocks.remove(&tag);
    }

    fn hide_all(&mut self) {
        self.twins.blocks.clear();
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
            homes: agents.into_iter().map(Home::new).collect(),
            shards,
            policy: config.migration,
            cache,
            recovery: Recovery::new(config.block, fit),
            ..Site::bare(config.node, view, fit, part)
        };
        engine::spread(&mut site);
        site
    }

    /// A node that starts with `view`, and has no blocks: neither a home nor a cache of any.
    pub fn bare(id: NodeId, view: View, fit: usize, part: X) -> Self {
        Site {
            id,
            view,
            settled: Arc::new(view),
            cache: Cache::new(0),
            homes: Vec::new(),
            shards: Shards::ONE,
            memory: Memory {
                blocks: BTreeMap::new(),
                came: None,
                gathered: Load::Nothing,
                found: None,
                twins: Twins {
                    blocks: BTreeMap::new(),
                    here: false,
                    stay: false,
                },
            },
            copies: Copies::new(true),
            migrating: None,
            policy: None,
            locks: Locks {
                cells: BTreeMap::new(),
                told: Told::default(),
                cohort: 2,
                bytes: size_of::<Words>() as u32 / 8 * SEGMENT,
                loops: true,
                leaving: false,
                clock: 0,
            },
            part,
            in_kernel: false,
            mutation: None,
            deeds: Vec::new(),
            passed: false,
            answered: false,
            took_written: false,
            gave: false,
            recovery: Recovery::new(MIN_BLOCK as u32, fit),
            held: None,
            before: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Takes part in migration, as the shadow if it is the one.
    pub fn migrate(&mut self, shadow: ShadowConfig, tracked: u32, reported: usize) {
        let mut migrating = Migrating::new(shadow, tracked, reported);
        migrating.set_shadow(self.view.shadow, self.view.epoch);
        self.migrating = Some(Box::new(migrating));
    }

    /// With homes that groups keep.
    #[must_use]
    pub fn with_kept(mut self, config: HomeConfig) -> Self {
        self.shards = self.shards.with_kept();
        self.homes.push(Home::new(HomeAgent::of_groups(config)));
        self
    }

    /// A packet for its agents, and what it lets go on of a rebuild.
    pub fn take(&mut self, header: &Header, body: B::Body) {
        (self.passed, self.answered) = (false, false);
        (self.took_written, self.gave) = (false, false);
        if self.in_kernel && self.answered_in_kernel(header) {
            return;
        }
        self.memory.twins.here = self.in_kernel;
        self.memory.twins.stay = self.mutation == Some(Mutation::ProvideOld);
        self.memory.came = Some((*header, body));
        engine::packet(self, header);
        self.memory.came = None;
        if engine::part(header) == Part::Recovery {
            self.proceed();
        }
    }

    /// Something that happens to its part in a rebuild.
    pub fn recover<R>(&mut self, act: impl FnOnce(&mut Recovery<B>, &mut Self) -> R) -> R {
        let mut recovery = std::mem::replace(&mut self.recovery, Recovery::new(0, 0));
        let result = act(&mut recovery, self);
        self.recovery = recovery;
        result
    }

    /// Whether no rebuild is under way here.
    pub fn in_service(&self) -> bool {
        self.recovery.in_service()
    }

    /// The rack goes on to another epoch: nothing of the last one is served from here on.
    pub fn stop(&mut self, view: View, change: &Change) {
        self.view = view;
        engine::stop(self, change.members);
    }

    /// It has stopped, and so have its requesters: it takes its part in the rebuild.
    pub fn begin(&mut self, change: Change, cut: Vec<Interrupted>) {
        self.recover(|recovery, site| recovery.begin(change, cut, site));
    }

    /// Does what can be done of a rebuild.
    pub fn proceed(&mut self) {
        if self.recover(Recovery::proceed) {
            let view = self.view;
            engine::follow(self, &view);
            engine::resume(self);
            self.deeds.push(Deed::Serves);
        }
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
        self.cache.fingerprint(into);
        (&self.memory.blocks, &self.recovery).hash(into);
        if self.in_kernel {
            self.memory.twins.blocks.hash(into);
        }
    }
}

impl<B: Form, X: Speaks<B>> Host for Site<B, X> {
    type Protocols = X::Protocols;
    type Bytes = B;

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

    fn recovery(&mut self, section: impl FnOnce(&mut Recovery<B>, &mut Self)) {
        self.recover(section);
    }

    fn body_len(&self) -> u32 {
        let came = self.memory.came.as_ref();
        came.map_or(0, |(header, body)| X::body_len(header, body))
    }

    fn records(&self) -> Vec<Record> {
        let records = self.memory.came.as_ref().map(|(_, body)| B::records(body));
        records.unwrap_or_default()
    }

    fn send(&mut self, output: &Output, payload: Payload<'_, B>) {
        let load = match payload {
            Payload::Nothing => Load::Nothing,
            Payload::Copy => Load::Block(self.keep()),
            Payload::Kept(words) => Load::Block(words.clone()),
            Payload::Home => Load::Block(self.memory.block(output.header.tag).clone()),
            Payload::Gathered => std::mem::take(&mut self.memory.gathered),
            Payload::Records(records) => Load::Records(records.to_vec()),
        };
        self.deeds.push(Deed::Sent(*output, load));
    }

    fn elsewhere(&mut self, part: Part, header: &Header) {
        X::elsewhere(self, part, header);
    }

    fn note(&mut self, note: Note) {
        self.deeds.push(Deed::Noted(note));
    }

    fn defect(&self) -> Option<Defect> {
        self.mutation.and_then(Mutation::in_engine)
    }
}

impl<B: Form, X: Speaks<B>> CoherentHost for Site<B, X> {
    type Memory<'m>
        = Memory<B>
    where
        Self: 'm;

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
        self.migrating.as_deref_mut().map(section)
    }

    fn policy(&self) -> Option<Migration> {
        self.policy
    }

    fn hold(&mut self, tag: Tag, _: bool) -> Option<LocalStatus> {
        let (status, _) = self.cache.copy(tag)?;
        self.held = Some(tag);
        Some(status)
    }

    fn keep(&mut self) -> B {
        let held = self.held.and_then(|tag| self.cache.copy(tag));
        held.map_or_else(B::zeroes, |(_, words)| words.clone())
    }

    fn set(&mut self, status: LocalStatus) {
        let Some(tag) = self.held else {
            return;
        };
        let before = self.cache.status(tag);
        assert!(status <= before, "a packet gave a cache more rights");
        if before != status {
            self.deeds.push(Deed::Copy(tag, status, None));
            self.cache.lower(tag, status);
        }
        if Host::defect(self) == Some(Defect::DowngradeUnnoted) {
            self.cache.home_has(tag);
        }
    }

    fn cached(&mut self) -> Vec<(Tag, LocalStatus)> {
        let copy = |tag| Some((tag, self.cache.copy(tag)?.0));
        self.cache.tags().filter_map(copy).collect()
    }

    fn downgraded(&mut self) -> Vec<Tag> {
        self.cache.downgraded().collect()
    }

    fn home_has(&mut self, tag: Tag) {
        self.cache.home_has(tag);
    }

    fn clean(&mut self, tag: Tag) -> Option<B> {
        let (status, words) = self.cache.copy(tag)?;
        (status == LocalStatus::Shared).then(|| words.clone())
    }

    fn requester(&mut self, _: &Header) {
        self.passed = true;
    }

    fn settling(&mut self, _: &Change) {
        self.before = telling::entries(self);
    }

    fn settled(&mut self, change: &Change, _: Settled) {
        self.settled = Arc::new(self.view);
        let before = std::mem::take(&mut self.before);
        self.deeds.push(Deed::Settled(*change, before));
    }
}

impl<B: Form, X: Speaks<B>> KeptCopies for Site<B, X> {
    fn lay_out(&mut self, group: u16, blocks: KeptBlocks) -> u64 {
        let in_place = self.part.in_place_mut();
        let before = in_place.map_or(0, |in_place| {
            let before = in_place.blocks_of(group).base;
            in_place.lay_out(group, blocks);
            before
        });
        if let Some(shard) = self.shards.kept() {
            self.homes[shard].agent.lay_out(group, blocks);
        }
        before
    }

    fn whereabouts(&self, tag: Tag) -> Whereabouts {
        let in_place = self.part.in_place();
        in_place.map_or(Whereabouts::Unheard, |in_place| in_place.whereabouts(tag))
    }

    fn of_home(&self, group: u16) -> Vec<Tag> {
        let tags = self.cache.tags();
        tags.filter(|tag| tag.home().group() == Some(group))
            .collect()
    }

    fn drop_copy(&mut self, tag: Tag) {
        if self.cache.status(tag) != LocalStatus::Invalid {
            self.deeds.push(Deed::Copy(tag, LocalStatus::Invalid, None));
            self.cache.lower(tag, LocalStatus::Invalid);
        }
    }

    fn defect(&self) -> Option<Defect> {
        Host::defect(self)
    }
}
