//! The racks of transactions that are explored.

use super::scenario::Op::{Both, Read, Write};
use super::scenario::{Budget, KEPT, Scenario};

const CALM: Budget = Budget {
    lose: 0,
    double: 0,
    early: 0,
    leave: 0,
    die: 0,
};
const LOSSY: Budget = Budget { lose: 1, ..CALM };
const DOUBLED: Budget = Budget { double: 1, ..CALM };
const DEADLY: Budget = Budget { die: 1, ..CALM };

const PLAIN: Scenario = Scenario {
    name: "",
    about: "",
    nodes: 3,
    objects: &[0, 1],
    threads: &[],
    mortal: &[],
    budget: CALM,
    room: 8,
    states: 0,
};

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "object-transfer",
        about: "two coordinators change the objects of two homes",
        threads: &[
            (2, &[Both(&[0, 1], &[0, 1])]),
            (3, &[Both(&[0, 1], &[0, 1])]),
        ],
        nodes: 4,
        budget: LOSSY,
        states: 2_337,
        ..PLAIN
    },
    Scenario {
        name: "object-write-skew",
        about: "each of two coordinators reads what the other one writes",
        threads: &[(0, &[Both(&[0], &[1])]), (1, &[Both(&[1], &[0])])],
        nodes: 2,
        budget: DOUBLED,
        states: 5_731,
        ..PLAIN
    },
    Scenario {
        name: "object-audit",
        about: "a transaction changes the objects of two homes, another one reads both",
        threads: &[(2, &[Both(&[0, 1], &[0, 1])]), (0, &[Both(&[0, 1], &[])])],
        budget: Budget { early: 1, ..CALM },
        states: 9_463,
        ..PLAIN
    },
    Scenario {
        name: "object-snapshot",
        about: "a transaction beside a thread that reads both objects, one after the other",
        threads: &[(2, &[Both(&[0, 1], &[0, 1])]), (0, &[Read(0), Read(1)])],
        budget: LOSSY,
        states: 378,
        ..PLAIN
    },
    Scenario {
        name: "object-of-one-home",
        about: "two transactions over two objects of one home, and a write of one of them",
        objects: &[0, 0],
        nodes: 3,
        threads: &[
            (1, &[Both(&[0, 1], &[0, 1])]),
            (2, &[Both(&[1], &[0, 1])]),
            (2, &[Write(1)]),
        ],
        states: 5_525,
        ..PLAIN
    },
    Scenario {
        name: "object-late-lock",
        about: "a thread waits no longer and begins anew, packets come twice and late",
        threads: &[(2, &[Both(&[0], &[0, 1]), Both(&[1], &[1])])],
        budget: Budget {
            double: 1,
            early: 1,
            leave: 1,
            ..CALM
        },
        states: 5_137,
        ..PLAIN
    },
    Scenario {
        name: "object-two-releases",
        about: "a transaction that meets another one is released, and its packets come twice",
        threads: &[(2, &[Both(&[0, 1], &[0, 1])]), (0, &[Write(1), Write(0)])],
        budget: DOUBLED,
        states: 11_943,
        ..PLAIN
    },
    Scenario {
        name: "object-in-segments",
        about: "what is written comes in segments, one of which is lost",
        threads: &[(2, &[Both(&[0], &[0, 1])]), (1, &[Both(&[1], &[1])])],
        budget: LOSSY,
        room: 2,
        states: 4_753,
        ..PLAIN
    },
    Scenario {
        name: "object-coordinator-dies",
        about: "a coordinator dies at any time, another one changes what it had locked",
        threads: &[(2, &[Both(&[0, 1], &[0, 1])]), (0, &[Both(&[0, 1], &[1])])],
        mortal: &[2],
        budget: DEADLY,
        states: 10_009,
        ..PLAIN
    },
    Scenario {
        name: "object-coordinator-is-a-home",
        about: "a coordinator dies that is the home of one of the objects",
        threads: &[(0, &[Both(&[0, 1], &[0, 1])]), (2, &[Both(&[0, 1], &[])])],
        mortal: &[0],
        budget: DEADLY,
        states: 2_199,
        ..PLAIN
    },
    Scenario {
        name: "object-home-dies",
        about: "a home dies under transactions, and under a reader and a writer of one object",
        threads: &[
            (2, &[Both(&[0, 1], &[0, 1]), Both(&[1], &[1])]),
            (1, &[Write(0), Read(0)]),
        ],
        mortal: &[0],
        budget: DEADLY,
        states: 16_187,
        ..PLAIN
    },
    Scenario {
        name: "object-late-commit",
        about: "a coordinator dies, and its packets come twice and late",
        threads: &[(2, &[Both(&[0], &[0, 1])]), (0, &[Write(1)])],
        mortal: &[2],
        budget: Budget {
            double: 1,
            lose: 1,
            ..DEADLY
        },
        states: 16_574,
        ..PLAIN
    },
    Scenario {
        name: "object-skew-beside-copies",
        about: "two coordinators, each reads what the other writes; one of the objects has copies",
        objects: &[1, KEPT],
        nodes: 4,
        threads: &[(2, &[Both(&[0], &[1])]), (3, &[Both(&[1], &[0])])],
        budget: DOUBLED,
        states: 1_913,
        ..PLAIN
    },
    Scenario {
        name: "object-together-beside",
        about: "a transaction writes objects with copies and has read another; one reads all",
        objects: &[1, KEPT, KEPT],
        threads: &[
            (2, &[Both(&[0], &[1, 2])]),
            (1, &[Write(0), Both(&[0, 1, 2], &[])]),
        ],
        budget: LOSSY,
        states: 53_270,
        ..PLAIN
    },
    Scenario {
        name: "object-together-coordinator-dies",
        about: "a coordinator of objects with copies dies that has locked what it has read",
        objects: &[1, KEPT],
        nodes: 4,
        threads: &[(2, &[Both(&[0, 1], &[1])]), (3, &[Both(&[0, 1], &[0])])],
        mortal: &[2],
        budget: DEADLY,
        states: 6_046,
        ..PLAIN
    },
    Scenario {
        name: "object-together-home-dies",
        about: "a home dies of which a transaction has read that writes an object with copies",
        objects: &[1, KEPT],
        threads: &[(2, &[Both(&[0], &[1]), Both(&[1], &[1])]), (0, &[Read(1)])],
        mortal: &[1],
        budget: DEADLY,
        states: 753,
        ..PLAIN
    },
    Scenario {
        name: "object-together-leaves",
        about: "a thread waits no longer for a keeper and begins anew, packets come twice and late",
        objects: &[1, KEPT],
        threads: &[(2, &[Both(&[0], &[1]), Write(1)])],
        budget: Budget {
            double: 1,
            early: 1,
            leave: 1,
            ..CALM
        },
        states: 582,
        ..PLAIN
    },
    Scenario {
        name: "object-mixed-transfer",
        about: "two coordinators change an object of a home and one with copies",
        objects: &[1, KEPT],
        nodes: 4,
        threads: &[
            (2, &[Both(&[0, 1], &[0, 1])]),
            (3, &[Both(&[0, 1], &[0, 1])]),
        ],
        budget: LOSSY,
        states: 875,
        ..PLAIN
    },
    Scenario {
        name: "object-mixed-audit",
        about: "a transaction changes an object of a home and one with copies, another reads both",
        objects: &[1, KEPT],
        threads: &[
            (2, &[Both(&[0, 1], &[0, 1])]),
            (1, &[Both(&[0, 1], &[]), Read(0)]),
        ],
        budget: DOUBLED,
        states: 3_792,
        ..PLAIN
    },
    Scenario {
        name: "object-mixed-coordinator-dies",
        about: "a coordinator dies that writes an object of a home and one with copies",
        objects: &[1, KEPT],
        nodes: 4,
        threads: &[(2, &[Both(&[0, 1], &[0, 1])]), (3, &[Both(&[0, 1], &[0])])],
        mortal: &[2],
        budget: DEADLY,
        states: 7_289,
        ..PLAIN
    },
    Scenario {
        name: "object-mixed-homes",
        about: "a coordinator dies that writes objects of two homes and one with copies",
        objects: &[1, 2, KEPT],
        nodes: 4,
        threads: &[(3, &[Both(&[0], &[0, 1, 2])]), (0, &[Both(&[1, 2], &[])])],
        mortal: &[3],
        budget: DEADLY,
        states: 30_127,
        ..PLAIN
    },
    Scenario {
        name: "object-mixed-coordinator-is-a-home",
        about: "a coordinator dies that is the home of one of the objects; one has copies",
        objects: &[1, 2, KEPT],
        threads: &[(1, &[Both(&[0], &[0, 1, 2])]), (2, &[Both(&[1, 2], &[])])],
        mortal: &[1],
        budget: DEADLY,
        states: 6_978,
        ..PLAIN
    },
    Scenario {
        name: "object-mixed-keeper-dies",
        about: "who serves objects with copies dies under a transaction that writes others, too",
        objects: &[1, KEPT],
        threads: &[(2, &[Both(&[0, 1], &[0, 1])]), (1, &[Both(&[0, 1], &[])])],
        mortal: &[0],
        budget: Budget {
            double: 1,
            ..DEADLY
        },
        states: 31_322,
        ..PLAIN
    },
    Scenario {
        name: "object-mixed-keeper-coordinates",
        about: "the coordinator that dies serves the objects with copies",
        objects: &[1, KEPT],
        threads: &[
            (0, &[Both(&[0, 1], &[0, 1])]),
            (2, &[Both(&[0, 1], &[0, 1])]),
        ],
        mortal: &[0],
        budget: Budget { lose: 1, ..DEADLY },
        states: 8_785,
        ..PLAIN
    },
    Scenario {
        name: "object-mixed-home-dies",
        about: "a home dies under a transaction that writes an object there and one with copies",
        objects: &[1, 2, KEPT],
        threads: &[
            (2, &[Both(&[0, 2], &[0, 1, 2])]),
            (0, &[Both(&[1, 2], &[])]),
        ],
        mortal: &[1],
        budget: DEADLY,
        states: 8_481,
        ..PLAIN
    },
    Scenario {
        name: "object-mixed-leaves",
        about: "a thread waits no longer for a keeper, and begins anew with what has copies",
        objects: &[1, KEPT],
        nodes: 4,
        threads: &[(2, &[Both(&[0], &[0, 1]), Write(1)]), (3, &[Read(0)])],
        mortal: &[2],
        budget: Budget {
            early: 1,
            leave: 1,
            ..DEADLY
        },
        states: 6_332,
        ..PLAIN
    },
];
