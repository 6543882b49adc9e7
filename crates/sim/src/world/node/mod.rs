//! A node of a world: its agents, its memory and its cache, wired as the library wires them.

mod epoch;

pub use epoch::{FIT, Settling};

use crate::world::block::{self, BLOCK_BYTES, Block, zeroed};
use crate::world::cache::Cache;
use crate::world::fabric::{Fabric, Occurrence, Packet};
use crate::world::keeping::Lease;
use crate::world::mutate::STRANGE_SLOT;
use crate::world::mutation::Mutation;
use epoch::Renewal;
use rackmem_proto::baseline::delegate::{self, Results};
use rackmem_proto::flowcc::cache_agent::{self, Reaction};
use rackmem_proto::flowcc::{
    Call, Executed, Heat, HomeAction, HomeAgent, HomeConfig, LastExecuted, LocalStatus, Shadow,
    ShadowConfig,
};
use rackmem_proto::flowcc::{Migration, Rebuild};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Flags, GlobalStatus, Header, Kind, NodeId, RequesterId, Seq, Tag};
use rackmem_proto::{Data, Dest, Output};
use std::collections::{BTreeMap, BTreeSet};

/// A node's part in ownership migration, beside its home agent's.
struct Migrating {
    config: ShadowConfig,
    shadow_node: Option<NodeId>,
    shadow: Option<Shadow>,
    /// Invalidations here of the switch's blocks.
    heat: Heat,
    ticks: u32,
}

/// Ticks of a period.
const PERIOD: u32 = 5;

/// Whether a node takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It does.
    Up,
    /// Its lease is over: no thread goes on, but its agents still answer whoever asks them.
    Fenced,
    /// It is dead.
    Down,
    /// It has left as it should.
    Left,
}

/// Everything of a node but its threads.
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Whether it takes part.
    pub standing: Standing,
    /// To when it may serve.
    pub lease: Lease,
    /// What it knows of the rack.
    pub view: View,
    /// Its world's blocks that are at home here.
    pub blocks: Vec<Tag>,
    /// Its cache.
    pub cache: Cache,
    /// Its home agent.
    pub home: HomeAgent,
    memory: BTreeMap<Tag, Block>,
    executed: LastExecuted,
    retained: BTreeMap<RequesterId, (Seq, Tag, Block)>,
    /// Blocks that it gave to a reader while it was their writer: until that is sure, home may not have them.
    downgraded: BTreeSet<Tag>,
    /// Events that the end of an epoch has cut off, and blocks read under them; until the rebuild is done.
    open: Vec<rackmem_proto::flowcc::Open>,
    unfinished: BTreeSet<Tag>,
    /// The view in which this home's entries were made.
    settled: View,
    renewal: Option<Renewal>,
    migration: Option<Migration>,
    results: Results,
    /// Its threads may go on.
    pub poked: bool,
    early: bool,
    /// Times its entries were made anew.
    pub rebuilds: u64,
    /// Blocks sent home because home might not have them.
    pub rescued: u64,
    /// Blocks whose loss was accepted, with what home has.
    pub accepted: Vec<Tag>,
    /// Delegated operations carried out: block, kind, what was there.
    pub delegated: Vec<Delegated>,
    parked: Vec<usize>,
    mutation: Option<Mutation>,
    /// What it does about the switch, if there is one.
    migrating: Option<Migrating>,
    /// How often retained data was what answered.
    pub recalled: u64,
}

impl Node {
    /// A node that has handed out its first chunk.
    pub fn new(
        config: HomeConfig,
        view: View,
        cache: usize,
        blocks: Vec<Tag>,
        mutation: Option<Mutation>,
    ) -> Self {
        let mut home = HomeAgent::new(config);
        home.grow(1);
        Node {
            id: config.node,
            standing: Standing::Up,
            lease: Lease::default(),
            view,
            blocks,
            downgraded: BTreeSet::new(),
            open: Vec::new(),
            unfinished: BTreeSet::new(),
            settled: view,
            renewal: None,
            migration: config.migration,
            results: Results::default(),
            poked: false,
            early: false,
            rebuilds: 0,
            rescued: 0,
            accepted: Vec::new(),
            delegated: Vec::new(),
            cache: Cache::new(cache),
            home,
            memory: BTreeMap::new(),
            executed: LastExecuted::default(),
            retained: BTreeMap::new(),
            parked: Vec::new(),
            mutation,
            migrating: None,
            recalled: 0,
        }
    }

