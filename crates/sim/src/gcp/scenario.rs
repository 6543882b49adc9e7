//! A rack, its threads, and what may go wrong.

use super::Witness;
use rackmem_proto::gcp::Access;

/// What a thread does. Nodes 1 and up begin with a handle on the lock that is there at first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Enters by its handle, and leaves.
    Use(Access),
    /// Frees the lock of its handle.
    Free,
    /// At the home: takes the lock because somebody tells, or has told long ago,
    /// that it has been freed.
    Home,
    /// At the home: makes another lock in its place if the home has that the lock is freed,
    /// and otherwise elsewhere.
    Make,
    /// Gets a handle on the lock that was made last.
    Attach,
}

impl Op {
    /// As what it enters.
    pub fn access(self) -> Access {
        match self {
            Op::Use(access) => access,
            _ => Access::Write,
        }
    }
}

/// What may go wrong, how often in all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Budget {
    /// Packets that are lost.
    pub lose: u8,
    /// Packets that come twice.
    pub double: u8,
    /// Packets that overtake others of the same way.
    pub late: u8,
    /// Times that somebody asks again too early.
    pub early: u8,
    /// Times that the home tells a node to forget what it keeps.
    pub dismiss: u8,
    /// Times that a node needs room, and asks the home to take the lock.
    pub give_up: u8,
    /// Times that the home keeps of a lock at rest nothing but a number.
    pub rest: u8,
}

/// Who serves the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// Its home, node 0.
    Home,
    /// The switch.
    Switch,
}

/// What begins an epoch. The home, node 0, does not die: with it the lock is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Failure {
    /// Nothing dies: somebody has come back.
    Nothing,
    /// This node.
    Node(u8),
    /// This node is taken for dead and goes on, in its own epoch.
    Fenced(u8),
    /// The switch, and this node if any.
    Switch(Option<u8>),
}

/// A small rack.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// Nodes.
    pub nodes: u8,
    /// Threads: where each runs, and what it does one after the other.
    pub threads: &'static [(u8, &'static [Op])],
    /// Who serves the lock.
    pub place: Place,
    /// Packets that the data comes in: 1 or 2.
    pub segments: u8,
    /// See [`rackmem_proto::gcp::BladeConfig::cohort`].
    pub cohort: u8,
    /// What may go wrong.
    pub budget: Budget,
    /// What dies, in this order, each at any time.
    pub failures: &'static [Failure],
    /// What must be seen somewhere, or the scenario shows nothing.
    pub sometimes: &'static [Witness],
    /// States that it has: a change of the protocol or of the world shows here.
    pub states: usize,
}
