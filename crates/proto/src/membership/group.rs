//! A region with copies, as the rack's store has it: what it was asked to be, what its lines are,
//! and how its requests go.

use crate::abd::{Config, Durability, Layout, Member};
use crate::sabre::{SLAB, span_of};
use crate::switch::LINES;
use crate::wire::Contract;
use alloc::string::String;

/// Bytes of a region's name at most.
pub const MAX_GROUP_NAME: usize = 88;

/// Which writes to coherent memory survive the node that has made them, where a group keeps its
/// home.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Survives {
    /// Those that have come home since: a block that only one cache has changed dies with that
    /// cache's node, and goes on as it was at home.
    Rest,
    /// Each: a write returns when a majority has its block.
    Writes,
}

impl Survives {
    /// What configurations and people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Survives::Rest => "rest",
            Survives::Writes => "writes",
        }
    }

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        [Survives::Rest, Survives::Writes]
            .into_iter()
            .find(|survives| survives.name() == name)
    }
}

/// What the lines of a group are, where the rack's keeper serves them as a home.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeptAs {
    /// Blocks of coherent memory.
    Blocks(Survives),
    /// Objects, and behind them what requesters' calls have come to.
    Objects,
}

impl KeptAs {
    const OBJECTS: &'static str = "objects";

    /// What the store says.
    pub const fn name(self) -> &'static str {
        match self {
            KeptAs::Blocks(survives) => survives.name(),
            KeptAs::Objects => Self::OBJECTS,
        }
    }

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            Self::OBJECTS => Some(KeptAs::Objects),
            name => Survives::named(name).map(KeptAs::Blocks),
        }
    }

    /// The contract of its memory.
    pub const fn contract(self) -> Contract {
        match self {
            KeptAs::Blocks(_) => Contract::Coherent,
            KeptAs::Objects => Contract::Object,
        }
    }
}

/// A region with copies. Its number is its place in [`Groups::rows`](super::Groups::rows).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The region's name.
    pub name: String,
    /// What its elements are.
    pub element: u64,
    /// Its lines.
    pub layout: Layout,
    /// Copies that it is to have: while fewer count, it grows.
    pub copies: u8,
    /// Its writes take two rounds, whatever the switch knows.
    pub two_rounds: bool,
    /// A switch that can hold lines carries out both rounds of its operations.
    pub held: bool,
    /// What they survive.
    pub durability: Durability,
    /// Its lines are those of a home ([`HomeId::of_group`](crate::wire::HomeId::of_group)): what
    /// that has. None: they are lines and nothing else.
    pub home: Option<KeptAs>,
    /// Who keeps them.
    pub config: Config,
    /// Which life of which node has its pages for itself.
    pub mapped: Option<Member>,
    /// Where in its home its addresses begin: those below were of removed regions that had its
    /// number, and are never another object's or block's.
    pub base: u64,
}

/// What a region with copies is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Its lines.
    pub layout: Layout,
    /// How many keep a copy.
    pub copies: u8,
    /// Whether its writes take two rounds, whatever the switch knows: the fate of a write is then
    /// never unknown because of a change of members.
    pub two_rounds: bool,
    /// Whether a switch that can hold lines carries out both rounds of its operations.
    pub held: bool,
    /// What its copies survive.
    pub durability: Durability,
    /// Whether its lines are those of a home, and what that has.
    pub home: Option<KeptAs>,
}

/// Bytes of addresses that a region takes in the home that its group keeps, if it has one.
pub(super) fn addresses(home: Option<KeptAs>, Layout { line, bytes }: Layout) -> u64 {
    match home {
        Some(KeptAs::Objects) => span_of(bytes, line),
        Some(KeptAs::Blocks(_)) => bytes.next_multiple_of(SLAB),
        None => 0,
    }
}

impl Asked {
    /// So many copies of these lines, in memory, and else as usual.
    pub const fn new(layout: Layout, copies: u8) -> Self {
        Asked {
            layout,
            copies,
            two_rounds: false,
            held: false,
            durability: Durability::Memory,
            home: None,
        }
    }
}

impl Group {
    /// Where in its home it begins.
    pub fn base_of_home(&self) -> u64 {
        match self.home {
            Some(_) => self.base,
            None => 0,
        }
    }

    /// Where addresses begin that no object and no block has had under this number.
    pub fn unused(&self) -> u64 {
        self.base.saturating_add(addresses(self.home, self.layout))
    }

    /// How its requests are to go while the switch has this incarnation, if there is one: through
    /// it or not, which life of it chooses stamps, and whether that carries out both rounds.
    ///
    /// Where fewer than three members count, answers are few, and a round through the switch is as
    /// long as two past it. Where the switch has no room for all lines, most writes would come to
    /// it in vain before they take their two rounds.
    pub(super) fn way(&self, switch: Option<u32>) -> (bool, u32, bool) {
        let switch = switch.filter(|_| self.config.size >= 3);
        let fit = self.layout.bytes / u64::from(self.layout.line) <= LINES as u64;
        // What a durable member remembers of a write's fate does not outlive its restart.
        let memory = self.durability == Durability::Memory;
        // It looks up no line that it holds: any number of them has room.
        let chooser = switch.filter(|_| (fit || self.held) && memory && !self.two_rounds);
        let held = self.held && chooser.is_some();
        (switch.is_some(), chooser.unwrap_or(0), held)
    }

    /// How its requests go.
    pub(super) fn goes(&self) -> (bool, u32, bool) {
        let config = &self.config;
        (config.through_switch, config.chooser, config.holds_lines)
    }
}
