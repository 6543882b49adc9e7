//! The racks that are explored.

use super::scenario::Op::{Free, Make, Read, Write, WriteIf};
use super::scenario::Which::{First, Second};
use super::scenario::{Budget, Scenario};

const CALM: Budget = Budget {
    lose: 0,
    double: 0,
    early: 0,
};

const DOUBLED: Budget = Budget { double: 1, ..CALM };
const EARLY: Budget = Budget { early: 1, ..CALM };
const LOSSY: Budget = Budget { lose: 1, ..CALM };

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "object-beside-a-writer",
        about: "a reader elsewhere, and a writer of the home's process",
        own: &[&[Write(First)]],
        others: &[&[Read(First)]],
        budget: LOSSY,
        by_granules: false,
        states: 267,
    },
    Scenario {
        name: "object-two-attempts",
        about: "a reader elsewhere that asks early, and two writes",
        own: &[&[Write(First)]],
        others: &[&[Read(First)], &[Write(First)]],
        budget: EARLY,
        by_granules: false,
        states: 25_505,
    },
    Scenario {
        name: "object-direct",
        about: "two threads of the home's process and a writer elsewhere",
        own: &[&[Read(First), Read(First)], &[Write(First)]],
        others: &[&[Write(First)]],
        budget: CALM,
        by_granules: false,
        states: 3_300,
    },
    Scenario {
        name: "object-doubled",
        about: "two writers elsewhere, one writes twice, a packet comes twice",
        own: &[],
        others: &[&[Write(First), Write(First)], &[Write(First)]],
        budget: DOUBLED,
        by_granules: false,
        states: 488,
    },
    Scenario {
        name: "object-lossy",
        about: "a writer and a reader elsewhere, a packet is lost",
        own: &[],
        others: &[&[Write(First), Read(First)], &[Read(First)]],
        budget: LOSSY,
        by_granules: false,
        states: 774,
    },
    Scenario {
        name: "object-conditional",
        about: "two writes that follow the same version, and a third one",
        own: &[&[WriteIf(First)]],
        others: &[&[WriteIf(First)], &[Write(First)]],
        budget: CALM,
        by_granules: false,
        states: 1_352,
    },
    Scenario {
        name: "object-reused",
        about: "an object is freed and another one takes its place, under a reader and a writer",
        own: &[&[Free(First), Make, Write(Second)]],
        others: &[&[Read(First)], &[Write(First)]],
        budget: CALM,
        by_granules: false,
        states: 578,
    },
    Scenario {
        name: "object-freed-elsewhere",
        about: "two threads free one object, a third one reads it where it lies",
        own: &[&[Read(First), Make, Read(Second)]],
        others: &[&[Free(First)], &[Free(First)]],
        budget: DOUBLED,
        by_granules: false,
        states: 1_224,
    },
    Scenario {
        name: "object-kept-from-writers",
        about: "a reader that gives up reading beside writers and has them kept out",
        own: &[&[Write(First), Write(First)]],
        others: &[&[Read(First), Read(First)]],
        budget: CALM,
        by_granules: false,
        states: 839,
    },
    Scenario {
        name: "object-by-granules",
        about: "a reader that asks for one granule a packet, beside a writer of the home's process",
        own: &[&[Write(First)]],
        others: &[&[Write(First), Read(First)]],
        budget: LOSSY,
        by_granules: true,
        states: 4_972,
    },
];
