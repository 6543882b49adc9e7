//! Threads at nodes, and what may happen beside their steps.

use rackmem_proto::pages::Habit;

/// Values that a thread has loaded, in order.
pub type Seen = [u8; LOADS];

/// Loads of a thread, at most.
pub const LOADS: usize = 4;
/// Nodes of a rack.
pub const NODES: usize = 3;
/// Blocks, each a page.
pub const BLOCKS: usize = 2;
/// Words of a block.
pub const WORDS: usize = 2;

/// A word: of which block, and which of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Var(pub u8, pub u8);

/// What a thread does, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// A plain load.
    Load(Var),
    /// A plain store.
    Store(Var, u8),
    /// An atomic addition of 1.
    Add(Var),
    /// Nothing goes on before all stores have left the buffer.
    Fence,
    /// A call that sees all words of a block at one moment.
    Call(u8),
    /// The block makes room for another one.
    Evict(u8),
    /// Pages stay for system calls that store.
    Pin(u8),
    /// One of them: it has no fault.
    System(Var, u8),
    /// They may go.
    Unpin(u8),
}

/// What may happen beside the steps of threads, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Events {
    /// The system or the program takes a page out of a mapping.
    pub drops: u8,
    /// Node 1 cannot show any more that it is alive.
    pub closes: u8,
}

/// A small rack.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// The nodes of threads, and what they do.
    pub threads: &'static [(u8, &'static [Op])],
    /// What may happen.
    pub events: Events,
    /// How programs use pages, to begin with. Without one their loads never ask for stores.
    pub habit: Option<Habit>,
    /// What threads never see, all of them at the end.
    pub never: fn(&[Seen]) -> bool,
    /// What they see in some runs.
    pub weak: fn(&[Seen]) -> bool,
    /// What must be come across.
    pub shows: &'static [Sight],
}

/// What is come across.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Sight {
    Rested,
    LoadedBeforeTheShootdown,
    StoredBeforeTheShootdown,
    DrainedByTheShootdown,
    UpgradeOvertaken,
    ShownByAnother,
    PlacedAgain,
    CallWaited,
    SentHome,
    ClosedWhileShown,
    FoundPinned,
    PinEnded,
    AskedForStores,
    LookedAt,
    Weak,
}