    /// Takes part in migration, as the shadow if it is the one.
    pub fn migrate(&mut self, ways: u8, sets: usize) {
        let config = ShadowConfig {
            patience: 20,
            ..ShadowConfig::new(self.id, self.view.epoch, ways, sets)
        };
        self.migrating = Some(Migrating {
            config,
            shadow_node: None,
            shadow: None,
            heat: Heat::new(16),
            ticks: 0,
        });
        self.choose_shadow();
    }

    /// The shadow, if this node keeps it.
    pub fn shadow(&self) -> Option<&Shadow> {
        self.migrating.as_ref()?.shadow.as_ref()
    }

    /// A block of this node's memory.
    pub fn memory(&mut self, tag: Tag) -> &mut Block {
        self.memory.entry(tag).or_insert_with(zeroed)
    }

    /// A thread waits until an event of this node has ended.
    pub fn park(&mut self, thread: usize) {
        self.parked.push(thread);
    }

    /// An event has ended: its slot is free, and whoever waited looks again.
    pub fn release(&mut self, slot: usize, fabric: &mut Fabric) {
        self.cache.release(slot);
        for thread in self.parked.drain(..) {
            fabric.schedule(0, Occurrence::Wake(thread));
        }
    }

    /// Whether it still does anything.
    pub fn runs(&self) -> bool {
        matches!(self.standing, Standing::Up | Standing::Fenced)
    }

    /// A packet for the agents.
    pub fn handle(&mut self, packet: &Packet, fabric: &mut Fabric) -> Vec<Settling> {
        let header = &packet.header;
        if header.epoch != self.view.epoch {
            return Vec::new();
        }
        if Rebuild::concerns(header.kind) {
            return self.rebuild_packet(packet, fabric);
        }
        self.serve(packet, fabric);
        Vec::new()
    }

    fn serve(&mut self, packet: &Packet, fabric: &mut Fabric) {
        let header = &packet.header;
        let forwarded = header.kind.is_request() && header.flags.has(Flags::GRANTED);
        if forwarded && header.status != GlobalStatus::Unshared {
            return self.cache_agent(header, fabric);
        }
        if let Some(Migrating {
            shadow: Some(shadow),
            ..
        }) = &mut self.migrating
        {
            let outputs = shadow.handle(header, packet.records());
            outputs
                .iter()
                .for_each(|output| self.send_for_shadow(output, fabric));
        }
        let to_shadow = matches!(header.kind, Kind::HeatReport | Kind::Tags);
        let copy = matches!(header.kind, Kind::AddAck | Kind::RemoveAck)
            && header.requester.node != self.id;
        if !to_shadow && !copy {
            self.home_agent(packet, fabric);
        }
    }

    /// Sends again what may have been lost, and does what is due every few ticks.
    pub fn tick(&mut self, fabric: &mut Fabric) {
        self.renewal_tick(fabric);
        if !self.in_service() {
            return;
        }
        self.home
            .resend()
            .for_each(|output| fabric.send(&output, &[]));
        let mut outputs = self.home.start_moves();
        if let Some(migrating) = &mut self.migrating {
            migrating.ticks += 1;
            if migrating.ticks.is_multiple_of(PERIOD) {
                outputs.extend(self.home.end_period());
                report(self.id, self.view.epoch, migrating, fabric);
                let shadow = migrating.shadow.iter_mut();
                outputs.extend(shadow.flat_map(Shadow::end_period));
            }
        }
        outputs
            .iter()
            .for_each(|output| self.send_for_shadow(output, fabric));
    }

