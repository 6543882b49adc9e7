//! The racks that are explored.

use super::scenario::Op::{Audit, Free, Make, Read, Write, WriteIf, WriteOther};
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
        states: 698,
    },
    Scenario {
        name: "object-keeper-dies",
        about: "the node that serves an object with copies dies beside a writer and a reader",
        places: 1,
        threads: &[&[Write], &[Read, Read]],
        budget: DEADLY,
        states: 4_297,
    },
    Scenario {
        name: "object-keeper-dies-writers",
        about: "it dies beside two writers, one of which overwrites the other",
        places: 1,
        threads: &[&[Write], &[Write]],
        budget: DEADLY,
        states: 4_225,
    },
    Scenario {
        name: "object-keeper-dies-conditional",
        about: "it dies beside two writes that follow the same version, a packet comes twice",
        places: 1,
        threads: &[&[WriteIf], &[WriteIf]],
        budget: DOUBLED,
        states: 11_562,
    },
    Scenario {
        name: "object-keeper-dies-places",
        about: "it dies while two make objects and one is freed",
        places: 3,
        threads: &[&[Make, Free], &[Make]],
        budget: DEADLY,
        states: 2_784,
    },
    Scenario {
        name: "object-two-keepers-die",
        about: "two nodes that serve it die one after the other, beside a writer and a reader",
        places: 1,
        threads: &[&[Write], &[Read]],
        budget: TWICE,
        states: 21_744,
    },
    Scenario {
        name: "object-keeper-dies-audit",
        about: "it dies beside a transaction that reads two objects, and a thread that writes both",
        places: 2,
        threads: &[&[Audit], &[Write, WriteOther]],
        budget: DEADLY,
        states: 40_656,
    },
];
