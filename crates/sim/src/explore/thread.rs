//! An application thread as explorers see it: where it is in its program, and what its event is doing.

use super::layout::{Layout, Standing};
use super::scenario::Op;
use crate::invariants::LiveEvent;
use rackmem_proto::flowcc::{LocalStatus, Requester};
use rackmem_proto::wire::{Kind, RequesterId};
use std::hash::{Hash, Hasher};

/// What an event is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// Fetch a block, for this status.
    Fill(LocalStatus),
    /// Make a clean copy writable.
    Upgrade,
    /// Give a clean copy back.
    EvictClean,
    /// Write a dirty copy home and give it back.
    EvictDirty,
    /// Hold the entry's lock.
    Hold {
        /// As a reader.
        shared: bool,
    },
    /// Accept the loss of a block.
    AcceptLoss,
}

impl Purpose {
    /// The request that asks for it.
    pub fn kind(self) -> Kind {
        match self {
            Purpose::Fill(LocalStatus::Modified) => Kind::WriteMiss,
            Purpose::Fill(_) => Kind::ReadMiss,
            Purpose::Upgrade => Kind::WriteShared,
            Purpose::EvictClean => Kind::EvictShared,
            Purpose::EvictDirty => Kind::EvictModified,
            Purpose::Hold { shared: true } => Kind::LockRead,
            Purpose::Hold { shared: false } => Kind::LockWrite,
            Purpose::AcceptLoss => Kind::AcceptLoss,
        }
    }

    /// Whether the node's copy of the block is reserved for it.
    pub fn reserves(self) -> bool {
        !matches!(self, Purpose::Hold { .. } | Purpose::AcceptLoss)
    }
}

/// What follows an event's unlock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Then {
    /// The operation is done.
    Finish,
    /// The operation looks again.
    Again,
    /// The eviction looks again, and the copy stays reserved.
    Relook,
}

/// How far an event is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stage {
    /// Answers are missing.
    Acquiring,
    /// The block is on its way home.
    WritingBack,
    /// The lock is held for the thread's own purposes.
    Holding,
    /// It can be unlocked as soon as the unlock before it is acknowledged.
    Ending {
        /// What follows.
        then: Then,
        /// Whether the entry's metadata stays as it is.
        keep: bool,
    },
}

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
    /// It waits for its event.
    Busy {
        /// What for.
        purpose: Purpose,
        /// Which block.
        block: u8,
        /// How far.
        stage: Stage,
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
    pub fn new(index: usize, layout: &Layout, standing: Standing) -> Self {
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
        // An acceptance holds nothing.
        if let State::Busy { purpose, block, .. } = self.state
            && purpose != Purpose::AcceptLoss
        {
            live.push(event(block, purpose.kind().locks_shared()));
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
            State::Busy {
                purpose: Purpose::Hold { shared },
                block,
                stage: Stage::Holding,
                ..
            } => Some((block, shared)),
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
