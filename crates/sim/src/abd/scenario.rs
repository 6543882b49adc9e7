//! A rack with one replicated group, its threads, and what may go wrong.

use super::Witness;
use rackmem_proto::abd::Change;
use rackmem_proto::wire::NodeId;

/// What a thread does with a line, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Reads it.
    Read(u8),
    /// Writes it.
    Write(u8),
    /// Puts it in place, as the next home does.
    Take(u8),
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
    /// Processes that end and start again.
    pub crash: u8,
    /// Members that are gone for good.
    pub die: u8,
    /// Times that the switch starts again.
    pub switch: u8,
    /// Operations that a thread waits for no longer.
    pub abandon: u8,
    /// Records of a durable store that are damaged when its process starts again.
    pub damage: u8,
    /// Syncs of a durable store that fail.
    pub fail: u8,
}

/// What a member remembers when its process starts again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Store {
    /// Nothing: it is another member.
    Memory,
    /// What its journal says: every line that it has acknowledged, and by which config it lives.
    Durable,
}

/// A small rack. Nodes of threads come first: they have no copies.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// Threads, one a node, and what each does.
    pub threads: &'static [&'static [Op]],
    /// Members of the first config: nodes from the number of threads on.
    pub copies: u8,
    /// Nodes behind them, which may become members.
    pub spares: u8,
    /// Lines that the first members have from the beginning.
    pub written: u8,
    /// Packets that a line comes in: 1 or 2.
    pub segments: u8,
    /// Whether a switch counts.
    pub switch: bool,
    /// Whether it chooses stamps as well.
    pub at_once: bool,
    /// Whether that switch holds lines.
    pub held: bool,
    /// Lines whose stamps it knows at a time.
    pub entries: u8,
    /// Whether epochs fence the group: each thread is the home of an epoch, one after the other.
    pub homes: bool,
    /// Whether questions go to a quorum first.
    pub quorum_first: bool,
    /// What members keep.
    pub store: Store,
    /// Steps of the group, one after the other, each at any time at which it can be taken.
    pub changes: &'static [Change],
    /// Then, once the region is removed, another one gets its number and its members.
    pub again: bool,
    /// Nodes that are gone from the beginning.
    pub dead: &'static [NodeId],
    /// Which nodes may end.
    pub mortal: &'static [NodeId],
    /// What may go wrong.
    pub budget: Budget,
    /// What must be seen somewhere, or the scenario shows nothing.
    pub sometimes: &'static [Witness],
    /// States that it has: a change of the protocol or of the world shows here.
    pub states: usize,
}
