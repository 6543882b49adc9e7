//! An application thread: a site's client that goes on when its processor is free,
//! and what each part costs.

use super::fabric::{Fabric, ModelPacket};
use super::guest::lets_in;
use super::layout::Layout;
use super::node::{ModelNode, Until};
use super::processor::Processor;
use super::program::Steps;
use super::{Platform, System};
use crate::site::{Client, Did, Want};
use rackmem_proto::engine::{Access, Do, Purpose, Then};
use rackmem_proto::wire::{Kind, RequesterId, Tag};

/// The first wait after "locked", at most, in nanoseconds; it doubles with every attempt.
const BACKOFF: u64 = 200;

/// One application thread and its requester.
pub struct Thread<P> {
    /// What it runs on.
    pub cpu: Processor,
    pub(super) platform: Platform,
    pub(super) layout: Layout,
    pub(super) client: Client<()>,
    /// What a block leaves by beside the client's event.
    pub(super) beside: Client<()>,
    /// How the client's event has ended, while the other goes on.
    ended: Option<(Access, Then)>,
    /// The block that it accesses, and whether it changes it. Without one, what is next is for its
    /// program to say, now or when it is let go on.
    pub(super) goal: Option<(Tag, bool)>,
    /// Nothing more to do.
    pub(super) finished: bool,
    pub(super) missed: bool,
    pub(super) attempt: u32,
    /// Answers that no correct rack gives.
    pub failures: u64,
    /// What it is for.
    pub program: P,
}

/// Where a thread is: its node, what all threads share, and the network.
pub type Around<'a, S> = (&'a mut ModelNode, &'a mut S, &'a mut Fabric);

impl<P: Steps> Thread<P> {
    /// The `index`th of all threads, with nothing done, and its two requesters.
    pub fn new(
        (id, beside, index): (RequesterId, RequesterId, u16),
        (platform, layout): (Platform, Layout),
        program: P,
    ) -> Self {
        Thread {
            cpu: Processor::new(index),
            platform,
            layout,
            client: Client::new(layout.requester(id, &platform)),
            beside: Client::new(layout.requester(beside, &platform)),
            ended: None,
            goal: None,
            finished: false,
            missed: false,
            attempt: 0,
            failures: 0,
            program,
        }
    }

    /// Whether one of its events is not over, or not acknowledged.
    pub fn has_left_something(&self) -> bool {
        let requesters = [&self.client.engine, &self.beside.engine];
        self.beside.is_busy() || !requesters.iter().all(|engine| engine.can_unlock())
    }

    /// Takes a packet, which costs the thread itself so much. What follows is to be sent.
    pub fn take(
        &mut self,
        packet: &ModelPacket,
        cost: u64,
        node: &mut ModelNode,
        fabric: &mut Fabric,
    ) {
        self.cpu.work(cost, fabric);
        let header = &packet.header;
        let client = match header.requester == self.client.engine.id() {
            true => &mut self.client,
            false => &mut self.beside,
        };
        let waited = client.waits();
        node.site.answer(client, fabric.now(), header, &packet.body);
        if waited && !client.waits() {
            self.cpu.pause(0, fabric);
        }
    }

    /// A packet has come from the network to the thread itself.
    pub fn receive(&mut self, packet: &ModelPacket, node: &mut ModelNode, fabric: &mut Fabric) {
        let (costs, kind) = (self.platform.costs, packet.header.kind);
        if kind != Kind::GuestTell || self.platform.system == System::Delegate {
            self.take(packet, costs.message(kind), node, fabric);
            self.send(node, fabric);
        } else if lets_in(&packet.header) {
            self.cpu.schedule(costs.wake, fabric);
        }
    }

    /// What its node sends because of it, it pays for, or agents send it.
    pub(super) fn send(&mut self, node: &mut ModelNode, fabric: &mut Fabric) {
        let now = self.cpu.free(fabric);
        let leaves = (!self.platform.through_agents).then_some(now);
        let sent = node.follow(leaves, fabric);
        self.cpu.work(sent * self.platform.costs.send, fabric);
    }

    /// Its processor is free: goes on as far as it goes.
    pub fn step(&mut self, around: &mut Around<'_, P::Shared>) {
        self.go_on_beside(around);
        match self.goal {
            _ if self.finished => {}
            // The operation is not over before both events are.
            _ if self.ended.is_some() => {
                if let Some((event, then)) = self.ended.take_if(|_| !self.beside.is_busy()) {
                    self.over(&event, then, around);
                }
            }
            None => self.go_on(around),
            Some((tag, writes)) => while self.drive(tag, writes, around) {},
        }
        self.send(around.0, around.2);
    }

    /// The block that leaves beside what comes goes on leaving.
    fn go_on_beside(&mut self, around: &mut Around<'_, P::Shared>) {
        let (node, _, fabric) = around;
        while self.beside.is_busy() {
            let did = node.site.go_on(&mut self.beside, fabric.now());
            self.send(node, fabric);
            if let Did::Step(_, Do::Wait) = did {
                return;
            }
        }
    }

    /// A step towards its block. `false`: it does not go on now.
    fn drive(&mut self, tag: Tag, writes: bool, around: &mut Around<'_, P::Shared>) -> bool {
        let (node, _, fabric) = around;
        let (now, site) = (fabric.now(), &mut node.site);
        let want = match self.platform.system {
            System::Delegate => Want::Ask(Purpose::Call(Kind::GuestAsk), (tag, 0)),
            _ => Want::Copy(tag, writes),
        };
        let did = match self.client.is_busy() {
            true => site.go_on(&mut self.client, now),
            false => site.attempt(&mut self.client, want, now),
        };
        if did == Did::Began {
            self.missed = true;
            let traps = u64::from(self.attempt == 0);
            self.cpu.work(traps * self.platform.costs.trap, fabric);
        }
        if did == Did::Began
            && self.layout.evicts_ahead
            && let Some(event) = self.client.event
        {
            let comes = (event.tag(), event.purpose());
            node.site.make_room(&mut self.beside, comes, now);
        }
        self.send(node, fabric);
        match did {
            Did::Began => {}
            Did::Emptied => self.cpu.schedule(0, fabric),
            Did::Park(on) => {
                let until = on.map_or(Until::AnyOver, Until::Over);
                node.parked.push((until, self.cpu.thread));
            }
            Did::Hit if self.execute(false, around) => self.go_on(around),
            Did::Hit => around.0.parked.push((Until::Changed(tag), self.cpu.thread)),
            Did::Step(_, Do::Wait) => {}
            Did::Step(event, Do::Over(then)) if self.beside.is_busy() => {
                self.ended = Some((event, then));
            }
            Did::Step(event, Do::Over(then)) => return self.over(&event, then, around),
            Did::Step(_, todo) => {
                if todo == Do::Use {
                    self.execute(true, around);
                }
                return true;
            }
        }
        false
    }

    fn over(&mut self, event: &Access, then: Then, around: &mut Around<'_, P::Shared>) -> bool {
        if then != Then::Done {
            self.program.refused(then);
        }
        self.failures += u64::from(matches!(then, Then::Fail(_) | Then::Lost));
        match then {
            Then::Done if !event.purpose().evicts() => {
                self.attempt = 0;
                self.go_on(around);
            }
            Then::Relook => return true,
            Then::Done | Then::Again => self.cpu.schedule(0, around.2),
            Then::BackOff | Then::Fail(_) | Then::Lost => {
                self.attempt += 1;
                let wait = self.program.random().pause(BACKOFF, self.attempt);
                self.cpu.pause(wait, around.2);
            }
        }
        false
    }
}
