//! Nodes with objects, their threads, and what may go wrong.

use rackmem_proto::wire::NodeId;

/// The home of an object with copies: the lowest node serves it.
pub const KEPT: NodeId = NodeId::MAX;

/// What a thread does, one after the other. Objects are meant by their places in the scenario.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// A transaction that reads these objects and writes those.
    Both(&'static [usize], &'static [usize]),
    /// Reads one object.
    Read(usize),
    /// Writes one object.
    Write(usize),
}

/// What may go wrong, how often in all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Budget {
    /// Packets that are lost.
    pub lose: u8,
    /// Packets that come twice.
    pub double: u8,
    /// Times that a node asks again while packets are under way.
    pub early: u8,
    /// Threads that wait no longer.
    pub leave: u8,
    /// Nodes of `mortal` that die.
    pub die: u8,
}

/// A small rack.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// Nodes.
    pub nodes: u16,
    /// The home of each object, or `KEPT`; in this order.
    pub objects: &'static [NodeId],
    /// The node of each thread, and what it does.
    pub threads: &'static [(NodeId, &'static [Op])],
    /// Nodes that may die.
    pub mortal: &'static [NodeId],
    /// What may go wrong.
    pub budget: Budget,
    /// Granules of a packet's body.
    pub room: usize,
    /// States that there are.
    pub states: usize,
}