    /// Sends what the shadow wants sent.
    fn send_for_shadow(&self, output: &Output, fabric: &mut Fabric) {
        if output.header.kind == Kind::Demote && self.mutated(Mutation::DemoteAlone) {
            let mut header = output.header;
            header.kind = Kind::RemoveFromSwitch;
            header.flags = Flags::GRANTED;
            header.requester.slot = STRANGE_SLOT;
            header.seq = Seq((fabric.now / 8) as u32);
            return fabric.send(&Output::new(Dest::Switch, header), &[]);
        }
        fabric.send(output, &[]);
    }

    pub(super) fn mutated(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn cache_agent(&mut self, header: &Header, fabric: &mut Fabric) {
        let mut executed = self.executed.enter(header.requester, header.seq);
        if self.mutated(Mutation::ForgetExecuted) {
            executed = Executed::New;
        }
        let (status, words) = match self.cache.copy(header.tag) {
            Some((status, words)) => (status, Some(words.into())),
            None => (LocalStatus::Invalid, self.recall(header)),
        };
        let reaction = cache_agent::react(self.id, header, status, executed, words.is_some());
        let words: Block = words.unwrap_or_default();
        self.answer(header, &reaction, &words, fabric);
        if reaction.retain && !self.mutated(Mutation::DontRetain) {
            let kept = (header.seq, header.tag, words);
            self.retained.insert(header.requester, kept);
        }
        let dirty = header.kind == Kind::ReadMiss && header.status == GlobalStatus::Modified;
        if dirty && header.flags.has(Flags::PROVIDER) && reaction.next == LocalStatus::Shared {
            self.downgraded.insert(header.tag);
        }
        let invalidates = reaction.next == LocalStatus::Invalid;
        let ignores = invalidates && self.mutated(Mutation::KeepInvalidated);
        if let Some(at) = self.cache.find(header.tag)
            && reaction.next != status
            && !ignores
        {
            if invalidates {
                self.downgraded.remove(&header.tag);
            }
            if invalidates
                && header.flags.has(Flags::IN_SWITCH)
                && let Some(migrating) = &mut self.migrating
            {
                migrating.heat.add(header.tag, 1);
            }
            let action = if invalidates { "invalid" } else { "downgraded" };
            fabric.note(self.id, header.tag, action);
            self.cache.install(at, header.tag, reaction.next);
        }
    }

    /// A block that this node gave away, and to which event.
    pub fn given_away(&self) -> Option<(RequesterId, Seq, Tag)> {
        let (requester, (seq, tag, _)) = self.retained.first_key_value()?;
        Some((*requester, *seq, *tag))
    }

    /// That event has its block.
    pub fn forget_given(&mut self, requester: RequesterId, seq: Seq) {
        if self
            .retained
            .get(&requester)
            .is_some_and(|kept| kept.0 == seq)
        {
            self.retained.remove(&requester);
        }
    }

    fn recall(&mut self, header: &Header) -> Option<Block> {
        let (seq, tag, words) = self.retained.get(&header.requester)?;
        if (*seq, *tag) != (header.seq, header.tag) {
            return None;
        }
        self.recalled += 1;
        Some(words.clone())
    }

    fn answer(&self, header: &Header, reaction: &Reaction, words: &[u64], fabric: &mut Fabric) {
        for output in reaction.outputs.iter() {
            let skip = output.header.kind == Kind::WriteBack
                && !header.flags.has(Flags::GATHER)
                && self.mutated(Mutation::SkipWriteBack);
            if skip {
                let lie = header.answer(Kind::WriteBackAck, self.id);
                fabric.send(&Output::new(Dest::Requester(header.requester), lie), &[]);
                continue;
            }
            let with_words = output.data == Data::Cache;
            fabric.send(output, if with_words { words } else { &[] });
        }
    }

    fn home_agent(&mut self, packet: &Packet, fabric: &mut Fabric) {
        let header = &packet.header;
        let bytes = packet.body.len() as u32 * block::GRANULE_BYTES;
        let lost = header.kind == Kind::AcceptLoss && self.home.lost(header.tag);
        let mut header = *header;
        if matches!(header.kind, Kind::Alloc | Kind::Free) && self.mutated(Mutation::ForgetCalls) {
            let stream = Call::from_offset(header.offset).stream;
            let number = fabric.now as u32;
            header.offset = Call { stream, number }.to_offset();
        }
        let header = &header;
        let (outputs, action) = match header.kind {
            Kind::Free => (self.home.free(header, packet.records()), HomeAction::None),
            _ => self.home.handle(header, bytes),
        };
        if lost && !self.home.lost(header.tag) {
            fabric.note(self.id, header.tag, "loss accepted");
            self.accepted.push(header.tag);
        }
        let result = match action {
            HomeAction::Delegate(executed) => [self.delegate(packet, executed, fabric)],
            _ => [0],
        };
        let stale = header.kind == Kind::WriteBack && self.mutated(Mutation::StoreStaleData);
        if action == HomeAction::Store || stale {
            fabric.note(self.id, header.tag, "segment home");
            block::put(self.memory(header.tag), header.offset, &packet.body);
        }
        for output in outputs.iter() {
            match output.data {
                Data::Home => fabric.send(output, self.memory(header.tag)),
                Data::Operand => fabric.send_words(output, &result),
                _ => fabric.send(output, &[]),
            }
        }
    }
}

/// A delegated operation that a home has carried out, for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delegated {
    /// The block.
    pub tag: Tag,
    /// The word, as a byte offset.
    pub offset: u32,
    /// Whose.
    pub requester: RequesterId,
    /// Of which event.
    pub seq: Seq,
    /// What was there.
    pub old: u64,
    /// What is there now.
    pub new: u64,
}

