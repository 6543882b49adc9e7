//! An application thread as explorers see it: where it is in its program, and its requester.

use super::layout::Layout;
use super::packet::Value;
use super::scenario::Op;
use crate::site::Client;
use rackmem_proto::engine::Stored;
use rackmem_proto::membership::View;
use std::hash::{Hash, Hasher};

/// A thread and its requester.
#[derive(Clone)]
pub struct Thread {
    /// Which of the scenario's threads it is.
    pub index: usize,
    /// Its requester, and its event if it has one.
    pub client: Client<Value>,
    /// Whether its operation was refused, and not granted since.
    pub refused: bool,
    /// Operations that it has finished.
    pub done: u8,
}

impl Thread {
    /// A thread that has done nothing.
    pub fn new(index: usize, layout: &Layout, view: &View) -> Self {
        Thread {
            index,
            client: Client::new(layout.engine(layout.requester(index), view)),
            refused: false,
            done: 0,
        }
    }

    /// What it does next, if anything.
    pub fn op(&self, layout: &Layout) -> Option<Op> {
        let program = layout.scenario.programs[self.index];
        program.ops.get(usize::from(self.done)).copied()
    }

    /// The operation is over.
    pub fn finish(&mut self) {
        self.done += 1;
        (self.refused, self.client.stored) = (false, Stored::Open);
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.client.fingerprint(into);
        (self.refused, self.done).hash(into);
    }
}
