//! What a thread's next operation needs, as its node's cache stands.

use super::effects::Effects;
use super::layout::Layout;
use super::node::Node;
use super::scenario::Op;
use super::thread::{Purpose, State};
use super::witness::Witness;
use rackmem_proto::flowcc::LocalStatus;
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
    /// Nothing: the block's home is not a member, or not yet.
    Nowhere(u8),
    /// Nothing: there is no copy to evict.
    Gone(u8),
    /// An event.
    Begin(Purpose, u8),
}

impl Node {
    /// What a thread would do if it were its turn.
    pub fn next(&self, thread: usize, layout: &Layout) -> Next {
        let thread = &self.threads[thread];
        match thread.state {
            State::Busy { .. } if thread.holding().is_some() => Next::Free,
            State::Busy { .. } => Next::Nothing,
            State::Resting { refused, reserved } => {
                let Some(op) = thread.op(layout) else {
                    return Next::Nothing;
                };
                match self.plan(op, reserved, layout) {
                    Plan::Wait => Next::Nothing,
                    // What only an epoch refuses is not refused again.
                    Plan::Begin(Purpose::AcceptLoss, _) => Next::Free,
                    Plan::Begin(purpose, block) if refused => Next::Again(purpose.kind(), block),
                    _ => Next::Free,
                }
            }
        }
    }

    /// What an operation needs.
    pub fn plan(&self, op: Op, reserved: bool, layout: &Layout) -> Plan {
        let (Op::Read(block)
        | Op::Write(block)
        | Op::Evict(block)
        | Op::HoldRead(block)
        | Op::HoldWrite(block)
        | Op::AcceptLoss(block)) = op;
        let home = layout.scenario.homes[usize::from(block)];
        let started = u32::from(self.homes[usize::from(home)]);
        if started == 0 || started < layout.incarnation(block) {
            return Plan::Nowhere(block);
        }
        let slot = self.slots[usize::from(block)];
        let taken = slot.reserved && !reserved;
        match (op, slot.status) {
            (Op::HoldRead(_), _) => Plan::Begin(Purpose::Hold { shared: true }, block),
            (Op::HoldWrite(_), _) => Plan::Begin(Purpose::Hold { shared: false }, block),
            (Op::AcceptLoss(_), _) => Plan::Begin(Purpose::AcceptLoss, block),
            (Op::Read(_), LocalStatus::Shared | LocalStatus::Modified)
            | (Op::Write(_), LocalStatus::Modified) => Plan::Hit(block),
            (Op::Evict(_), LocalStatus::Invalid) => Plan::Gone(block),
            _ if taken => Plan::Wait,
            (Op::Read(_), LocalStatus::Invalid) => {
                Plan::Begin(Purpose::Fill(LocalStatus::Shared), block)
            }
            (Op::Write(_), LocalStatus::Invalid) => {
                Plan::Begin(Purpose::Fill(LocalStatus::Modified), block)
            }
            (Op::Write(_), LocalStatus::Shared) => Plan::Begin(Purpose::Upgrade, block),
            (Op::Evict(_), LocalStatus::Shared) => Plan::Begin(Purpose::EvictClean, block),
            (Op::Evict(_), LocalStatus::Modified) => Plan::Begin(Purpose::EvictDirty, block),
        }
    }

    /// Sees to it that a thread that waits for this one's event is seen.
    pub fn note_neighbours(&self, at: usize, layout: &Layout, fx: &mut Effects) {
        let waits = |other: usize| {
            let thread = &self.threads[other];
            let resting = matches!(thread.state, State::Resting { .. });
            let op = thread.op(layout).filter(|_| resting && other != at);
            op.is_some_and(|op| self.plan(op, false, layout) == Plan::Wait)
        };
        let waited = (0..self.threads.len()).any(waits);
        fx.seen.see_if(waited, Witness::WaitedForNeighbour);
    }
}
