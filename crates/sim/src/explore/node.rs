//! A node as explorers see it: its site and its threads, and what happens to it.
//!
//! A cache has a place for every block, and only programs evict:
//! which block must go is no matter of coherence.

use super::effects::Effects;
use super::layout::{Layout, Start};
use super::packet::{ExplorerPacket, FIT};
use super::thread::Thread;
use super::watch::Homecomings;
use super::witness::Witness;
use crate::site::{Cache, Product, Site};
use crate::world::Mutation;
use rackmem_proto::engine::{Change, Part, part};
use rackmem_proto::flowcc::HomeAgent;
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Copyset, Dest, Header, Kind, NodeId, RequesterId, Seq};
use std::hash::{Hash, Hasher};

/// Everything of a node.
#[derive(Clone)]
pub struct ExplorerNode {
    /// The node without its threads.
    pub site: Site<super::packet::Value>,
    /// Its threads, by the slots of their requesters.
    pub threads: Vec<Thread>,
    pub(super) homecomings: Homecomings,
    /// Writes that its home has stored for requesters that keep no copy.
    pub(super) stores: Vec<u8>,
}

impl ExplorerNode {
    /// A node before anything has happened.
    pub fn new(id: NodeId, layout: &Layout, start: Start) -> Self {
        let all = (0..layout.scenario.nodes).fold(Copyset::EMPTY, Copyset::with);
        let mut view = View::first(all, start.switch);
        view.epoch = start.epoch;
        view.incarnations[usize::from(id)] = start.incarnation;
        let tags: Vec<_> = (0..layout.blocks() as u8)
            .map(|block| layout.tag(block))
            .collect();
        let (config, given) = layout.home(id, start);
        let cache = Cache::with_places(&tags);
        let mut site = Site::new(config, (1, given, FIT), view, cache, Product);
        site.mutation = layout.scenario.mutation;
        let mine = tags.iter().filter(|tag| tag.home().is_of(id));
        site.blocks = mine.copied().collect();
        tags.iter().for_each(|tag| _ = site.memory(*tag));
        let threads = layout.scenario.threads_of(id);
        ExplorerNode {
            site,
            threads: threads
                .map(|index| Thread::new(index, layout, start))
                .collect(),
            homecomings: Homecomings::default(),
            stores: Vec::new(),
        }
    }

    /// How often it has started.
    pub fn incarnation(&self) -> u32 {
        self.site.view.incarnations[usize::from(self.site.id)]
    }

    /// Its home agent.
    pub fn home(&self) -> &HomeAgent {
        self.site.books()
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.site.fingerprint(into);
        for thread in &self.threads {
            thread.fingerprint(into);
        }
        self.homecomings.hash(into);
        self.stores.hash(into);
    }

    /// Takes a packet.
    pub fn handle(&mut self, packet: &ExplorerPacket, layout: &Layout, fx: &mut Effects) {
        let mut taken = *packet;
        let epoch = self.site.view.epoch;
        if layout.mutated(Mutation::ForgetEpoch) {
            taken.header.epoch = epoch;
        }
        let header = taken.header;
        if let Dest::Requester(id) = taken.to {
            if header.epoch == epoch {
                self.answered(id, &taken, layout, fx);
            }
            return;
        }
        let before = self.look(&header);
        self.hear(&taken, layout, fx);
        if self.site.passed {
            self.answered(header.requester, &taken, layout, fx);
        }
        match part(&header) {
            Part::Recovery => self.proceed(layout, fx),
            Part::Protocol => self.watch(&header, before, fx),
            _ => {}
        }
    }

    /// Its agents take a packet.
    pub fn hear(&mut self, packet: &ExplorerPacket, layout: &Layout, fx: &mut Effects) {
        self.site.passed = false;
        self.site.take(&packet.header, packet.body);
        self.follow(Some(packet.header.kind), layout, fx);
    }

    /// Its home agent is told to move a block's entry to the switch.
    pub fn want(&mut self, block: u8, layout: &Layout, fx: &mut Effects) {
        let tag = layout.tag(block);
        fx.send_all(self.site.home_of(tag).want(tag));
    }

    /// Its home agent is told to take one back: what a shadow says.
    pub fn demote(&mut self, block: u8, layout: &Layout, fx: &mut Effects) {
        let (node, slot) = (self.site.id, 0);
        let shadow = RequesterId { node, slot };
        let (tag, epoch) = (layout.tag(block), self.site.view.epoch);
        let header = Header::request(Kind::Demote, epoch, tag, shadow, Seq(0));
        let outputs = self.site.home_of(tag).handle(&header, 0).0;
        fx.send_all(outputs.iter().copied());
    }

    /// The rack goes into another epoch: what is under way has not happened, what is held has.
    pub fn learn(&mut self, view: View, change: Change, layout: &Layout, fx: &mut Effects) {
        self.watch_end(fx);
        self.site.stop(view, &change);
        let mut cut_off = Vec::new();
        for at in 0..self.threads.len() {
            cut_off.push(self.threads[at].cut_off(&view, fx));
            self.advance(at, layout, fx);
        }
        self.site.begin(change, cut_off);
        self.follow(None, layout, fx);
    }

    /// Does what can be done of a rebuild, and sends what there is to send.
    pub fn proceed(&mut self, layout: &Layout, fx: &mut Effects) {
        self.site.proceed();
        self.follow(None, layout, fx);
    }

    /// Tells again the nth of what is not acknowledged.
    pub fn retell(&mut self, nth: usize, layout: &Layout, fx: &mut Effects) {
        if let Some(output) = self.site.recovery().unacknowledged().get(nth) {
            fx.seen.see(Witness::ToldAgain);
            self.site
                .recover(|recovery, site| recovery.send_one(output, site));
            self.follow(None, layout, fx);
        }
    }
}
