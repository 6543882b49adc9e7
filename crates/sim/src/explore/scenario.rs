//! What is to be explored: a small rack, what its threads do, and how much the network may
//! misbehave.

use super::witness::Witness;
use crate::world::{Mutation, Owners};
use rackmem_proto::wire::NodeId;

/// Nodes of an explored rack at most.
pub const MAX_NODES: usize = 4;
/// Blocks at most.
pub const MAX_BLOCKS: usize = 4;
/// Operations of a thread at most, so that what each writes has a number of its own.
pub const MAX_OPERATIONS: usize = 8;
/// Threads of a rack at most.
pub const MAX_THREADS: usize = 8;

/// One operation of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Look at a block.
    Read(u8),
    /// Look at a block and store a value that nothing else ever stores.
    Write(u8),
    /// Empty the node's cache of a block, if it is there.
    Evict(u8),
    /// Hold a block's lock as a reader for as long as the explorer likes (§6).
    HoldRead(u8),
    /// Hold it as the writer.
    HoldWrite(u8),
    /// Look at a block and keep no copy, if its home may answer that; otherwise it changes nothing.
    Fetch(u8),
    /// At the block's home: store a value that nothing else ever stores in home's memory, if that
    /// is all there is of the block; otherwise as [`Op::Write`].
    WriteInPlace(u8),
    /// Have the block's home store a value that nothing else ever stores, and keep no copy, if
    /// home's memory is all that there is of it; otherwise as [`Op::Write`].
    Store(u8),
    /// Have the block's home replace what is there by a value that nothing else ever stores, and
    /// tell what was there, if home's memory is all that there is of it;
    /// otherwise as [`Op::Write`].
    Swap(u8),
    /// Go on with what home has of a block whose last content died with a node;
    /// of another one it changes nothing.
    AcceptLoss(u8),
}

impl Op {
    /// The block that it is about.
    pub fn block(self) -> u8 {
        let (Op::Read(block)
        | Op::Write(block)
        | Op::Evict(block)
        | Op::HoldRead(block)
        | Op::HoldWrite(block)
        | Op::Fetch(block)
        | Op::WriteInPlace(block)
        | Op::Store(block)
        | Op::Swap(block)
        | Op::AcceptLoss(block)) = self;
        block
    }
}

/// A thread and its requester.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Program {
    /// The node it runs on.
    pub node: NodeId,
    /// What it does, in order, each whenever the explorer likes.
    pub ops: &'static [Op],
}

/// What may die, so that the rack goes on in a new epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Failure {
    /// The switch.
    Switch,
    /// A node.
    Node(NodeId),
    /// The switch and a node, together.
    SwitchAndNode(NodeId),
    /// Nothing: a node that has died comes back with empty hands, in its next incarnation.
    Return(NodeId),
    /// A node, which comes back before it is missed: it is excluded and admitted in one go,
    /// which is two epochs.
    Restart(NodeId),
    /// Nothing: a new switch comes, in the place of the old one if that has not died before.
    NewSwitch,
    /// Nothing: the rack goes into a new epoch as it is.
    Nothing,
}

/// How often in one run something may happen that need not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Budget {
    /// Packets that never arrive.
    pub losses: u8,
    /// Packets that arrive once more, any time later.
    pub duplicates: u8,
    /// Retransmissions while packets are still on their way. Those while none is are free.
    pub early: u8,
    /// Attempts to do again what was refused while it would be refused again. Others are free.
    pub retries: u8,
    /// Entries that are told to move to the switch, or back.
    pub moves: u8,
    /// Failures that begin a new epoch.
    pub epochs: u8,
}

/// How large an exploration is known to be. A change of a role that changes these is a change of
/// its behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// States.
    pub states: usize,
    /// Transitions between them.
    pub transitions: usize,
}

/// A rack to explore.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name: stable, lower case.
    pub name: &'static str,
    /// What it is for, with the section or the hard place.
    pub shows: &'static str,
    /// Who owns entries.
    pub rack: Owners,
    /// How many nodes.
    pub nodes: u16,
    /// The home of each block.
    pub homes: &'static [NodeId],
    /// By block: 0 for one of its node's own memory, 1 for one of a region that a group keeps, with
    /// node 0 as its keeper, and which is removed at any moment, 2 for one of the region that has
    /// its number next. Empty, and all are of nodes.
    pub kept: &'static [u8],
    /// Blocks of memory that their homes give only when they have come back.
    pub young: &'static [u8],
    /// Whether a packet of a past epoch stays in flight, any one.
    pub late: bool,
    /// The threads.
    pub programs: &'static [Program],
    /// Blocks whose entries the switch owns from the start.
    pub in_switch: &'static [u8],
    /// What the network and the clocks may do.
    pub budget: Budget,
    /// What they may do where there is time.
    pub deep: Budget,
    /// What may die, within the budget of epochs.
    pub failures: &'static [Failure],
    /// Whether a rebuild is explored packet by packet: nodes only, a switch may only die,
    /// and failures come in the order of their list, each once.
    pub inside: bool,
    /// Whether kernels answer for cache agents and homes what they can.
    pub in_kernel: bool,
    /// Segments that a block travels in, 1 or 2.
    pub segments: u8,
    /// What must have been seen somewhere, or the scenario shows nothing.
    pub sometimes: &'static [Witness],
    /// Its size under `budget`.
    pub size: Option<Size>,
    /// A defect to put into a role.
    pub mutation: Option<Mutation>,
}

impl Scenario {
    /// The same with the larger budget.
    #[must_use]
    pub fn deepened(self) -> Self {
        Scenario {
            budget: self.deep,
            size: None,
            ..self
        }
    }

    /// The requesters of a node, in order of their slots: indices into `programs`.
    pub(super) fn threads_of(&self, node: NodeId) -> impl Iterator<Item = usize> {
        let programs = self.programs.iter().enumerate();
        programs
            .filter(move |(_, program)| program.node == node)
            .map(|(at, _)| at)
    }
}
