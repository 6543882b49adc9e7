//! What threads do, and what is measured of it: [`Accesses`](super::Accesses) to memory,
//! or critical
//! [`Sections`](super::Sections).

use super::layout::Layout;
use super::node::ModelNode;
use super::{Platform, Workload};
use crate::world::Random;
use rackmem_proto::Output;
use rackmem_proto::engine::Then;
use rackmem_proto::gcp::Access;
use rackmem_proto::wire::{RequesterId, Tag};
use std::fmt::Debug;

/// An access to a block, as its node calls it.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// The block.
    pub block: u32,
    /// Whether it changes it.
    pub writes: bool,
}

/// What a thread does next.
#[derive(Clone, Debug)]
pub enum Next {
    /// It is busy for so long.
    Work(u64),
    /// It accesses a block; the look into the cache is paid before its result is known.
    Access(Goal, u64),
    /// It enters a lock of GCP, and goes on when it is let in.
    Enter(Tag, Access),
    /// It leaves one. What that sends leaves at once, or when the thread has nothing else to do.
    Leave(Tag, Access, bool),
    /// It sends something to a guest.
    Tell(Output),
    /// It waits for a guest's answer.
    Wait,
    /// Nothing more.
    Stop,
}

/// A thread that is let into a lock of GCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inside {
    /// Which, of all threads.
    pub thread: u16,
    /// Into which lock.
    pub lock: Tag,
    /// Whether a packet has let it in; otherwise the lock was here.
    pub remote: bool,
    /// Requests to the directory since the last thread that a packet let in.
    pub transactions: u32,
}

/// What a program is: its parameters, and what they mean.
pub trait Program: Copy + Debug {
    /// A thread that runs it.
    type Thread: Steps;
    /// What is measured beside an [`Outcome`](super::Outcome)'s other figures.
    type Figures: Clone + PartialEq + Debug + Default;

    /// Whether operations count that were under way when the measurement ended.
    const COUNTS_ENDING: bool;

    /// How large the rack is.
    fn layout(platform: &Platform, workload: &Workload<Self>) -> Layout;
    /// What all threads share.
    fn shared(workload: &Workload<Self>, layout: &Layout) -> <Self::Thread as Steps>::Shared;
    /// A thread.
    fn thread(
        platform: &Platform,
        workload: &Workload<Self>,
        id: RequesterId,
        random: Random,
    ) -> Self::Thread;
    /// The figures of all threads, by node; operations of the one that had fewest,
    /// by those of the one that had most.
    fn figures<'t>(
        nodes: impl Iterator<Item = &'t [super::Thread<Self::Thread>]>,
    ) -> (Self::Figures, f64)
    where
        Self::Thread: 't;
}

/// A thread of a program: it is asked what to do next whenever what it has asked for last is done.
pub trait Steps {
    /// What all threads share.
    type Shared;
    /// Whether an access begins without the refusals of the one before,
    /// if that was a hit in the end.
    const FORGETS_REFUSALS: bool;

    /// What now? `missed`: for the last access an event was begun.
    fn next(&mut self, now: u64, missed: bool, node: &ModelNode, shared: &mut Self::Shared)
    -> Next;
    /// The block is here, and if it was `fetched`, just for this. `false`:
    /// what the access waits for is not in it.
    fn execute(&mut self, _shared: &mut Self::Shared, _fetched: bool) -> bool {
        true
    }
    /// An event was refused.
    fn refused(&mut self, then: Then);
    /// GCP has let it in. After how long it goes on.
    fn let_in(&mut self, _inside: &Inside) -> u64 {
        0
    }
    /// Chance.
    fn random(&mut self) -> &mut Random;
    /// Whether its first pass over its blocks is behind it.
    fn is_warm(&self) -> bool {
        true
    }
    /// How many operations have ended since it was asked last.
    fn ended(&mut self) -> u64;
    /// Forgets what was measured.
    fn reset(&mut self);
    /// Begins no further operation.
    fn stop(&mut self);
    /// Of the whole run: how often it was where another thread should not have been.
    fn overlaps(&self) -> u64 {
        0
    }
}
