//! A node of a world: its site, on a network that misbehaves, and what is counted of it.

mod telling;

use super::block::Block;
use super::fabric::{Fabric, WorldPacket};
use super::keeping::Lease;
use super::mutation::Mutation;
use super::oracle::Oracle;
use super::thread::Thread;
use crate::site::{self, Copied, Deed, LockDeed, Site};
use rackmem_proto::engine::{self, Change, Gcp, LockCommand, Protocol, Recovery};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Copyset, Tag};
use std::ops::{Deref, DerefMut};
use telling::Seen;

/// Ticks of a period.
const PERIOD: u32 = 5;

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
    site: Site<Block, Copied>,
    /// Whether it takes part.
    pub standing: Condition,
    /// To when it may serve.
    pub lease: Lease,
    ticks: u32,
    /// Its threads may go on.
    pub poked: bool,
    /// What was seen of it.
    pub seen: Seen,
    /// What has happened to its locks, for the threads that are played and for the judge.
    pub news: Vec<(Tag, LockDeed)>,
    /// Threads that wait until an event of this node has ended.
    pub parked: Vec<usize>,
}

impl Deref for WorldNode {
    type Target = Site<Block, Copied>;

    fn deref(&self) -> &Site<Block, Copied> {
        &self.site
    }
}

impl DerefMut for WorldNode {
    fn deref_mut(&mut self) -> &mut Site<Block, Copied> {
        &mut self.site
    }
}

impl WorldNode {
    /// A node with this site, which takes part.
    pub fn new(site: Site<Block, Copied>) -> Self {
        WorldNode {
            site,
            standing: Condition::Up,
            lease: Lease::default(),
            ticks: 0,
            poked: false,
            seen: Seen::default(),
            news: Vec::new(),
            parked: Vec::new(),
        }
    }

    /// The words of a block: in its cache, or in home's memory.
    pub fn words(&mut self, tag: Tag, cached: bool) -> &mut Block {
        match cached {
            true => self.site.cache.words(tag),
            false => self.site.memory(tag),
        }
    }

    /// Whether it still does anything.
    pub fn runs(&self) -> bool {
        matches!(self.standing, Condition::Up | Condition::Fenced)
    }

    /// A packet for the agents.
    pub fn handle(&mut self, packet: &WorldPacket, fabric: &mut Fabric) {
        let header = self.call_forgotten(packet.header, fabric.now);
        self.site.arrive(&header, packet.body.clone());
        self.follow(fabric);
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
        self.site.carry_out();
        self.follow(fabric);
    }

    /// Carries out what its site wants done.
    pub fn follow(&mut self, fabric: &mut Fabric) {
        let id = self.id;
        fabric.keeper = self.view.keeper();
        for deed in std::mem::take(&mut self.site.deeds) {
            match deed {
                Deed::Sent(output, load) => {
                    let output = self.demoted_alone(output, fabric.now);
                    fabric.send_load(&output, &load);
                }
                Deed::Copy(tag, status, purpose) => {
                    fabric.note(id, tag, site::telling::copy(status, purpose));
                }
                Deed::Noted(note) => self.note(note, fabric),
                Deed::Settled(change, rows) => self.settled(change, rows, fabric),
                Deed::Lock(tag, news) => self.news.push((tag, news)),
                Deed::Free(_) => {
                    let parked = self.parked.drain(..);
                    parked.for_each(|thread| fabric.wake(thread, 0));
                }
                Deed::Serves => {
                    self.poked = true;
                    let epoch = self.view.epoch;
                    fabric.tell(|| format!("node {id} serves in epoch {epoch}"));
                }
            }
        }
    }

    /// There is a new view. Returns whether it is of another epoch.
    pub fn learn(
        &mut self,
        view: &View,
        threads: &mut [Thread],
        fabric: &mut Fabric,
        oracle: &mut Oracle,
    ) -> bool {
        if view.version <= self.view.version {
            return false;
        }
        let (id, version, epoch) = (self.id, view.version, view.epoch);
        fabric.tell(|| format!("node {id} learns of view {version}, epoch {epoch}"));
        if !view.is_heavy_after(&self.view) {
            self.view = *view;
            self.recovery.keep(view.live);
            if self.in_service() {
                engine::follow(&mut **self, view);
            }
            return false;
        }
        let mut change = Change::between(&self.settled, view);
        self.stop(*view, &change);
        let threads = threads.iter_mut();
        let cut = threads.map(|t| t.enter(self, fabric, oracle)).collect();
        if self.mutated(Mutation::ForgetIncarnation) {
            change.gone = Copyset(change.gone.0 & !view.live.0);
        }
        self.enter_kept();
        self.begin(change, cut);
        self.follow(fabric);
        let cut_off = self.recovery.cut_off();
        fabric.tell(|| format!("node {id} begins its rebuild: {cut_off} events cut off"));
        self.proceed();
        self.follow(fabric);
        true
    }
}
