//! What a thread's next operation needs, as its node's cache stands.

use super::effects::Effects;
use super::layout::Layout;
use super::node::ExplorerNode;
use super::scenario::Op;
use super::witness::Witness;
use crate::site::Want;
use rackmem_proto::engine::{self, Entries, KeptCopies, Purpose};
use rackmem_proto::flowcc::Whereabouts;
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
    /// Nothing: home's memory is here, and all that there is of it.
    InPlace,
    /// Nothing: the block's home is not a member, or not yet.
    Nowhere,
    /// Nothing: there is no copy to evict.
    Gone,
    /// Nothing: the block's region is removed, which is a failure for the program.
    Removed,
    /// This, and for that an event if it is not there.
    Want(Want, Option<Purpose>),
}

impl ExplorerNode {
    /// What a thread would do if it were its turn.
    pub fn next(&self, at: usize, layout: &Layout) -> Next {
        let thread = &self.threads[at];
        if thread.client.event.is_some() {
            return match thread.client.holding() {
                Some(_) => Next::Free,
                None => Next::Nothing,
            };
        }
        let Some(op) = thread.op(layout) else {
            return Next::Nothing;
        };
        match self.plan(op, at, layout) {
            Plan::Wait => Next::Nothing,
            Plan::Want(_, Some(Purpose::Call(Kind::Operate))) if thread.refused => {
                Next::Again(Kind::Operate, op.block())
            }
            // What only an epoch refuses is not refused again.
            Plan::Want(_, Some(Purpose::Call(_))) => Next::Free,
            Plan::Want(_, Some(purpose)) if thread.refused => {
                Next::Again(purpose.kind(), op.block())
            }
            _ => Next::Free,
        }
    }

    /// What an operation of a thread needs.
    pub fn plan(&self, op: Op, at: usize, layout: &Layout) -> Plan {
        let (block, cache) = (op.block(), &self.site.cache);
        let (tag, client) = (layout.tag(block), &self.threads[at].client);
        let started = self.site.view.incarnation_of(tag.home());
        if started.is_none_or(|started| started < layout.incarnation(block)) {
            return Plan::Nowhere;
        }
        if !tag.home().is_own() {
            match self.site.whereabouts(tag) {
                Whereabouts::Here => {}
                Whereabouts::Gone => return Plan::Removed,
                // Nobody has told its address yet.
                Whereabouts::Unheard => return Plan::Wait,
            }
        }
        let ask = |purpose| Want::Ask(purpose, (tag, 0));
        let want = match op {
            Op::HoldRead(_) => ask(Purpose::Hold { shared: true }),
            Op::HoldWrite(_) => ask(Purpose::Hold { shared: false }),
            Op::AcceptLoss(_) => ask(Purpose::Call(Kind::AcceptLoss)),
            Op::Fetch(_) => Want::Long(tag, false),
            Op::WriteInPlace(_) if self.site.books().has_alone(tag) => return Plan::InPlace,
            Op::Store(_) => Want::Long(tag, true),
            Op::Swap(_) => Want::Operate(tag),
            Op::Read(_) => Want::Copy(tag, false),
            Op::Write(_) | Op::WriteInPlace(_) => Want::Copy(tag, true),
            Op::Evict(_) => {
                let status = cache.copy(tag).map(|(status, _)| status);
                return match status.and_then(Purpose::to_evict) {
                    None => Plan::Gone,
                    Some(_) if cache.under_way(tag) && client.leaving.is_none() => Plan::Wait,
                    purpose => Plan::Want(Want::Leave(tag), purpose),
                };
            }
        };
        let want = self.site.means(client.stored, want);
        match want {
            Want::Ask(purpose, _) => Plan::Want(want, Some(purpose)),
            Want::Copy(_, writes) => match engine::plan(cache, tag, writes) {
                engine::Plan::Begin(_, purpose) => Plan::Want(want, Some(purpose)),
                engine::Plan::Hit(_) => Plan::Want(want, None),
                _ => Plan::Wait,
            },
            _ => Plan::Want(want, None),
        }
    }

    /// Sees to it that a thread that waits for this one's event is seen.
    pub fn note_neighbours(&self, at: usize, fx: &mut Effects<'_>) {
        let layout = fx.layout;
        let waits = |other: usize| {
            let thread = &self.threads[other];
            let resting = thread.client.event.is_none();
            let op = thread.op(layout).filter(|_| resting && other != at);
            op.is_some_and(|op| self.plan(op, other, layout) == Plan::Wait)
        };
        let waited = (0..self.threads.len()).any(waits);
        fx.seen.see_if(waited, Witness::WaitedForNeighbour);
    }
}
