//! A node: a site whose agents take time.

use super::agenda::Occurrence;
use super::fabric::{Fabric, body};
use super::guest::Guest;
use super::layout::{Layout, nth};
use super::program::{Inside, Steps};
use super::servers::{Job, Servers};
use super::thread::Thread;
use super::{EPOCH, Platform};
use crate::site::{Deed, Load, LockDeed, Site};
use rackmem_proto::engine::{Gcp, Note, Role, role};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::{Dest, Header, Kind, NodeId, Tag};
use std::collections::{BTreeMap, BTreeSet};

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// The end of the event on a block.
    Over(Tag),
    /// The end of any event.
    AnyOver,
    /// Another thread's write to a block, or the block's leaving.
    Changed(Tag),
}

/// Whose a message is where threads have their own parts: that of the memory, which is asked, or
/// the requester.
fn owner(header: &Header, asks: bool) -> u32 {
    match asks {
        true => nth(header.tag),
        false => header.requester.slot.into(),
    }
}

/// See the module. Its application threads are beside it.
pub struct ModelNode {
    /// Its blocks and locks have a size and no bytes.
    pub site: Site<(), Guest>,
    /// Its agents.
    pub servers: Servers,
    platform: Platform,
    /// Threads that wait.
    pub parked: Vec<(Until, u16)>,
    /// Of each lock, requests to the directory since a packet let a thread in.
    asked: BTreeMap<Tag, u32>,
    /// Locks that have been used here, and are to go home.
    pub worn: BTreeSet<Tag>,
    /// Threads that locks have let in.
    pub inside: Vec<Inside>,
    /// Packets that its home agent has received and sent.
    pub home_packets: u64,
}

impl ModelNode {
    /// A node that has handed out all memory that is used, and cached none of it.
    pub fn new(id: NodeId, platform: &Platform, layout: &Layout) -> Self {
        ModelNode {
            site: layout.site(id, platform),
            servers: Servers::new(id, platform.agents),
            platform: *platform,
            parked: Vec::new(),
            asked: BTreeMap::new(),
            worn: BTreeSet::new(),
            inside: Vec::new(),
            home_packets: 0,
        }
    }

    /// This has happened; the threads that waited for it look again.
    pub fn wake(&mut self, what: Until, fabric: &mut Fabric) {
        let now = fabric.now();
        self.parked.retain(|&(until, thread)| {
            let any = until == Until::AnyOver && matches!(what, Until::Over(_));
            let wakes = any || until == what;
            if wakes {
                fabric.agenda.enter(now, Occurrence::Step(thread));
            }
            !wakes
        });
    }

    /// A packet has come that an agent serves: the one for what the node holds, or the one for what
    /// others ask of its memory.
    pub fn arrive(&mut self, id: u32, fabric: &mut Fabric) {
        let packet = fabric.packet(id);
        let (header, asks) = (&packet.header, !matches!(packet.to, Dest::Requester(_)));
        let holds = match Gcp::takes(header.kind) {
            true => !header.kind.asks_directory(),
            false => matches!(role(self.site.id, header), Role::Cache | Role::Requester),
        };
        let cost = self.platform.costs.message(header.kind);
        let whose = (holds, owner(header, asks));
        let agenda = &mut fabric.agenda;
        self.servers.enqueue(whose, Job::Packet(id), cost, agenda);
    }

    /// A period of the migration ends: agents send what is due then. Nothing is lost,
    /// so what is under way is not sent again.
    pub fn end_period(&mut self, fabric: &mut Fabric) {
        let moves = self.site.homes[0].agent.end_period();
        self.home_packets += moves.len() as u64;
        let migrating = self.site.migrating.as_mut();
        let ended = migrating.map(|migrating| migrating.end_period(EPOCH));
        let (of_shadow, report) = ended.unwrap_or_default();
        let sent = moves.into_iter().chain(of_shadow);
        let sent = sent.map(|output| Deed::Sent(output, Load::Nothing));
        let report = report.map(|r| Deed::Sent(r.output, Load::Records(r.records)));
        self.site.deeds.extend(sent.chain(report));
        self.follow(None, fabric);
    }

