//! A region of objects with copies, requesters, and what may go wrong.

/// What a thread does, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Reads the first object.
    Read,
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
}

impl Op {
    /// Whether it writes an object that is there.
    pub fn writes(self) -> bool {
        matches!(self, Op::Write | Op::WriteOther | Op::WriteIf)
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
    /// Places for objects. The first ones have those that there are from the beginning.
    pub places: u32,
    /// What threads do.
    pub threads: &'static [&'static [Op]],
    /// What may go wrong.
    pub budget: Budget,
    /// States that there are.
    pub states: usize,
}

impl Scenario {
    /// Objects that there are from the beginning.
    pub fn objects(&self) -> u32 {
        let mut ops = self.threads.iter().copied().flatten();
        1 + u32::from(ops.any(|op| matches!(op, Op::WriteOther | Op::Audit)))
    }
}
