//! A writer's domain, domains of readers, and what may happen.

use rackmem_proto::bi::Bound;

/// What a reader does, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Follows the word to its object, in a section of its own.
    Read,
    /// The same, past the cache.
    ReadLazily,
    /// Has the word's line dropped by a quiescence on demand, and reads.
    Demand,
    /// Under the writers' lock, stores a word of its own beside the other one, in the same line.
    SetBeside,
}

/// What may happen beside the steps of threads, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Events {
    /// Lines leave caches by themselves, or come into them.
    pub caches: u8,
    /// Clocks of domains differ by up to a tick.
    pub skew: bool,
    /// Domain 1 dies.
    pub deaths: u8,
    /// The rack excludes domain 1: when it is dead, or, with 2, from the beginning.
    pub exclusions: u8,
    /// The last domain joins late.
    pub joins: u8,
    /// Domain 1 leaves.
    pub leaves: u8,
}

/// A small rack.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// Objects that the writer of domain 0 puts in place, one after the other.
    pub changes: u8,
    /// They are the program's to drop from caches.
    pub own: bool,
    /// Lines for objects.
    pub lines: u8,
    /// Entries of a ring.
    pub room: u64,
    /// Ticks by which a domain that lives may be behind.
    pub lag: u64,
    /// What is promised.
    pub bound: Bound,
    /// What threads of domains 1, 2, … do.
    pub readers: &'static [&'static [&'static [Op]]],
    /// What may happen.
    pub events: Events,
    /// What must be come across.
    pub shows: &'static [Sight],
}

/// What is come across.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Sight {
    Hit,
    StaleRead,
    Reused,
    YoungDropped,
    OwnDropped,
    SectionTooLong,
    WaitedToEnter,
    WaitedForMemory,
    WaitedForRoom,
    PendingSeen,
    EverythingDropped,
    Excluded,
    WriterDied,
}
