//! The racks that are explored.

use super::Witness::{
    Cached, Cohort, CutPlacing, Denied, Dropped, Elsewhere, FencedInside, FreedTwice, GaveCopyUp,
    HandedOver, Lost, MadeAnew, Over, OverReaders, Overtaken, OwnerDied, ReadTogether, Refused,
    Rested, Revived, Skipped, ToReaders, ToReadersAndWriter, ToldAgain, Unasked,
};
use super::scenario::Op::{self, Attach as A, Free as F, Home as H, Make as M};
use super::scenario::{Budget, Failure, Place, Scenario};
use rackmem_proto::gcp::Access::{Read, Write};

const R: Op = Op::Use(Read);
const W: Op = Op::Use(Write);

const BASE: Scenario = Scenario {
    name: "",
    about: "",
    nodes: 3,
    threads: &[],
    place: Place::Home,
    segments: 1,
    cohort: 1,
    budget: Budget {
        lose: 0,
        double: 0,
        late: 0,
        early: 0,
        dismiss: 0,
        give_up: 0,
        rest: 0,
    },
    failures: &[],
    sometimes: &[],
    states: 0,
};

const fn faults(lose: u8, double: u8, late: u8, early: u8) -> Budget {
    Budget {
        lose,
        double,
        late,
        early,
        dismiss: 0,
        give_up: 0,
        rest: 0,
    }
}

const fn giving_up(give_up: u8, budget: Budget) -> Budget {
    Budget { give_up, ..budget }
}

const fn resting(rest: u8, budget: Budget) -> Budget {
    Budget { rest, ..budget }
}

