//! An application thread as explorers see it: where it is in its program, and what its event is doing.

use super::layout::{Layout, Start};
use super::scenario::Op;
use crate::invariants::LiveEvent;
use rackmem_proto::engine::Access;
use rackmem_proto::flowcc::Requester;
use rackmem_proto::wire::RequesterId;
use std::hash::{Hash, Hasher};

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// It may begin its next operation, or try again what was refused.
    Resting {
        /// Whether it was refused.
        refused: bool,
        /// Whether it keeps the copy reserved that it wants to evict.
        reserved: bool,
    },
    /// It has an event.
    Busy {
        /// Which.
        access: Access,
        /// On which block.
        block: u8,
        /// Whether the operation was refused before.
        refused: bool,
    },
}

/// A thread at rest with nothing behind it.
pub const FRESH: State = State::Resting {
    refused: false,
    reserved: false,
};

/// A thread and its requester.
#[derive(Clone)]
pub struct Thread {
    /// Its requester's number.
    pub id: RequesterId,
    /// Which of the scenario's threads it is.
    pub index: usize,
    /// Its requester.
    pub engine: Requester,
    /// What it does.
    pub state: State,
    /// Operations that it has finished.
    pub done: u8,
    /// The block of the unlock that is not acknowledged, and whether it is a reader's.
    pub unlocking: Option<(u8, bool)>,
}

impl Thread {
    /// A thread that has done nothing.
    pub fn new(index: usize, layout: &Layout, standing: Start) -> Self {
        let id = layout.requester(index);
        Thread {
            id,
            index,
            engine: layout.engine(id, standing),
            state: FRESH,
            done: 0,
            unlocking: None,
        }
    }

    /// What it does next, if anything.
    pub fn op(&self, layout: &Layout) -> Option<Op> {
        let program = layout.scenario.programs[self.index];
        program.ops.get(usize::from(self.done)).copied()
    }

    /// Whether nothing is left to do or to be acknowledged.
    pub fn idle(&self, layout: &Layout) -> bool {
        self.op(layout).is_none() && self.engine.can_unlock()
    }

    /// The operation is over.
    pub fn finish(&mut self) {
        self.done += 1;
        self.state = FRESH;
    }

    /// The events that may hold a lock.
    pub fn live(&self, layout: &Layout) -> Vec<LiveEvent> {
        let node = self.id.node;
        let event = |block, shared| LiveEvent {
            node,
            tag: layout.tag(block),
            shared,
        };
        let mut live = Vec::new();
        if let State::Busy { access, block, .. } = self.state
            && access.purpose().locks()
        {
            live.push(event(block, access.purpose().shares()));
        }
        live.extend(self.engine.tail().map(|tag| LiveEvent {
            node,
            tag,
            shared: true,
        }));
        live.extend(self.unlocking.map(|(block, shared)| event(block, shared)));
        live
    }

    /// The block whose lock it holds for its own purposes, and whether as a reader.
    pub fn holding(&self) -> Option<(u8, bool)> {
        match self.state {
            State::Busy { access, block, .. } if access.is_held() => {
                Some((block, access.purpose().shares()))
            }
            _ => None,
        }
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.engine.fingerprint(into);
        self.state.hash(into);
        self.done.hash(into);
        self.unlocking.hash(into);
    }
}
