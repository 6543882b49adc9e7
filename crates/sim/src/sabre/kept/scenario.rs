//! A region of objects with copies, requesters, and what may go wrong.

/// What a thread does, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Reads the first object.
    Read,
    /// Reads the second one.
    ReadOther,
    /// Writes it.
    Write,
    /// Writes it if it has the version that it began with.
    WriteIf,
    /// Frees it.
    Free,
    /// Makes another one.
    Make,
    /// Writes the second object.
    WriteOther,
    /// Reads both, one after the other, as a transaction does, and has it validated.
    Audit,
    /// Writes both as one step, a transaction.
    WriteBoth,
    /// The same, if both have the versions that they began with.
    WriteBothIf,
    /// Writes the second one as a transaction, if the first one has the version that it began with.
    WriteSecondIf,
    /// The same, the other way round.
    WriteFirstIf,
    /// Removes the first region, and waits until its keeper knows.
    Remove,
    /// The same, and whoever does it is gone before it asks.
    RemoveOnly,
    /// Makes another region under its number, in which objects are made from then on.
    Again,
}

/// What an operation does with an object: whether it writes it, and whether that must have the
/// version that it began with.
pub type Does = (bool, bool);

impl Op {
    /// Whether it writes an object that is there.
    pub fn writes(self) -> bool {
        matches!(self, Op::Write | Op::WriteOther | Op::WriteIf) || self.together().is_some()
    }

    /// What a transaction does with both objects, if it writes any.
    pub fn together(self) -> Option<[Does; 2]> {
        match self {
            Op::WriteBoth => Some([(true, false); 2]),
            Op::WriteBothIf => Some([(true, true); 2]),
            Op::WriteSecondIf => Some([(false, true), (true, false)]),
            Op::WriteFirstIf => Some([(true, false), (false, true)]),
            _ => None,
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
    /// Times that a node asks again while packets are under way.
    pub early: u8,
    /// Keepers that die, one after the other.
    pub die: u8,
}

/// A small rack. Nodes 0, 1 and so on keep the home one after the other; behind them each thread
/// has a node of its own.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// Regions, of a group each: objects are in one after the other.
    pub regions: u16,
    /// Places for objects of each. The first ones have those that there are from the beginning.
    pub places: u32,
    /// What threads do.
    pub threads: &'static [&'static [Op]],
    /// What may go wrong.
    pub budget: Budget,
    /// Granules of a packet's body.
    pub room: usize,
    /// States that there are.
    pub states: usize,
}

impl Scenario {
    /// Objects that there are from the beginning.
    pub fn objects(&self) -> u32 {
        let mut ops = self.threads.iter().copied().flatten();
        let second = |op: &Op| matches!(op, Op::ReadOther | Op::WriteOther | Op::Audit);
        let two = |op: &Op| second(op) || op.together().is_some();
        1 + u32::from(ops.any(two))
    }
}
