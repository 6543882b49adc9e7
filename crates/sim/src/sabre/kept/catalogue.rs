//! The racks that are explored.

use super::scenario::Op::{
    Audit, Free, Make, Read, Write, WriteBoth, WriteBothIf, WriteFirstIf, WriteIf, WriteOther,
    WriteSecondIf,
};
use super::scenario::{Budget, Scenario};

const CALM: Budget = Budget {
    lose: 0,
    double: 0,
    early: 0,
    die: 0,
};

const DEADLY: Budget = Budget { die: 1, ..CALM };
const DOUBLED: Budget = Budget {
    double: 1,
    ..DEADLY
};
const LOSSY: Budget = Budget { lose: 1, ..CALM };
const TWICE: Budget = Budget { die: 2, ..CALM };

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "object-with-copies",
        about: "two writers and a reader of an object with copies, a packet is lost",
        places: 1,
        threads: &[&[Write, Read], &[WriteIf]],
        budget: LOSSY,
        room: 1,
        states: 698,
    },
    Scenario {
        name: "object-keeper-dies",
        about: "the node that serves an object with copies dies beside a writer and a reader",
        places: 1,
        threads: &[&[Write], &[Read, Read]],
        budget: DEADLY,
        room: 1,
        states: 4_297,
    },
    Scenario {
        name: "object-keeper-dies-writers",
        about: "it dies beside two writers, one of which overwrites the other",
        places: 1,
        threads: &[&[Write], &[Write]],
        budget: DEADLY,
        room: 1,
        states: 4_225,
    },
    Scenario {
        name: "object-keeper-dies-conditional",
        about: "it dies beside two writes that follow the same version, a packet comes twice",
        places: 1,
        threads: &[&[WriteIf], &[WriteIf]],
        budget: DOUBLED,
        room: 1,
        states: 11_562,
    },
    Scenario {
        name: "object-keeper-dies-places",
        about: "it dies while two make objects and one is freed",
        places: 3,
        threads: &[&[Make, Free], &[Make]],
        budget: DEADLY,
        room: 1,
        states: 2_784,
    },
    Scenario {
        name: "object-two-keepers-die",
        about: "two nodes that serve it die one after the other, beside a writer and a reader",
        places: 1,
        threads: &[&[Write], &[Read]],
        budget: TWICE,
        room: 1,
        states: 21_744,
    },
    Scenario {
        name: "object-keeper-dies-audit",
        about: "it dies beside a transaction that reads two objects, and a thread that writes both",
        places: 2,
        threads: &[&[Audit], &[Write, WriteOther]],
        budget: DEADLY,
        room: 1,
        states: 40_656,
    },
    Scenario {
        name: "object-together",
        about: "a transaction writes two objects with copies, another one reads both",
        places: 2,
        threads: &[&[WriteBoth], &[Audit]],
        budget: LOSSY,
        room: 8,
        states: 920,
    },
    Scenario {
        name: "object-together-keeper-dies",
        about: "the keeper dies beside a transaction that writes two objects, and a reader",
        places: 2,
        threads: &[&[WriteBoth], &[Read, Read]],
        budget: DEADLY,
        room: 8,
        states: 2_020,
    },
    Scenario {
        name: "object-together-keeper-dies-audit",
        about: "it dies beside a transaction that writes two objects, and one that reads both",
        places: 2,
        threads: &[&[WriteBoth], &[Audit]],
        budget: DEADLY,
        room: 8,
        states: 9_001,
    },
    Scenario {
        name: "object-together-two-calls",
        about: "it dies beside two transactions over the same objects, a packet comes twice",
        places: 2,
        threads: &[&[WriteBoth], &[WriteBothIf]],
        budget: DOUBLED,
        room: 8,
        states: 5_180,
    },
    Scenario {
        name: "object-together-keeper-dies-call",
        about: "it dies beside a transaction and a write of one of its objects",
        places: 2,
        threads: &[&[WriteBoth], &[Write]],
        budget: DEADLY,
        room: 8,
        states: 1_542,
    },
    Scenario {
        name: "object-together-skew",
        about: "it dies beside two transactions, each of which has read what the other one writes",
        places: 2,
        threads: &[&[WriteFirstIf], &[WriteSecondIf]],
        budget: DEADLY,
        room: 8,
        states: 809,
    },
    Scenario {
        name: "object-together-two-keepers-die",
        about: "two keepers die one after the other, beside two transactions",
        places: 2,
        threads: &[&[WriteBoth], &[WriteBoth]],
        budget: TWICE,
        room: 8,
        states: 27_302,
    },
];