    /// An agent has done the work on a message: what it decided leaves,
    /// and the next message begins.
    pub fn served<P: Steps>(
        &mut self,
        server: u16,
        threads: &mut [Thread<P>],
        fabric: &mut Fabric,
    ) {
        match self.servers.done(server) {
            None => return,
            Some(Job::Post(output, load)) => self.site.deeds.push(Deed::Sent(output, load)),
            Some(Job::Packet(id)) => {
                let packet = fabric.take(id);
                let header = packet.header;
                self.site.passed = matches!(packet.to, Dest::Requester(_));
                if !self.site.passed {
                    self.site.take(&header, packet.body.clone());
                    self.forget_gone(header.tag);
                }
                // Each has two requesters.
                let nth = usize::from(header.requester.slot).checked_rem(threads.len());
                let thread = nth.and_then(|nth| threads.get_mut(nth));
                if let (true, Some(thread)) = (self.site.passed, thread) {
                    thread.take(&packet, 0, self, fabric);
                }
            }
        }
        let now = fabric.now();
        let of_lock = |deed: &&Deed<()>| match deed {
            Deed::Sent(output, _) => Gcp::takes(output.header.kind),
            _ => false,
        };
        let sent = match self.site.deeds.iter().filter(of_lock).count() {
            0 => self.follow(Some(now), fabric),
            locks => locks as u64,
        };
        let sending = sent * self.platform.costs.send;
        self.servers.go_on(server, sending, &mut fabric.agenda);
        // What locks have decided leaves at the same time, but after the next message has begun.
        self.follow(Some(now), fabric);
    }

    /// Carries out what its site wants done. What it sends leaves from a time on, one packet after
    /// the other, or agents send it. Returns how many packets leave.
    pub fn follow(&mut self, leaves: Option<u64>, fabric: &mut Fabric) -> u64 {
        let (costs, id) = (self.platform.costs, self.site.id);
        let (mut sent, mut at_home) = (0, 0);
        let mut deeds = std::mem::take(&mut self.site.deeds);
        for deed in deeds.drain(..) {
            match (deed, leaves) {
                (Deed::Sent(output, load), None) => {
                    let cost = costs.message(output.header.kind);
                    let whose = (
                        matches!(load, Load::Records(_)),
                        owner(&output.header, false),
                    );
                    let job = Job::Post(output, load);
                    self.servers.enqueue(whose, job, cost, &mut fabric.agenda);
                }
                (Deed::Sent(output, load), Some(from)) => {
                    let header = &output.header;
                    if header.kind == Kind::Acquire && header.requester.node == id {
                        *self.asked.entry(header.tag).or_default() += 1;
                    }
                    let ready = from + (sent + 1) * costs.send + costs.aggregate;
                    let body = body(&output, load, self.site.locks.bytes);
                    let copies = fabric.send(id, (ready, costs.send), &output, &body);
                    sent += copies;
                    self.home_packets += at_home * copies;
                }
                (Deed::Noted(Note::AtHome), _) => {
                    at_home = 1;
                    self.home_packets += 1;
                }
                (Deed::Free(tag), _) => self.wake(Until::Over(tag), fabric),
                (Deed::Copy(tag, LocalStatus::Invalid, _), _) => {
                    self.wake(Until::Changed(tag), fabric);
                }
                (Deed::Lock(lock, LockDeed::Inside(thread, _, at_once, _)), _) => {
                    let asked = self.asked.get_mut(&lock).filter(|_| !at_once);
                    self.inside.push(Inside {
                        thread,
                        lock,
                        remote: !at_once,
                        transactions: asked.map_or(0, std::mem::take),
                    });
                }
                _ => {}
            }
        }
        self.site.deeds = deeds;
        sent
    }
}
