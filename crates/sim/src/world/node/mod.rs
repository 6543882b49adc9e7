//! A node of a world: its agents, its memory and its cache.

mod epoch;
mod here;
mod homes;
mod locked;

pub use epoch::{FIT, Settling};
pub use here::Here;

use crate::world::block::{BLOCK_BYTES, Block, zeroed};
use crate::world::cache::Cache;
use crate::world::fabric::{Fabric, Occurrence, Packet};
use crate::world::keeping::Lease;
use crate::world::locks::Cells;
use crate::world::mutation::Mutation;
use homes::Homes;
use rackmem_proto::call::Call;
use rackmem_proto::engine::{self, Copies, Migrating, Recovery};
use rackmem_proto::flowcc::{HomeConfig, Migration, Shadow, ShadowConfig};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Kind, NodeId, RequesterId, Seq, Tag};
use std::collections::BTreeMap;

/// Ticks of a period.
const PERIOD: u32 = 5;
/// Blocks whose heat an agent counts, and those that it reports of a period.
const TRACKED: u32 = 16;
const REPORTED: usize = 8;

/// Whether a node takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
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
    pub standing: Condition,
    /// To when it may serve.
    pub lease: Lease,
    /// What it knows of the rack.
    pub view: View,
    /// Its world's blocks that are at home here.
    pub blocks: Vec<Tag>,
    /// Its locks.
    pub locks: Cells,
    /// Its cache.
    pub cache: Cache,
    /// Its home.
    pub homes: Homes,
    memory: BTreeMap<Tag, Block>,
    copies: Copies<Block>,
    /// Its part when an epoch begins; elsewhere while something happens to it.
    recovery: Option<Recovery<Block>>,
    /// The view in which this home's entries were made.
    settled: View,
    migration: Option<Migration>,
    /// What it does about the switch, if there is one.
    migrating: Option<Migrating>,
    ticks: u32,
    /// Its threads may go on.
    pub poked: bool,
    /// Times its entries were made anew.
    pub rebuilds: u64,
    /// Blocks sent home because home might not have them.
    pub rescued: u64,
    /// Blocks whose loss was accepted, with what home has.
    pub accepted: Vec<Tag>,
    /// Packets for its requesters.
    pub passed: Vec<Packet>,
    parked: Vec<usize>,
    mutation: Option<Mutation>,
    /// How often retained data was what answered.
    pub recalled: u64,
}

impl Node {
    /// A node that has handed out its first chunk.
    pub fn new(
        config: HomeConfig,
        view: View,
        cache: usize,
        (blocks, locks): (Vec<Tag>, Vec<Tag>),
        mutation: Option<Mutation>,
    ) -> Self {
        Node {
            id: config.node,
            standing: Condition::Up,
            lease: Lease::default(),
            view,
            blocks,
            locks: Cells::new(config.node, view, &locks, mutation),
            copies: Copies::new(true),
            recovery: Some(Recovery::new(BLOCK_BYTES, FIT)),
            settled: view,
            migration: config.migration,
            migrating: None,
            ticks: 0,
            poked: false,
            rebuilds: 0,
            rescued: 0,
            accepted: Vec::new(),
            passed: Vec::new(),
            cache: Cache::new(cache),
            homes: Homes::new(config),
            memory: BTreeMap::new(),
            parked: Vec::new(),
            mutation,
            recalled: 0,
        }
    }

    /// Takes part in migration, as the shadow if it is the one.
    pub fn migrate(&mut self, ways: u8, sets: usize) {
        let config = ShadowConfig {
            patience: 20,
            ..ShadowConfig::new(self.id, self.view.epoch, ways, sets)
        };
        self.migrating = Some(Migrating::new(config, TRACKED, REPORTED));
        self.choose_shadow();
    }

    pub(super) fn choose_shadow(&mut self) {
        if let Some(migrating) = &mut self.migrating {
            migrating.set_shadow(self.view.shadow, self.view.epoch);
        }
    }

    /// The shadow, if this node keeps it.
    pub fn shadow(&self) -> Option<&Shadow> {
        self.migrating.as_ref()?.shadow()
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
        matches!(self.standing, Condition::Up | Condition::Fenced)
    }

    /// A packet for the agents.
    pub fn handle(&mut self, packet: &Packet, fabric: &mut Fabric) -> Vec<Settling> {
        let mut header = packet.header;
        if matches!(header.kind, Kind::Alloc | Kind::Free) && self.mutated(Mutation::ForgetCalls) {
            let stream = Call::from_offset(header.offset).stream;
            let number = fabric.now as u32;
            header.offset = Call { stream, number }.to_offset();
        }
        let mut here = Here::new(self, fabric, Some(packet));
        engine::packet(&mut here, &header);
        let settled = here.settled;
        match engine::part(&header) {
            engine::Part::Recovery => self.proceed(fabric),
            _ => settled,
        }
    }

    /// Sends again what may have been lost, and does what is due every few ticks.
    pub fn tick(&mut self, fabric: &mut Fabric) {
        self.ticks += 1;
        let period_ended = self.migrating.is_some() && self.ticks.is_multiple_of(PERIOD);
        let mut here = Here::new(self, fabric, None);
        here.with_recovery(|recovery, here| recovery.retell(here));
        engine::tick(&mut here, period_ended);
    }

    pub(super) fn mutated(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// A block that this node gave away, and to which event.
    pub fn given_away(&self) -> Option<(RequesterId, Seq, Tag)> {
        self.copies.given().next()
    }

    /// That event has its block.
    pub fn forget_given(&mut self, requester: RequesterId, seq: Seq) {
        self.copies.received(requester, seq);
    }

    /// It has given its copy of a block up, and home has the block.
    pub fn left(&mut self, tag: Tag) {
        self.copies.left(tag);
    }
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
        answering: None,
        seed,
    }
}
