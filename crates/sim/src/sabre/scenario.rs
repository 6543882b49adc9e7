//! A home with one object, its threads, and what may go wrong.

/// Which object is meant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Which {
    /// The first one.
    First,
    /// The one that takes its place.
    Second,
}

/// What a thread does, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Reads it.
    Read(Which),
    /// Writes it.
    Write(Which),
    /// Writes it if it has the version that it began with.
    WriteIf(Which),
    /// Frees it.
    Free(Which),
    /// Makes the second one. A thread of the home does.
    Make,
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
}

/// A small rack. Thread 0 and, with `own`, thread 1 run in the home's process; each of the others
/// has a node of its own.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// What threads of the home's process do.
    pub own: &'static [&'static [Op]],
    /// What others do.
    pub others: &'static [&'static [Op]],
    /// What may go wrong.
    pub budget: Budget,
    /// The home lets reads be asked for by granules.
    pub by_granules: bool,
    /// States that there are.
    pub states: usize,
}
