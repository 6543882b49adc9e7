//! A node as explorers see it: its site and its threads, and what happens to it.

use super::effects::Effects;
use super::keeping::Kept;
use super::layout::Layout;
use super::packet::{ExplorerPacket, Value};
use super::thread::Thread;
use super::watch::Seen;
use super::witness::Witness;
use crate::site::{Deed, Site, telling};
use crate::world::Mutation;
use rackmem_proto::engine::{Change, Host, Part, part};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Dest, Kind, NodeId};
use std::hash::{Hash, Hasher};

/// Everything of a node.
#[derive(Clone)]
pub struct ExplorerNode {
    /// The node without its threads.
    pub site: Site<Value, Kept>,
    /// Its threads, by the slots of their requesters.
    pub threads: Vec<Thread>,
    pub(super) seen: Seen,
}

impl ExplorerNode {
    /// A node that starts into a view, before anything has happened.
    pub fn new(id: NodeId, layout: &Layout, view: &View) -> Self {
        let threads = layout.scenario.threads_of(id);
        let threads = threads.map(|index| Thread::new(index, layout, view));
        ExplorerNode {
            site: layout.site(id, view),
            threads: threads.collect(),
            seen: Seen::default(),
        }
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.site.fingerprint(into);
        for thread in &self.threads {
            thread.fingerprint(into);
        }
        self.seen.hash(into);
        if self.site.part.in_place.is_some() {
            self.site.part.hash(into);
        }
    }

    /// Takes a packet.
    pub fn handle(&mut self, packet: &ExplorerPacket, fx: &mut Effects<'_>) {
        let mut taken = *packet;
        if fx.layout.mutated(Mutation::ForgetEpoch) {
            taken.header.epoch = self.site.view.epoch;
        }
        let header = taken.header;
        if let Dest::Requester(id) = taken.to {
            return self.answered(id, &taken, fx);
        }
        let before = self.look(&header);
        self.hear(&taken, fx);
        if self.site.passed {
            self.answered(header.requester, &taken, fx);
        }
        if part(&header) == Part::Protocol {
            self.watch(&header, before, fx);
        }
    }

    /// Its agents take a packet.
    pub fn hear(&mut self, packet: &ExplorerPacket, fx: &mut Effects<'_>) {
        self.take(packet, fx);
        fx.seen
            .see_if(self.site.answered, Witness::AnsweredInKernel);
        fx.seen.see_if(self.site.took_written, Witness::TookWritten);
        fx.seen.see_if(self.site.gave, Witness::GaveInKernel);
        self.follow(Some(packet.header.kind), fx);
    }

    /// The rack goes into another epoch: what is under way has not happened, what is held has.
    pub fn learn(&mut self, view: View, change: Change, fx: &mut Effects<'_>) {
        self.watch_end(fx);
        self.site.stop(view, &change);
        let defect = Host::defect(&self.site);
        if let Some(in_place) = &mut self.site.part.in_place {
            in_place.enter(view.epoch, defect);
        }
        let mut cut_off = Vec::new();
        for at in 0..self.threads.len() {
            cut_off.push(self.threads[at].cut_off(&view, fx));
            self.advance(at, fx);
        }
        self.site.begin(change, cut_off);
        self.follow(None, fx);
    }

    /// Carries out what its site wants done, after a packet of this kind.
    pub fn follow(&mut self, asked: Option<Kind>, fx: &mut Effects<'_>) {
        for deed in std::mem::take(&mut self.site.deeds) {
            match deed {
                Deed::Sent(output, load) => {
                    let load = self.watch_sent(asked, &output, load, fx);
                    fx.send(&output, &load);
                }
                Deed::Copy(tag, status, purpose) => {
                    fx.tell(self.site.id, tag, telling::copy(status, purpose));
                }
                Deed::Noted(note) => self.note(note, fx),
                Deed::Settled(change, rows) => self.settled(&change, &rows, fx),
                Deed::Lock(..) | Deed::Free(_) | Deed::Serves => {}
            }
        }
    }
}
