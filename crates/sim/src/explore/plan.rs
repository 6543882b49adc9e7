//! What a thread's next operation needs, as its node's cache stands.

use super::effects::Effects;
use super::layout::Layout;
use super::node::ExplorerNode;
use super::scenario::Op;
use super::witness::Witness;
use rackmem_proto::engine::{self, Entries, Purpose};
use rackmem_proto::wire::Kind;

/// What a thread at rest would do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing: its program is over, or it waits for something.
    Nothing,
    /// Something that it has not been refused, or that needs no owner.
    Free,
    /// Ask again for this block.
    Again(Kind, u8),
}

/// What an operation needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Another thread's event to end.
    Wait,
    /// Nothing: the copy is good for it.
    Hit(u8),
    /// Nothing: home's memory is here, and all that there is of it.
    InPlace(u8),
    /// Nothing: the block's home is not a member, or not yet.
    Nowhere,
    /// Nothing: there is no copy to evict.
    Gone,
    /// An event.
    Begin(Purpose, u8),
}

impl ExplorerNode {
    /// What a thread would do if it were its turn.
    pub fn next(&self, thread: usize, layout: &Layout) -> Next {
        let thread = &self.threads[thread];
        if thread.client.event.is_some() {
            return match thread.client.holding() {
                Some(_) => Next::Free,
                None => Next::Nothing,
            };
        }
        let Some(op) = thread.op(layout) else {
            return Next::Nothing;
        };
        match self.plan(op, thread.reserved, layout) {
            Plan::Wait => Next::Nothing,
            // What only an epoch refuses is not refused again.
            Plan::Begin(Purpose::Call(_), _) => Next::Free,
            Plan::Begin(purpose, block) if thread.refused => Next::Again(purpose.kind(), block),
            _ => Next::Free,
        }
    }

    /// What an operation needs.
    pub fn plan(&self, op: Op, reserved: bool, layout: &Layout) -> Plan {
        let (block, cache) = (op.block(), &self.site.cache);
        let tag = layout.tag(block);
        let started = self.site.view.incarnation_of(tag.home());
        if started.is_none_or(|started| started < layout.incarnation(block)) {
            return Plan::Nowhere;
        }
        let needs = |writes| match cache.hit(tag, writes) {
            Some(_) => Plan::Hit(block),
            None => match engine::plan(cache, tag, writes) {
                engine::Plan::Begin(_, purpose) => Plan::Begin(purpose, block),
                _ => Plan::Wait,
            },
        };
        match op {
            Op::HoldRead(_) => Plan::Begin(Purpose::Hold { shared: true }, block),
            Op::HoldWrite(_) => Plan::Begin(Purpose::Hold { shared: false }, block),
            Op::AcceptLoss(_) => Plan::Begin(Purpose::Call(Kind::AcceptLoss), block),
            Op::Fetch(_) => match cache.hit(tag, false) {
                Some(_) => Plan::Hit(block),
                None => Plan::Begin(Purpose::Call(Kind::Fetch), block),
            },
            Op::WriteInPlace(_) if self.home().has_alone(tag) => Plan::InPlace(block),
            Op::WriteInPlace(_) => needs(true),
            Op::Store(_) if cache.find(tag).is_some() => needs(true),
            Op::Store(_) | Op::StoreAgain(_) => Plan::Begin(Purpose::Call(Kind::Store), block),
            Op::Read(_) => needs(false),
            Op::Write(_) => needs(true),
            Op::Evict(_) => {
                let status = cache.copy(tag).map(|(status, _)| status);
                match status.and_then(Purpose::to_evict) {
                    None => Plan::Gone,
                    Some(_) if cache.under_way(tag) && !reserved => Plan::Wait,
                    Some(purpose) => Plan::Begin(purpose, block),
                }
            }
        }
    }

    /// Sees to it that a thread that waits for this one's event is seen.
    pub fn note_neighbours(&self, at: usize, layout: &Layout, fx: &mut Effects) {
        let waits = |other: usize| {
            let thread = &self.threads[other];
            let resting = thread.client.event.is_none();
            let op = thread.op(layout).filter(|_| resting && other != at);
            op.is_some_and(|op| self.plan(op, false, layout) == Plan::Wait)
        };
        let waited = (0..self.threads.len()).any(waits);
        fx.seen.see_if(waited, Witness::WaitedForNeighbour);
    }
}
