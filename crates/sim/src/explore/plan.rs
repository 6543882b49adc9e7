//! What a thread's next operation needs, as its node's cache stands.

use super::effects::Effects;
use super::layout::Layout;
use super::node::Node;
use super::scenario::Op;
use super::thread::State;
use super::witness::Witness;
use rackmem_proto::engine::{self, Entries, Purpose};
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
                    Plan::Begin(Purpose::Call(_), _) => Next::Free,
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
        let copy = Copy {
            block,
            status: slot.status,
            taken: slot.reserved && !reserved,
        };
        let needs = |writes| match (slot.status, writes) {
            (LocalStatus::Modified, _) | (LocalStatus::Shared, false) => Plan::Hit(block),
            _ => copy.plan(writes),
        };
        match op {
            Op::HoldRead(_) => Plan::Begin(Purpose::Hold { shared: true }, block),
            Op::HoldWrite(_) => Plan::Begin(Purpose::Hold { shared: false }, block),
            Op::AcceptLoss(_) => Plan::Begin(Purpose::Call(Kind::AcceptLoss), block),
            Op::Read(_) => needs(false),
            Op::Write(_) => needs(true),
            Op::Evict(_) => match Purpose::to_evict(slot.status) {
                None => Plan::Gone(block),
                Some(_) if copy.taken => Plan::Wait,
                Some(purpose) => Plan::Begin(purpose, block),
            },
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

/// A cache as a thread sees it that wants this block: there is a place for each, and only programs evict.
struct Copy {
    block: u8,
    status: LocalStatus,
    taken: bool,
}

impl Copy {
    fn plan(&self, writes: bool) -> Plan {
        match engine::plan(self, self.block, writes) {
            engine::Plan::Hit(block) => Plan::Hit(block),
            engine::Plan::Begin(block, purpose) => Plan::Begin(purpose, block),
            _ => Plan::Wait,
        }
    }
}

impl Entries for Copy {
    type Entry = u8;
    type Block = u8;

    fn under_way(&self, _: u8) -> bool {
        self.taken
    }

    fn find(&self, _: u8) -> Option<(u8, LocalStatus)> {
        Some((self.block, self.status))
    }

    fn room(&self, _: u8) -> Option<(u8, Option<u8>)> {
        Some((self.block, None))
    }
}
