//! An application thread: a site's client that goes on when its processor is free,
//! and what each part costs.

use super::agenda::Occurrence;
use super::fabric::{Fabric, ModelPacket};
use super::guest::lets_in;
use super::layout::Layout;
use super::node::{ModelNode, Until};
use super::program::Steps;
use super::{DOUBLINGS, Platform, System};
use crate::site::{Client, Did, Event, Found};
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::wire::{Kind, NodeId, RequesterId, Tag};

/// The first wait after "locked", at most, in nanoseconds; it doubles with every attempt.
const BACKOFF: u64 = 200;

/// One application thread and its requester.
pub struct Thread<P> {
    pub(super) index: u16,
    pub(super) platform: Platform,
    pub(super) layout: Layout,
    client: Client,
    /// The block that it accesses, and whether it changes it. Without one, what is next is for its
    /// program to say, now or when it is let go on.
    pub(super) goal: Option<(Tag, bool)>,
    /// Nothing more to do.
    pub(super) finished: bool,
    pub(super) missed: bool,
    pub(super) attempt: u32,
    /// When its processor is free again.
    pub(super) busy: u64,
    /// Time on the processor.
    pub used: u64,
    /// Answers that no correct rack gives.
    pub failures: u64,
    /// What it is for.
    pub program: P,
}

/// Where a thread is: its node, what all threads share, and the network.
pub type Around<'a, S> = (&'a mut ModelNode, &'a mut S, &'a mut Fabric);

impl<P: Steps> Thread<P> {
    /// The `index`th of all threads, with nothing done.
    pub fn new(
        (id, index): (RequesterId, u16),
        (platform, layout): (Platform, Layout),
        program: P,
    ) -> Self {
        Thread {
            index,
            platform,
            layout,
            client: Client::new(layout.requester(id, &platform)),
            goal: None,
            finished: false,
            missed: false,
            attempt: 0,
            busy: 0,
            used: 0,
            failures: 0,
            program,
        }
    }

    /// Its node.
    pub fn node(&self) -> NodeId {
        self.client.engine.id().node
    }

    /// Whether something is under way.
    pub fn unfinished(&self) -> bool {
        !self.finished || !self.client.engine.can_unlock()
    }

    /// Goes on when its processor is done with what it does, and with so much more.
    pub fn schedule(&mut self, more: u64, fabric: &mut Fabric) {
        self.work(more, fabric);
        fabric.agenda.enter(self.busy, Occurrence::Step(self.index));
    }

    pub(super) fn work(&mut self, time: u64, fabric: &Fabric) {
        self.busy = self.busy.max(fabric.now()) + time;
        self.used += time;
    }

    /// Whether only a packet can make its event go on.
    fn waits(&self) -> bool {
        let event = &self.client.event;
        event.is_some_and(|event| event.access.waits(&self.client.engine))
    }

    /// Takes a packet, which costs the thread itself so much. What follows is to be sent.
    pub fn take(
        &mut self,
        packet: &ModelPacket,
        cost: u64,
        node: &mut ModelNode,
        fabric: &mut Fabric,
    ) {
        self.work(cost, fabric);
        let (now, waited) = (fabric.now(), self.waits());
        let client = &mut self.client;
        client.receive(now, &packet.header, &packet.body, &mut node.site);
        if waited && !self.waits() {
            fabric.agenda.enter(self.busy, Occurrence::Step(self.index));
        }
    }

    /// A packet has come from the network to the thread itself.
    pub fn receive(&mut self, packet: &ModelPacket, node: &mut ModelNode, fabric: &mut Fabric) {
        let (costs, kind) = (self.platform.costs, packet.header.kind);
        if kind != Kind::GuestTell || self.platform.system == System::Delegate {
            self.take(packet, costs.message(kind), node, fabric);
            self.send(node, fabric);
        } else if lets_in(&packet.header) {
            self.schedule(costs.wake, fabric);
        }
    }

    /// What its node sends because of it, it pays for, or agents send it.
    pub(super) fn send(&mut self, node: &mut ModelNode, fabric: &mut Fabric) {
        if self.platform.through_agents {
            return node.post_out(fabric);
        }
        let sent = node.send_out(self.busy.max(fabric.now()), fabric);
        if sent > 0 {
            self.work(sent * self.platform.costs.send, fabric);
        }
    }

    /// Its processor is free: goes on.
    pub fn step(&mut self, around: &mut Around<'_, P::Shared>) {
        match self.goal {
            _ if self.finished => {}
            None => self.go_on(around),
            Some(_) if self.client.event.is_some() => self.drive(around),
            Some((tag, writes)) => self.look(tag, writes, around),
        }
        self.send(around.0, around.2);
    }

    fn look(&mut self, tag: Tag, writes: bool, around: &mut Around<'_, P::Shared>) {
        let (now, site) = (around.2.now(), &mut around.0.site);
        let found = match self.platform.system {
            System::Delegate => {
                let asks = Purpose::Call(Kind::GuestAsk);
                self.client.begin(asks, (tag, 0), (None, None), now, site);
                Found::Began(tag)
            }
            _ => self.client.look((tag, writes), now, site),
        };
        self.found(found, tag, around);
    }

    fn found(&mut self, found: Found, tag: Tag, around: &mut Around<'_, P::Shared>) {
        let until = match found {
            Found::Copy(_) if self.execute(false, around) => return self.go_on(around),
            Found::Copy(_) => Until::Changed(tag),
            Found::UnderWay => Until::Over(tag),
            Found::NoRoom => Until::AnyOver,
            Found::Empty(slot, old) => {
                around.0.release(slot, old, around.2);
                return self.schedule(0, around.2);
            }
            Found::Began(_) => {
                self.missed = true;
                if self.attempt == 0 {
                    self.work(self.platform.costs.trap, around.2);
                }
                return;
            }
        };
        around.0.park(self.index, until);
    }

    /// Goes on with an event as far as it goes.
    fn drive(&mut self, around: &mut Around<'_, P::Shared>) {
        loop {
            let (node, _, fabric) = around;
            let did = self.client.go_on(fabric.now(), &mut node.site);
            self.send(node, fabric);
            match did {
                Did::Wait | Did::Held => return,
                Did::Went | Did::Set(_) => {}
                Did::Use => _ = self.execute(true, around),
                Did::Over(event, then) => return self.over(&event, then, around),
            }
        }
    }

    fn over(&mut self, event: &Event, then: Then, around: &mut Around<'_, P::Shared>) {
        if then != Then::Done {
            self.program.refused(then);
        }
        self.failures += u64::from(matches!(then, Then::Fail(_) | Then::Lost));
        let (node, _, fabric) = around;
        match (event.entry, then) {
            (Some(slot), Then::Relook) => {
                let (now, site) = (fabric.now(), &mut node.site);
                let found = self.client.evict(slot, event.tag, now, site);
                return self.found(found, event.tag, around);
            }
            (Some(slot), _) => node.release(slot, event.tag, fabric),
            (None, _) => {}
        }
        match then {
            Then::Done if !event.access.purpose().evicts() => {
                self.attempt = 0;
                self.go_on(around);
            }
            Then::Done | Then::Again | Then::Relook => self.schedule(0, fabric),
            Then::BackOff | Then::Fail(_) | Then::Lost => {
                self.attempt += 1;
                let most = BACKOFF << self.attempt.min(DOUBLINGS);
                let wait = most / 2 + self.program.random().below(most / 2);
                let at = self.busy.max(fabric.now()) + wait;
                fabric.agenda.enter(at, Occurrence::Step(self.index));
            }
        }
    }
}
