//! An application thread as explorers see it: where it is in its program, and its requester.

use super::layout::{Layout, Start};
use super::scenario::Op;
use crate::site::Client;
use std::hash::{Hash, Hasher};

/// What has become of a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Store {
    /// Nothing that counts.
    #[default]
    Open,
    /// Its epoch has ended before there was an answer.
    CutOff,
    /// Home has not taken it: it is a write like any other now.
    Refused,
}

/// A thread and its requester.
#[derive(Clone)]
pub struct Thread {
    /// Which of the scenario's threads it is.
    pub index: usize,
    /// Its requester, and its event if it has one.
    pub client: Client,
    /// Whether its operation was refused, and not granted since.
    pub refused: bool,
    /// Whether it keeps the copy reserved that it wants to evict.
    pub reserved: bool,
    /// What has become of the store that its operation began with.
    pub store: Store,
    /// Operations that it has finished.
    pub done: u8,
}

impl Thread {
    /// A thread that has done nothing.
    pub fn new(index: usize, layout: &Layout, start: Start) -> Self {
        Thread {
            index,
            client: Client::new(layout.engine(layout.requester(index), start)),
            refused: false,
            reserved: false,
            store: Store::Open,
            done: 0,
        }
    }

    /// What it does next, if anything.
    pub fn op(&self, layout: &Layout) -> Option<Op> {
        let program = layout.scenario.programs[self.index];
        let op = program.ops.get(usize::from(self.done)).copied()?;
        Some(match (op, self.store) {
            (Op::Store(block), Store::CutOff) => Op::StoreAgain(block),
            (Op::Store(block), Store::Refused) => Op::Write(block),
            _ => op,
        })
    }

    /// Whether nothing is left to do or to be acknowledged.
    pub fn idle(&self, layout: &Layout) -> bool {
        self.op(layout).is_none() && self.client.engine.can_unlock()
    }

    /// The operation is over.
    pub fn finish(&mut self) {
        self.done += 1;
        (self.refused, self.reserved, self.store) = (false, false, Store::Open);
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.client.fingerprint(into);
        (self.refused, self.reserved, self.store, self.done).hash(into);
    }
}
