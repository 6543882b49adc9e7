//! The racks that are explored.

use rackmem_proto::bi::Bound;

/// What a thread does, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Reads an item, in a section of its own.
    Read(u32),
    /// Writes an item.
    Write(u32),
}

/// What must be come across.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Sight {
    Hit,
    Stale,
    LateCopy,
    Everything,
    Refreshed,
    InParts,
    SectionTooLong,
    Waited,
}

/// A small rack.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// Threads of the member.
    pub members: &'static [&'static [Op]],
    /// What the other node's thread does.
    pub other: &'static [Op],
    /// Ticks.
    pub ticks: u8,
    /// Packets that are lost, and that come twice.
    pub faults: [u8; 2],
    /// Writes that a home remembers.
    pub remembered: usize,
    /// Items that news name, and bytes of them that are items and values.
    pub told: (usize, usize),
    /// What is promised.
    pub bound: Bound,
    /// What must be come across.
    pub shows: &'static [Sight],
    /// How many states there are.
    pub states: usize,
}

use Op::{Read, Write};

const BASE: Scenario = Scenario {
    name: "",
    about: "",
    members: &[&[Read(0), Read(0)]],
    other: &[Write(0)],
    ticks: 3,
    faults: [0, 0],
    remembered: 4,
    told: (usize::MAX, 0),
    bound: Bound { lag: 0, section: 1 },
    shows: &[],
    states: 0,
};

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "bi-cached",
        about: "a member reads twice, and another node writes",
        shows: &[
            Sight::Hit,
            Sight::Stale,
            Sight::SectionTooLong,
            Sight::Waited,
        ],
        states: 30_800,
        ..BASE
    },
    Scenario {
        name: "bi-cached-two",
        about: "two threads of a member: copies that come late, and news between",
        members: &[&[Read(0), Read(0)], &[Read(0)]],
        bound: Bound { lag: 0, section: 2 },
        ticks: 2,
        shows: &[Sight::Hit, Sight::LateCopy],
        states: 131_049,
        ..BASE
    },
    Scenario {
        name: "bi-cached-lost",
        about: "two writers, and packets that are lost and come twice",
        members: &[&[Write(0), Read(0)]],
        ticks: 1,
        faults: [1, 1],
        shows: &[Sight::Hit],
        states: 31_200,
        ..BASE
    },
    Scenario {
        name: "bi-cached-forgotten",
        about: "a home that remembers one write, and a member that misses two",
        members: &[&[Read(0), Read(0)]],
        other: &[Write(0), Write(1)],
        remembered: 1,
        shows: &[Sight::Everything, Sight::Stale],
        states: 183_290,
        ..BASE
    },
    Scenario {
        name: "bi-cached-own",
        about: "a member reads what it has written",
        members: &[&[Read(0), Write(0), Read(0)], &[Read(0)]],
        other: &[],
        ticks: 1,
        shows: &[Sight::Hit, Sight::LateCopy],
        states: 2_318,
        ..BASE
    },
    Scenario {
        name: "bi-cached-refreshed",
        about: "news with values, on their way while the member writes the same item",
        members: &[&[Write(0), Read(0)]],
        ticks: 2,
        told: (usize::MAX, 1024),
        shows: &[Sight::Hit, Sight::Refreshed],
        states: 9_173,
        ..BASE
    },
    Scenario {
        name: "bi-cached-parts",
        about: "news that name one item each, and two are written",
        other: &[Write(0), Write(1)],
        members: &[&[Read(1), Read(1)]],
        ticks: 2,
        told: (1, 1024),
        shows: &[Sight::Hit, Sight::Refreshed, Sight::InParts],
        states: 36_581,
        ..BASE
    },
];
