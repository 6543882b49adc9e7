//! A node of a world: its agents, its memory and its cache, wired as the library wires them.

use super::block::{self, BLOCK_BYTES, Block, zeroed};
use super::cache::Cache;
use super::fabric::{Fabric, Occurrence, Packet};
use super::mutation::Mutation;
use rackmem_proto::flowcc::cache_agent::{self, Reaction};
use rackmem_proto::flowcc::{
    Executed, HomeAction, HomeAgent, HomeConfig, LastExecuted, LocalStatus,
};
use rackmem_proto::wire::{Flags, GlobalStatus, Header, Kind, NodeId, RequesterId, Seq, Tag};
use rackmem_proto::{Data, Dest, Output};
use std::collections::BTreeMap;

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
            recalled: 0,
        }
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
            self.cache_agent(header, fabric);
        } else {
            self.home_agent(packet, fabric);
        }
    }

    /// Sends again what may have been lost.
    pub fn tick(&mut self, fabric: &mut Fabric) {
        self.home
            .resend()
            .for_each(|output| fabric.send(&output, &[]));
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

/// How a world's homes are set up.
pub fn home_config(node: NodeId, seed: u32) -> HomeConfig {
    HomeConfig {
        node,
        epoch: super::EPOCH,
        block: BLOCK_BYTES,
        chunks: super::CHUNKS,
        migrate: false,
        style: rackmem_proto::flowcc::Style::Forward,
        seed,
    }
}
