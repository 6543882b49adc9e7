//! A node of a world: its agents, its memory and its cache, wired as the library wires them.

use super::block::{self, BLOCK_BYTES, Block, zeroed};
use super::cache::Cache;
use super::fabric::{Fabric, Occurrence, Packet};
use super::mutation::Mutation;
use rackmem_proto::flowcc::cache_agent::{self, Reaction};
use rackmem_proto::flowcc::{
    Executed, Heat, HomeAction, HomeAgent, HomeConfig, LastExecuted, LocalStatus, Shadow,
    ShadowConfig,
};
use rackmem_proto::wire::{
    Flags, GlobalStatus, Header, Kind, NodeId, Record, RequesterId, Seq, Tag,
};
use rackmem_proto::{Data, Dest, Output};
use std::collections::BTreeMap;

/// A node's part in ownership migration, beside its home agent's.
struct Migrating {
    shadow_node: NodeId,
    shadow: Option<Shadow>,
    /// Invalidations here of the switch's blocks.
    heat: Heat,
    ticks: u32,
}

/// Ticks of a period.
const PERIOD: u32 = 5;

/// Everything of a node but its threads.
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its cache.
    pub cache: Cache,
    /// Its home agent.
    pub home: HomeAgent,
    memory: BTreeMap<Tag, Block>,
    executed: LastExecuted,
    retained: BTreeMap<RequesterId, (Seq, Block)>,
    parked: Vec<usize>,
    mutation: Option<Mutation>,
    /// What it does about the switch, if there is one.
    migrating: Option<Migrating>,
    /// How often retained data was what answered.
    pub recalled: u64,
}

impl Node {
    /// A node that has handed out its first chunk.
    pub fn new(config: HomeConfig, cache: usize, mutation: Option<Mutation>) -> Self {
        let mut home = HomeAgent::new(config);
        home.grow(1);
        Node {
            id: config.node,
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
    pub fn migrate(&mut self, shadow_node: NodeId, ways: u8, sets: usize) {
        let config = ShadowConfig {
            patience: 20,
            ..ShadowConfig::new(shadow_node, super::EPOCH, ways, sets)
        };
        self.migrating = Some(Migrating {
            shadow_node,
            shadow: (shadow_node == self.id).then(|| Shadow::new(config)),
            heat: Heat::new(16),
            ticks: 0,
        });
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

    /// A packet for the agents.
    pub fn handle(&mut self, packet: &Packet, fabric: &mut Fabric) {
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
            outputs.iter().for_each(|output| fabric.send(output, &[]));
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
        self.home
            .resend()
            .for_each(|output| fabric.send(&output, &[]));
        let mut outputs = self.home.start_moves();
        if let Some(migrating) = &mut self.migrating {
            migrating.ticks += 1;
            if migrating.ticks.is_multiple_of(PERIOD) {
                outputs.extend(self.home.end_period());
                report(self.id, migrating, fabric);
                let shadow = migrating.shadow.iter_mut();
                outputs.extend(shadow.flat_map(Shadow::end_period));
            }
        }
        outputs.iter().for_each(|output| fabric.send(output, &[]));
    }

    fn mutated(&self, mutation: Mutation) -> bool {
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
            self.retained.insert(header.requester, (header.seq, words));
        }
        let invalidates = reaction.next == LocalStatus::Invalid;
        let ignores = invalidates && self.mutated(Mutation::KeepInvalidated);
        if let Some(at) = self.cache.find(header.tag)
            && reaction.next != status
            && !ignores
        {
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

    fn recall(&mut self, header: &Header) -> Option<Block> {
        let (seq, words) = self.retained.get(&header.requester)?;
        if *seq != header.seq {
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
        let (outputs, action) = self.home.handle(header, bytes);
        let stale = header.kind == Kind::WriteBack && self.mutated(Mutation::StoreStaleData);
        if action == HomeAction::Store || stale {
            fabric.note(self.id, header.tag, "segment home");
            block::put(self.memory(header.tag), header.offset, &packet.body);
        }
        for output in outputs.iter() {
            match output.data {
                Data::Home => fabric.send(output, self.memory(header.tag)),
                _ => fabric.send(output, &[]),
            }
        }
    }
}

/// Tells the shadow what was invalidated here (§5.2.2).
fn report(me: NodeId, migrating: &mut Migrating, fabric: &mut Fabric) {
    let records = migrating.heat.end_period(8, 1);
    if records.is_empty() {
        return;
    }
    let id = RequesterId { node: me, slot: 0 };
    let header = Header::request(Kind::HeatReport, super::EPOCH, Tag(0), id, Seq(0));
    let to = Dest::Agent(migrating.shadow_node);
    fabric.send_records(&Output::with(to, header, Data::Records), &records);
}

/// What a switch's control plane answers to a shadow that reads TAG.
pub fn tell_tags(
    switch: &rackmem_proto::switch::SwitchProgram,
    header: &Header,
    room: usize,
) -> (Output, Vec<Record>) {
    let (records, next) = switch.tags(header.offset as usize, room);
    let mut answer = header.answer(Kind::Tags, rackmem_proto::switch::SWITCH);
    answer.tag = Tag(next as u64);
    let to = Dest::Agent(header.requester.node);
    (Output::with(to, answer, Data::Records), records)
}

/// How a world's homes are set up.
pub fn home_config(node: NodeId, seed: u32) -> HomeConfig {
    HomeConfig {
        node,
        epoch: super::EPOCH,
        block: BLOCK_BYTES,
        chunks: super::CHUNKS,
        incarnation: 1,
        migration: None,
        style: rackmem_proto::flowcc::Style::Forward,
        seed,
    }
}
