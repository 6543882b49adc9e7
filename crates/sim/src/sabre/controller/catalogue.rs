//! The chips that are explored.

use super::scenario::Scenario;
use rackmem_proto::sabre::controller::{Design, Mode};

/// A controller of one entry whose stream buffer has two slots.
const SMALL: Design = Design {
    entries: 1,
    depth: 2,
    ..Design::PAPER
};
const DEEP: Design = Design { depth: 3, ..SMALL };
const SHALLOW: Design = Design { depth: 1, ..SMALL };
const TWO: Design = Design {
    entries: 2,
    ..SMALL
};
const SERIAL: Design = Design {
    speculates: false,
    ..SMALL
};
const LOCKS: Design = Design {
    mode: Mode::ReaderLock,
    ..SMALL
};

const PLAIN: Scenario = Scenario {
    name: "",
    about: "",
    design: SMALL,
    blocks: 2,
    piece: 2,
    sources: &[1],
    at_once: true,
    writers: &[1],
    evictions: 1,
    states: 0,
};

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "sabre-controller-alone",
        about: "a SABRe without a writer, and its blocks are evicted",
        sources: &[2],
        writers: &[],
        evictions: 3,
        states: 220,
        ..PLAIN
    },
    Scenario {
        name: "sabre-controller-two-blocks",
        about: "two blocks beside two writes",
        writers: &[2],
        states: 1_362,
        ..PLAIN
    },
    Scenario {
        name: "sabre-controller-two-writers",
        about: "three blocks in a buffer of three, beside two writers",
        design: DEEP,
        blocks: 3,
        piece: 3,
        writers: &[1, 1],
        states: 13_289,
        ..PLAIN
    },
    Scenario {
        name: "sabre-controller-long",
        about: "three blocks in a buffer of two, asked for one by one",
        blocks: 3,
        piece: 3,
        at_once: false,
        states: 1_305,
        ..PLAIN
    },
    Scenario {
        name: "sabre-controller-pages",
        about: "three blocks in a buffer of three, the last one on another page",
        design: DEEP,
        blocks: 3,
        states: 985,
        ..PLAIN
    },
    Scenario {
        name: "sabre-controller-crowded",
        about: "two sources and one entry",
        sources: &[1, 1],
        at_once: false,
        states: 2_775,
        ..PLAIN
    },
    Scenario {
        name: "sabre-controller-beside",
        about: "two SABRes of one object at once",
        design: TWO,
        sources: &[1, 1],
        states: 24_851,
        ..PLAIN
    },
    Scenario {
        name: "sabre-controller-serial",
        about: "blocks are loaded when the version is known, two SABRes",
        design: SERIAL,
        sources: &[2],
        states: 636,
        ..PLAIN
    },
    Scenario {
        name: "sabre-controller-shallow",
        about: "a buffer of one slot, which has the version",
        design: SHALLOW,
        writers: &[2],
        states: 728,
        ..PLAIN
    },
    Scenario {
        name: "sabre-controller-locks",
        about: "readers lock: two SABRes at once beside two writes",
        design: Design {
            entries: 2,
            ..LOCKS
        },
        sources: &[1, 1],
        writers: &[2],
        states: 59_083,
        ..PLAIN
    },
    Scenario {
        name: "sabre-controller-locks-serial",
        about: "readers lock before they load, two writers",
        design: Design {
            speculates: false,
            ..LOCKS
        },
        sources: &[2],
        writers: &[1, 1],
        states: 1_474,
        ..PLAIN
    },
];
