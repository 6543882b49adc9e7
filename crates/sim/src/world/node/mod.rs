//! A node of a world: its site, on a network that misbehaves, and what is counted of it.

mod epoch;
mod telling;

pub use epoch::FIT;

use super::block::Block;
use super::checks::Settling;
use super::fabric::{Fabric, Occurrence, WorldPacket};
use super::keeping::Lease;
use super::mutation::Mutation;
use crate::site::{Cache, Deed, LockDeed, Product, Site};
use rackmem_proto::engine::{self, Gcp, LockCommand, Protocol, Recovery};
use rackmem_proto::flowcc::{HomeConfig, ShadowConfig};
use rackmem_proto::membership::View;
use rackmem_proto::wire::Tag;
use std::ops::{Deref, DerefMut};

/// Ticks of a period.
const PERIOD: u32 = 5;
/// Blocks whose heat an agent counts, and those that it reports of a period.
const TRACKED: u32 = 16;
const REPORTED: usize = 8;
/// Shards of a home: as many as the smallest machine with several cores has.
const SHARDS: u32 = 2;

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
pub struct WorldNode {
    site: Site<Block>,
    /// Whether it takes part.
    pub standing: Condition,
    /// To when it may serve.
    pub lease: Lease,
    ticks: u32,
    /// Its threads may go on.
    pub poked: bool,
    /// Times its entries were made anew.
    pub rebuilds: u64,
    /// Blocks sent home because home might not have them.
    pub rescued: u64,
    /// Blocks whose loss was accepted, with what home has.
    pub accepted: Vec<Tag>,
    /// What has become of entries, to be judged.
    pub settlings: Vec<Settling>,
    /// What has happened to its locks, for the threads that are played and for the judge.
    pub news: Vec<(Tag, LockDeed)>,
    parked: Vec<usize>,
    /// How often retained data was what answered.
    pub recalled: u64,
}

impl Deref for WorldNode {
    type Target = Site<Block>;

    fn deref(&self) -> &Site<Block> {
        &self.site
    }
}

impl DerefMut for WorldNode {
    fn deref_mut(&mut self) -> &mut Site<Block> {
        &mut self.site
    }
}

impl WorldNode {
    /// A node that has handed out its first chunk.
    pub fn new(
        config: HomeConfig,
        view: View,
        cache: usize,
        (blocks, locks): (Vec<Tag>, Vec<Tag>),
        mutation: Option<Mutation>,
    ) -> Self {
        let cache = Cache::new(cache);
        let mut site = Site::new(config, (SHARDS, 1, FIT), view, cache, Product);
        (site.mutation, site.blocks) = (mutation, blocks);
        locks.into_iter().for_each(|lock| site.open_lock(lock));
        WorldNode {
            site,
            standing: Condition::Up,
            lease: Lease::default(),
            ticks: 0,
            poked: false,
            rebuilds: 0,
            rescued: 0,
            accepted: Vec::new(),
            settlings: Vec::new(),
            news: Vec::new(),
            parked: Vec::new(),
            recalled: 0,
        }
    }

    /// Takes part in migration, as the shadow if it is the one.
    pub fn migrate(&mut self, ways: u8, sets: usize) {
        let config = ShadowConfig {
            patience: 20,
            ..ShadowConfig::new(self.id, self.view.epoch, ways, sets)
        };
        self.site.migrate(config, TRACKED, REPORTED);
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
    pub fn handle(&mut self, packet: &WorldPacket, fabric: &mut Fabric) {
        let header = self.call_forgotten(packet.header, fabric.now);
        self.site.passed = false;
        self.site.take(&header, packet.body.clone());
        self.follow(fabric);
        if engine::part(&header) == engine::Part::Recovery {
            self.proceed(fabric);
        }
    }

    /// A thread does something with a lock.
    pub fn lock_command(&mut self, tag: Tag, command: LockCommand<u16>, fabric: &mut Fabric) {
        Gcp::command(&mut self.site, 0, (tag, command));
        self.follow(fabric);
    }

    /// Sends again what may have been lost, and does what is due every few ticks.
    pub fn tick(&mut self, fabric: &mut Fabric) {
        self.ticks += 1;
        let period_ended = self.migrating.is_some() && self.ticks.is_multiple_of(PERIOD);
        self.site.recover(Recovery::retell);
        engine::tick(&mut self.site, period_ended);
        self.follow(fabric);
    }

    /// Carries out what its site wants done.
    pub fn follow(&mut self, fabric: &mut Fabric) {
        let id = self.id;
        for deed in std::mem::take(&mut self.site.deeds) {
            match deed {
                Deed::Sent(output, load) => {
                    let output = self.demoted_alone(output, fabric.now);
                    fabric.send_load(&output, &load);
                }
                Deed::Copy(tag, text) => fabric.note(id, tag, text),
                Deed::Noted(note) => self.note(note, fabric),
                Deed::Settled(change, rows) => self.settled(change, rows, fabric),
                Deed::Lock(tag, news) => self.news.push((tag, news)),
            }
        }
    }

    pub(super) fn mutated(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }
}