impl Node {
    /// Carries a delegated operation out, once; what was there before.
    fn delegate(&mut self, packet: &Packet, executed: Executed, fabric: &mut Fabric) -> u64 {
        let header = packet.header;
        let executed = match self.mutated(Mutation::DelegateAgain) {
            true => Executed::New,
            false => executed,
        };
        let at = (header.offset / block::GRANULE_BYTES) as usize;
        let old = self.memory(header.tag).get(at).copied().unwrap_or_default();
        if executed == Executed::New {
            let operand = |at: usize| packet.body.get(at).copied().unwrap_or_default();
            let new = delegate::apply(header.kind, old, operand(0), operand(1)).unwrap_or(old);
            if let Some(word) = self.memory(header.tag).get_mut(at) {
                *word = new;
            }
            fabric.note(self.id, header.tag, "delegated operation");
            self.delegated.push(Delegated {
                tag: header.tag,
                offset: header.offset,
                requester: header.requester,
                seq: header.seq,
                old,
                new,
            });
        }
        self.results.settle(header.requester, executed, old)
    }
}

/// Tells the shadow what was invalidated here (§5.2.2).
fn report(me: NodeId, epoch: u32, migrating: &mut Migrating, fabric: &mut Fabric) {
    let records = migrating.heat.end_period(8, 1);
    let Some(shadow) = migrating.shadow_node.filter(|_| !records.is_empty()) else {
        return;
    };
    let id = RequesterId { node: me, slot: 0 };
    let header = Header::request(Kind::HeatReport, epoch, Tag(0), id, Seq(0));
    let to = Dest::Agent(shadow);
    fabric.send_records(&Output::with(to, header, Data::Records), &records);
}

/// How a world's homes are set up.
pub fn home_config(node: NodeId, view: &View, seed: u32) -> HomeConfig {
    HomeConfig {
        node,
        epoch: view.epoch,
        block: BLOCK_BYTES,
        chunks: crate::world::CHUNKS,
        incarnation: view.incarnations[usize::from(node)],
        migration: None,
        style: rackmem_proto::flowcc::Style::Forward,
        seed,
    }
}
