//! A pipeline at the edge of the chip that is read, with its controller.

use super::chip::EDGES;
use rackmem_proto::sabre::controller::{Action, Controller, Design, Load, NotTaken, Request};
use std::collections::VecDeque;

/// A plain read of a block, of a reader's slot: no state at the destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain {
    pub reader: u8,
    pub slot: u8,
    pub nth: u16,
}

/// What comes from a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    Sabre(Request),
    Plain(Plain),
}

/// What the pipeline does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Load(Loading),
    Action(Action),
}

/// A load under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loading {
    Sabre(Load),
    Plain(Plain),
}

/// See the module.
#[derive(Debug)]
pub struct R2p2 {
    pub controller: Controller,
    /// What came from each source pipeline, in order.
    inbox: [VecDeque<Arrival>; EDGES],
    next: usize,
    plain: VecDeque<Plain>,
    /// Whether its stages have an event that is due.
    pub accepting: bool,
    pub issuing: bool,
}

impl R2p2 {
    pub fn new(design: Design) -> Self {
        R2p2 {
            controller: Controller::new(design),
            inbox: Default::default(),
            next: 0,
            plain: VecDeque::new(),
            accepting: false,
            issuing: false,
        }
    }

    pub fn arrive(&mut self, source: usize, packet: Arrival) {
        self.inbox[source].push_back(packet);
    }

    /// Takes one packet. A registration without a free entry holds up its own source only.
    pub fn accept(&mut self) -> bool {
        for nth in 0..EDGES {
            let at = (self.next + nth) % EDGES;
            let Some(packet) = self.inbox[at].front().copied() else {
                continue;
            };
            match packet {
                Arrival::Plain(plain) => self.plain.push_back(plain),
                Arrival::Sabre(request) => {
                    if self.controller.accept(&request) == Err(NotTaken::Full) {
                        continue;
                    }
                }
            }
            self.inbox[at].pop_front();
            self.next = at + 1;
            return true;
        }
        false
    }

    /// The next action: SABRes that can end first, since others wait for their entries.
    pub fn step(&mut self) -> Option<Step> {
        let of = |action: Action| match action {
            Action::Load(load) => Step::Load(Loading::Sabre(load)),
            action => Step::Action(action),
        };
        if let Some(action) = self.controller.validate() {
            return Some(of(action));
        }
        if let Some(plain) = self.plain.pop_front() {
            return Some(Step::Load(Loading::Plain(plain)));
        }
        self.controller.issue().map(of)
    }
}