const fn dismissing(budget: Budget) -> Budget {
    Budget {
        dismiss: 1,
        ..budget
    }
}

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "calm-writers",
        about: "three writers, nothing goes wrong: in turn, and one transaction each",
        threads: &[(0, &[W, W]), (1, &[W, W]), (2, &[W])],
        sometimes: &[HandedOver, Cached, Denied],
        states: 11_636,
        ..BASE
    },
    Scenario {
        name: "calm-hand-over",
        about: "two writers that take turns",
        nodes: 2,
        threads: &[(0, &[W, W]), (1, &[W, W])],
        sometimes: &[HandedOver, Cached],
        states: 285,
        ..BASE
    },
    Scenario {
        name: "calm-mixed",
        about: "readers and writers, nothing goes wrong: cases (i), (ii) and (iii)",
        nodes: 4,
        threads: &[(0, &[W]), (1, &[R]), (2, &[W]), (3, &[R])],
        sometimes: &[ToReaders, ToReadersAndWriter, OverReaders, ReadTogether],
        states: 88_870,
        ..BASE
    },
    Scenario {
        name: "calm-upgrades",
        about: "two sharers that both want to write",
        threads: &[(1, &[R, W]), (2, &[R, W])],
        sometimes: &[OverReaders, HandedOver],
        states: 2_253,
        ..BASE
    },
    Scenario {
        name: "calm-cohort",
        about: "threads of a node hand over a bounded number of times",
        nodes: 2,
        threads: &[(0, &[W, W]), (0, &[W, R]), (1, &[W])],
        sometimes: &[Cohort, HandedOver],
        states: 797,
        ..BASE
    },
    Scenario {
        name: "switch-mixed",
        about: "readers and writers, the switch serves",
        place: Place::Switch,
        threads: &[(0, &[W]), (1, &[R, W]), (2, &[W, R])],
        sometimes: &[ToReaders, ToReadersAndWriter, OverReaders],
        states: 29_400,
        ..BASE
    },
    Scenario {
        name: "faulty-writers",
        about: "writers while a packet is lost, one doubled and one late",
        nodes: 2,
        threads: &[(0, &[W, W]), (1, &[W])],
        budget: faults(1, 1, 1, 0),
        sometimes: &[HandedOver, Unasked],
        states: 71_002,
        ..BASE
    },
    Scenario {
        name: "faulty-handover",
        about: "the lock goes round while packets are lost and doubled",
        threads: &[(1, &[W]), (2, &[W])],
        budget: faults(1, 1, 0, 0),
        sometimes: &[HandedOver, Denied],
        states: 53_296,
        ..BASE
    },
    Scenario {
        name: "faulty-readers",
        about: "a writer comes over readers while packets are lost, doubled and late",
        threads: &[(1, &[R]), (2, &[R]), (0, &[W])],
        budget: faults(1, 0, 0, 0),
        sometimes: &[ToReaders, OverReaders, ReadTogether],
        states: 15_650,
        ..BASE
    },
    Scenario {
        name: "faulty-upgrades",
        about: "sharers that both want to write, and a packet is lost",
        threads: &[(1, &[R, W]), (2, &[W, R])],
        budget: faults(1, 0, 0, 0),
        sometimes: &[OverReaders, ToReadersAndWriter],
        states: 23_987,
        ..BASE
    },
    Scenario {
        name: "faulty-segments",
        about: "data in two packets is never put together from two grants",
        nodes: 2,
        segments: 2,
        threads: &[(0, &[W]), (1, &[W])],
        budget: faults(1, 1, 1, 0),
        sometimes: &[HandedOver],
        states: 66_122,
        ..BASE
    },
    Scenario {
        name: "faulty-switch",
        about: "the switch serves, asked too early, packets lost and doubled",
        place: Place::Switch,
        nodes: 2,
        threads: &[(1, &[W]), (0, &[W])],
        budget: faults(1, 1, 0, 1),
        sometimes: &[HandedOver],
        states: 80_684,
        ..BASE
    },
    Scenario {
        name: "dead-holder",
        about: "a node dies anywhere: holding, waiting, handing over",
        threads: &[(1, &[W, W]), (2, &[W, R]), (0, &[W])],
        failures: &[Failure::Node(1)],
        sometimes: &[OwnerDied, HandedOver],
        states: 140_341,
        ..BASE
    },
    Scenario {
        name: "dead-holder-loss",
        about: "a node dies while packets are lost and doubled",
        threads: &[(1, &[W]), (2, &[R])],
        failures: &[Failure::Node(1)],
        budget: faults(1, 0, 0, 0),
        sometimes: &[OwnerDied],
        states: 18_376,
        ..BASE
    },
    Scenario {
        name: "dead-reader",
        about: "a reader dies, and the writer that waits for it goes on",
        threads: &[(1, &[R, R]), (2, &[W])],
        failures: &[Failure::Node(1)],
        budget: faults(1, 0, 0, 0),
        sometimes: &[OverReaders],
        states: 30_308,
        ..BASE
    },
    Scenario {
        name: "fenced-holder",
        about: "a node that is taken for dead goes on writing, and nobody sees it",
        threads: &[(1, &[W, W]), (2, &[W]), (0, &[W])],
        failures: &[Failure::Fenced(1)],
        sometimes: &[FencedInside, OwnerDied],
        states: 113_698,
        ..BASE
    },
    Scenario {
        name: "dead-switch",
        about: "the switch dies: the nodes know everything",
        place: Place::Switch,
        threads: &[(1, &[W]), (2, &[R, W])],
        failures: &[Failure::Switch(None)],
        budget: faults(1, 0, 0, 0),
        sometimes: &[HandedOver],
        states: 85_071,
        ..BASE
    },
    Scenario {
        name: "dead-switch-and-holder",
        about: "the switch and a node die together",
        place: Place::Switch,
        threads: &[(1, &[W, W]), (2, &[W]), (0, &[R])],
        failures: &[Failure::Switch(Some(1))],
        sometimes: &[Lost],
        states: 38_810,
        ..BASE
    },
    Scenario {
        name: "close-epochs",
        about: "two epochs begin one right after the other, and nobody dies",
        threads: &[(1, &[W]), (2, &[W]), (0, &[W])],
        failures: &[Failure::Nothing, Failure::Nothing],
        sometimes: &[HandedOver, Overtaken, Skipped],
        states: 119_418,
        ..BASE
    },
    Scenario {
        name: "close-readers",
        about: "the same, with readers and a writer that comes over them",
        threads: &[(1, &[R]), (2, &[W, R])],
        failures: &[Failure::Nothing, Failure::Nothing],
        sometimes: &[OverReaders, ToReaders, Overtaken, Skipped],
        states: 30_124,
        ..BASE
    },
    Scenario {
        name: "close-release",
        about: "a node was releasing when an epoch ended, and the next holder dies in the epoch after that",
        threads: &[(1, &[W, W]), (2, &[W])],
        failures: &[Failure::Nothing, Failure::Node(2)],
        sometimes: &[HandedOver, OwnerDied, Overtaken, Skipped],
        states: 23_270,
        ..BASE
    },
    Scenario {
        name: "close-deaths",
        about: "two nodes die, one right after the other",
        threads: &[(1, &[W]), (2, &[W]), (0, &[W])],
        failures: &[Failure::Node(1), Failure::Node(2)],
        sometimes: &[OwnerDied, Overtaken, Skipped],
        states: 47_612,
        ..BASE
    },
    Scenario {
        name: "close-told",
        about: "a death is told through the next epoch, with a reader in between",
        threads: &[(1, &[W]), (2, &[R]), (0, &[W])],
        failures: &[Failure::Node(1), Failure::Nothing],
        sometimes: &[OwnerDied, ToldAgain, Overtaken],
        states: 87_919,
        ..BASE
    },
    Scenario {
        name: "close-switch",
        about: "the switch serves, and lives on through two epochs",
        place: Place::Switch,
        threads: &[(1, &[W]), (2, &[W])],
        failures: &[Failure::Node(1), Failure::Nothing],
        sometimes: &[OwnerDied, CutPlacing, Overtaken, Skipped],
        states: 20_956,
        ..BASE
    },
    Scenario {
        name: "close-switch-deaths",
        about: "a node dies, and then the switch with another",
        place: Place::Switch,
        threads: &[(1, &[W]), (2, &[W]), (0, &[W])],
        failures: &[Failure::Node(1), Failure::Switch(Some(2))],
        sometimes: &[OwnerDied, Lost, CutPlacing, Overtaken, Skipped],
        states: 73_422,
        ..BASE
    },
    Scenario {
        name: "close-inside",
        about: "readers stay inside while a release is under way and an epoch ends, and another one joins them",
        nodes: 2,
        threads: &[(0, &[W, R]), (0, &[R]), (1, &[R])],
        failures: &[Failure::Nothing],
        sometimes: &[ToReaders, ReadTogether, Cohort],
        states: 5_185,
        ..BASE
    },
    Scenario {
        name: "forgetting-late",
        about: "a node is told late that the lock was home: it forgets nothing that is needed",
        nodes: 2,
        threads: &[(0, &[W, W]), (1, &[W, W])],
        budget: dismissing(faults(1, 0, 1, 0)),
        sometimes: &[Dropped, HandedOver],
        states: 43_379,
        ..BASE
    },
    Scenario {
        name: "forgetting-dead",
        about: "a node that has forgotten is not asked for what the dead had",
        threads: &[(0, &[W]), (1, &[W]), (2, &[W])],
        failures: &[Failure::Node(2)],
        budget: dismissing(faults(0, 0, 0, 0)),
        sometimes: &[Dropped, OwnerDied],
        states: 37_659,
        ..BASE
    },
    Scenario {
        name: "freed-calm",
        about: "a lock is freed and made anew while another node has an old handle",
        threads: &[(1, &[F]), (0, &[H, M, W]), (2, &[W, A, W])],
        sometimes: &[HandedOver, Refused, MadeAnew, Elsewhere],
        states: 16_673,
        ..BASE
    },
    Scenario {
        name: "freed-twice",
        about: "two nodes free the same lock, and the home uses the next one that it makes",
        threads: &[(1, &[F]), (2, &[F, R]), (0, &[H, M, R])],
        sometimes: &[Refused, MadeAnew, FreedTwice],
        states: 18_892,
        ..BASE
    },
    Scenario {
        name: "freed-late",
        about: "the same, and a packet of the earlier lock comes late",
        threads: &[(1, &[F]), (0, &[H, M]), (2, &[W])],
        budget: faults(0, 0, 1, 0),
        sometimes: &[Refused, MadeAnew],
        states: 10_588,
        ..BASE
    },
    Scenario {
        name: "freed-doubled",
        about: "the same, and a packet comes once more, at any time",
        threads: &[(1, &[F]), (0, &[H, M]), (2, &[W])],
        budget: faults(0, 1, 0, 0),
        sometimes: &[Refused, MadeAnew],
        states: 95_917,
        ..BASE
    },
    Scenario {
        name: "freed-dead",
        about: "who frees a lock dies: the lock lives on, or the home knows that it is freed",
        threads: &[(1, &[F]), (0, &[H, M]), (2, &[W, W])],
        failures: &[Failure::Node(1)],
        sometimes: &[Refused, MadeAnew, Revived, OwnerDied],
        states: 61_257,
        ..BASE
    },
    Scenario {
        name: "freed-dead-user",
        about: "who has the lock that was made anew dies, and an old handle is still refused",
        threads: &[(0, &[F, M]), (1, &[A, W]), (2, &[W])],
        failures: &[Failure::Node(1)],
        sometimes: &[Refused, MadeAnew, OwnerDied],
        states: 34_226,
        ..BASE
    },
    Scenario {
        name: "freed-switch",
        about: "the switch serves, and dies with who frees the lock",
        place: Place::Switch,
        threads: &[(1, &[F]), (0, &[H, M]), (2, &[W, R])],
        failures: &[Failure::Switch(Some(1))],
        sometimes: &[Refused, MadeAnew, Revived],
        states: 70_700,
        ..BASE
    },
    Scenario {
        name: "giving-up",
        about: "nodes that need room give the lock up while others ask for it",
        threads: &[(1, &[W]), (2, &[R, W])],
        budget: giving_up(3, faults(0, 0, 0, 0)),
        sometimes: &[Dropped, GaveCopyUp, HandedOver],
        states: 221_855,
        ..BASE
    },
    Scenario {
        name: "giving-up-readers",
        about: "a node gives its copy up, which others read, too, and one wants to write",
        threads: &[(0, &[W]), (1, &[R]), (2, &[R, R])],
        budget: giving_up(2, faults(0, 0, 0, 0)),
        sometimes: &[Dropped, GaveCopyUp, ReadTogether],
        states: 66_828,
        ..BASE
    },
    Scenario {
        name: "giving-up-late",
        about: "questions and answers about a lock that is given up are lost and late",
        nodes: 2,
        threads: &[(0, &[W]), (1, &[R, W])],
        budget: giving_up(1, faults(1, 0, 1, 0)),
        sometimes: &[Dropped],
        states: 44_257,
        ..BASE
    },
    Scenario {
        name: "giving-up-dead",
        about: "what was given up is not lost when one node dies",
        threads: &[(1, &[W]), (2, &[R])],
        failures: &[Failure::Node(1)],
        budget: giving_up(2, faults(0, 0, 0, 0)),
        sometimes: &[Dropped, GaveCopyUp],
        states: 35_129,
        ..BASE
    },
    Scenario {
        name: "resting",
        about: "the home keeps no more than a number of the lock, twice, while others come and go",
        threads: &[(0, &[W]), (1, &[W, W]), (2, &[R, W])],
        budget: resting(2, faults(0, 0, 0, 0)),
        sometimes: &[Rested, HandedOver, ToReaders, Denied],
        states: 135_235,
        ..BASE
    },
    Scenario {
        name: "resting-late",
        about: "the same, and packets of before are lost and late",
        nodes: 2,
        threads: &[(0, &[W, W]), (1, &[W, R])],
        budget: resting(1, dismissing(faults(1, 0, 1, 0))),
        sometimes: &[Rested, HandedOver, Over],
        states: 184_973,
        ..BASE
    },
    Scenario {
        name: "resting-doubled",
        about: "the same, and a packet comes once more, at any time",
        nodes: 2,
        threads: &[(0, &[W, W]), (1, &[W, W])],
        budget: resting(2, faults(0, 1, 0, 0)),
        sometimes: &[Rested, HandedOver],
        states: 67_407,
        ..BASE
    },
    Scenario {
        name: "resting-switch",
        about: "the switch serves, and goes on with what the home does not know of",
        place: Place::Switch,
        threads: &[(0, &[W]), (1, &[W]), (2, &[R])],
        budget: resting(2, faults(1, 0, 0, 0)),
        sometimes: &[Rested, HandedOver, Denied],
        states: 83_402,
        ..BASE
    },
    Scenario {
        name: "resting-dead",
        about: "who gets the lock from a home that kept a number of it dies",
        threads: &[(0, &[W]), (1, &[W]), (2, &[W])],
        failures: &[Failure::Node(2)],
        budget: resting(1, dismissing(faults(0, 0, 0, 0))),
        sometimes: &[Rested, Dropped, OwnerDied],
        states: 122_270,
        ..BASE
    },
];
