//! The scenarios.

use super::scenario::Op::{self, Evict, HoldRead, HoldWrite, Read, Write};
use super::scenario::{Budget, Failure, Program, Scenario, Size};
use super::witness::Witness::{
    AnsweredAgain, Collided, CutOffApart, EvictedClean, EvictedDirty, Fenced, FencedHeld, Gathered,
    GrantedAfterRefusal, GrantedBySwitch, HeldTogether, IgnoredOld, LostWithNode, Migrated,
    PassedOnAfterMove, RebuildCutOff, Recalled, RefusedInvalid, RefusedLocked, RefusedMoved,
    Rescued, Returned, SavedFromLoss, Stayed, TailWaited, ToldAgain, ToldLost, TwoReadersLock,
    TwoSharers, UnlockAfterMove, UnlockedAgain, UpgradedOverSharers, WaitedForNeighbour,
    WentOnFirst, WrittenBackUnderRead,
};
use crate::world::Rack;

/// A switch in which two blocks want the same place.
const ONE_PLACE: Rack = Rack::Switch { ways: 1, sets: 1 };
/// A switch in which they both fit.
const TWO_PLACES: Rack = Rack::Switch { ways: 2, sets: 1 };

/// One packet is lost and one comes twice.
const SOME: Budget = Budget {
    losses: 1,
    duplicates: 1,
    early: 0,
    retries: 0,
    moves: 0,
    epochs: 0,
};
/// Besides, a timeout is early and a refused request is repeated too soon.
const MORE: Budget = Budget {
    losses: 1,
    duplicates: 1,
    early: 1,
    retries: 1,
    moves: 0,
    epochs: 0,
};

/// A perfect network.
const NONE: Budget = Budget {
    losses: 0,
    duplicates: 0,
    ..SOME
};

/// With so many new epochs.
const fn and_epochs(budget: Budget, epochs: u8) -> Budget {
    Budget { epochs, ..budget }
}

/// With entries moved so often.
const fn and_moves(budget: Budget, moves: u8) -> Budget {
    Budget { moves, ..budget }
}

const fn on(node: u16, ops: &'static [Op]) -> Program {
    Program { node, ops }
}

/// Pinned: where these change, the behaviour of a role has.
const fn size(states: usize, transitions: usize) -> Option<Size> {
    Some(Size {
        states,
        transitions,
    })
}

const BASE: Scenario = Scenario {
    name: "",
    shows: "",
    rack: Rack::HomeOnly,
    nodes: 3,
    homes: &[0, 1],
    programs: &[],
    in_switch: &[],
    failures: &[],
    inside: false,
    budget: SOME,
    deep: MORE,
    segments: 1,
    sometimes: &[],
    size: None,
    mutation: None,
};

const SWITCH: Scenario = Scenario {
    rack: TWO_PLACES,
    in_switch: &[0, 1],
    ..BASE
};

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "home-writers",
        shows: "a block goes from writer to writer, and home (§5.1.1)",
        programs: &[on(1, &[Write(0), Read(1)]), on(2, &[Write(0), Evict(0)])],
        sometimes: &[RefusedLocked, GrantedAfterRefusal, Recalled, EvictedDirty],
        size: size(146_321, 490_869),
        ..BASE
    },
    Scenario {
        name: "home-dirty-reads",
        shows: "dirty data is home before its sharers may drop it (hard place 3)",
        programs: &[on(1, &[Write(0), Write(1)]), on(2, &[Read(0), Read(1)])],
        sometimes: &[WrittenBackUnderRead, TailWaited, TwoSharers, IgnoredOld],
        size: size(152_259, 537_724),
        ..BASE
    },
    Scenario {
        name: "home-readers",
        shows: "two readers and a writer: read unlocks are a union (hard place 4)",
        programs: &[on(1, &[Read(0)]), on(2, &[Read(0)]), on(0, &[Write(0)])],
        sometimes: &[TwoReadersLock, TwoSharers, RefusedLocked],
        size: size(212_854, 746_136),
        ..BASE
    },
    Scenario {
        name: "home-upgrades",
        shows: "two sharers that both want to write",
        programs: &[on(1, &[Read(0), Write(0)]), on(2, &[Read(0), Write(0)])],
        sometimes: &[UpgradedOverSharers, RefusedInvalid, GrantedAfterRefusal],
        size: size(630_465, 1_924_162),
        ..BASE
    },
    Scenario {
        name: "home-evictions",
        shows: "evictions race with requests for the same block",
        programs: &[on(1, &[Write(0), Evict(0)]), on(2, &[Read(0), Evict(0)])],
        sometimes: &[EvictedClean, EvictedDirty, RefusedInvalid],
        size: size(787_421, 2_547_362),
        ..BASE
    },
    Scenario {
        name: "home-rewrites",
        shows: "a block comes home again and again: old segments are not stored (§5.3.1)",
        programs: &[on(1, &[Write(0), Evict(0), Write(0), Evict(0)])],
        sometimes: &[EvictedDirty, UnlockedAgain],
        size: size(19_608, 44_948),
        ..BASE
    },
    Scenario {
        name: "home-neighbours",
        shows: "two threads of a node miss together (hard place 8)",
        programs: &[on(1, &[Read(0)]), on(1, &[Write(0)]), on(2, &[Write(0)])],
        sometimes: &[WaitedForNeighbour, UpgradedOverSharers, Recalled],
        size: size(74_963, 224_870),
        ..BASE
    },
    Scenario {
        name: "home-segments",
        shows: "segments of several grants and retransmissions (hard place 5)",
        programs: &[on(1, &[Write(0)]), on(2, &[Write(0), Read(0)])],
        segments: 2,
        sometimes: &[Recalled, AnsweredAgain],
        size: size(122_490, 507_402),
        ..BASE
    },
    Scenario {
        name: "home-locks",
        shows: "bare locks exclude each other, whatever is lost (§6)",
        programs: &[
            on(1, &[HoldRead(0)]),
            on(2, &[HoldRead(0)]),
            on(0, &[HoldWrite(0)]),
        ],
        sometimes: &[HeldTogether, RefusedLocked, UnlockedAgain],
        size: size(43_371, 138_258),
        ..BASE
    },
    Scenario {
        name: "home-lock-and-miss",
        shows: "a bare lock keeps misses out and leaves the metadata alone (§6)",
        programs: &[
            on(1, &[HoldWrite(0), Read(0)]),
            on(2, &[Write(0), HoldRead(0)]),
        ],
        sometimes: &[RefusedLocked, WrittenBackUnderRead, GrantedAfterRefusal],
        size: size(1_227_825, 4_336_787),
        ..BASE
    },
    Scenario {
        name: "gather-writers",
        shows: "the directory baseline: the home collects",
        rack: Rack::Gather,
        programs: &[on(1, &[Write(0), Read(1)]), on(2, &[Read(0), Write(0)])],
        sometimes: &[Gathered, UpgradedOverSharers],
        size: size(239_041, 815_956),
        ..BASE
    },
    Scenario {
        name: "switch-writers",
        shows: "the same as home-writers where the switch owns the entries (§5.1.1)",
        programs: &[on(1, &[Write(0), Read(1)]), on(2, &[Write(0), Evict(0)])],
        sometimes: &[GrantedBySwitch, RefusedLocked, Recalled, EvictedDirty],
        size: size(191_150, 656_870),
        ..SWITCH
    },
    Scenario {
        name: "switch-dirty-reads",
        shows: "home-dirty-reads, owned by the switch (hard place 3)",
        programs: &[on(1, &[Write(0), Write(1)]), on(2, &[Read(0), Read(1)])],
        sometimes: &[WrittenBackUnderRead, TailWaited, TwoSharers, IgnoredOld],
        size: size(192_275, 695_760),
        ..SWITCH
    },
    Scenario {
        name: "switch-readers",
        shows: "home-readers, owned by the switch (hard place 4)",
        programs: &[on(1, &[Read(0)]), on(2, &[Read(0)]), on(0, &[Write(0)])],
        sometimes: &[TwoReadersLock, TwoSharers, RefusedLocked],
        size: size(229_796, 806_129),
        ..SWITCH
    },
    Scenario {
        name: "switch-upgrades",
        shows: "home-upgrades, owned by the switch",
        programs: &[on(1, &[Read(0), Write(0)]), on(2, &[Read(0), Write(0)])],
        sometimes: &[UpgradedOverSharers, RefusedInvalid, GrantedAfterRefusal],
        size: size(691_828, 2_118_100),
        ..SWITCH
    },
    Scenario {
        name: "switch-evictions",
        shows: "home-evictions, owned by the switch",
        programs: &[on(1, &[Write(0), Evict(0)]), on(2, &[Read(0), Evict(0)])],
        sometimes: &[EvictedClean, EvictedDirty, RefusedInvalid],
        size: size(844_151, 2_729_820),
        ..SWITCH
    },
    Scenario {
        name: "switch-neighbours",
        shows: "home-neighbours, owned by the switch (hard place 8)",
        programs: &[on(1, &[Read(0)]), on(1, &[Write(0)]), on(2, &[Write(0)])],
        sometimes: &[WaitedForNeighbour, UpgradedOverSharers, Recalled],
        size: size(80_625, 242_281),
        ..SWITCH
    },
    Scenario {
        name: "move-add",
        shows: "ADD-TO-SWITCH races with requests, unlocks and retransmissions (hard places 2, 7)",
        in_switch: &[],
        programs: &[on(1, &[Write(0)]), on(2, &[Write(0), Read(0)])],
        budget: and_moves(SOME, 1),
        deep: and_moves(MORE, 1),
        sometimes: &[Migrated, RefusedMoved, UnlockAfterMove, PassedOnAfterMove],
        size: size(630_142, 2_209_489),
        ..SWITCH
    },
    Scenario {
        name: "move-remove",
        shows: "REMOVE-FROM-SWITCH races with them (hard places 2, 7)",
        programs: &[on(1, &[Write(0)]), on(2, &[Write(0), Read(0)])],
        homes: &[0],
        in_switch: &[0],
        budget: and_moves(SOME, 1),
        deep: and_moves(MORE, 1),
        sometimes: &[Returned, Stayed, Recalled],
        size: size(665_052, 2_296_677),
        ..SWITCH
    },
    Scenario {
        name: "move-there-and-back",
        shows: "an entry goes to the switch and back under requests (hard places 2, 7)",
        programs: &[on(1, &[Write(0)]), on(2, &[Read(0)])],
        homes: &[0],
        in_switch: &[],
        budget: and_moves(SOME, 2),
        deep: and_moves(MORE, 2),
        sometimes: &[Migrated, Returned, RefusedMoved],
        size: size(695_944, 2_195_969),
        ..SWITCH
    },
    Scenario {
        name: "move-collide",
        shows: "two entries want the only place of the switch (hard place 7)",
        rack: ONE_PLACE,
        programs: &[on(1, &[Write(0)]), on(2, &[Write(1)])],
        in_switch: &[0],
        budget: and_moves(SOME, 2),
        deep: and_moves(MORE, 2),
        sometimes: &[Collided, Returned, Migrated],
        size: size(330_374, 1_205_036),
        ..SWITCH
    },
    Scenario {
        name: "epoch-switch-dies",
        shows: "the switch dies in the middle of events (hard place 6, §5.4)",
        programs: &[on(1, &[Write(0)]), on(2, &[Write(0), Read(0)])],
        homes: &[0],
        in_switch: &[0],
        failures: &[Failure::Switch],
        budget: and_epochs(SOME, 1),
        deep: and_epochs(MORE, 1),
        sometimes: &[Fenced, FencedHeld, Rescued],
        size: size(123_707, 376_392),
        ..SWITCH
    },
    Scenario {
        name: "epoch-node-dies",
        shows: "a node dies in the middle of events, perhaps with the last content (hard place 6, §5.4)",
        programs: &[on(1, &[Write(0)]), on(2, &[Write(0), Read(0)])],
        homes: &[0],
        failures: &[Failure::Node(1)],
        budget: and_epochs(SOME, 1),
        deep: and_epochs(MORE, 1),
        sometimes: &[Fenced, FencedHeld, LostWithNode, ToldLost],
        size: size(21_450, 81_629),
        ..BASE
    },
    Scenario {
        name: "epoch-node-dies-switch-stays",
        shows: "the same where the surviving switch knows who held which lock (§5.4)",
        programs: &[on(1, &[Write(0)]), on(2, &[Write(0), Read(0)])],
        homes: &[0],
        in_switch: &[0],
        failures: &[Failure::Node(1)],
        budget: and_epochs(SOME, 1),
        deep: and_epochs(MORE, 1),
        sometimes: &[Fenced, FencedHeld, LostWithNode, ToldLost],
        size: size(23_709, 89_195),
        ..SWITCH
    },
    Scenario {
        name: "epoch-evictions",
        shows: "dirty data on its way home is not lost when an epoch ends (§5.4)",
        programs: &[on(1, &[Write(0), Evict(0)]), on(2, &[Read(0), Evict(0)])],
        homes: &[0],
        failures: &[Failure::Nothing],
        budget: and_epochs(NONE, 1),
        deep: and_epochs(SOME, 1),
        sometimes: &[Fenced, FencedHeld, Rescued],
        size: size(69_447, 150_481),
        ..BASE
    },
    Scenario {
        name: "epoch-locks",
        shows: "bare locks outlive an epoch and still exclude each other (§6)",
        programs: &[
            on(1, &[HoldRead(0)]),
            on(2, &[HoldWrite(0)]),
            on(0, &[Write(0)]),
        ],
        homes: &[0],
        in_switch: &[0],
        failures: &[Failure::Switch],
        budget: and_epochs(SOME, 1),
        deep: and_epochs(MORE, 1),
        sometimes: &[Fenced, FencedHeld],
        size: size(780_258, 2_380_541),
        ..SWITCH
    },
    Scenario {
        name: "epoch-twice",
        shows: "the switch dies, and then a node (hard place 6, §5.4)",
        programs: &[on(1, &[Write(0)]), on(2, &[Read(0), Write(0)])],
        homes: &[0],
        in_switch: &[0],
        failures: &[Failure::Switch, Failure::Node(1)],
        budget: and_epochs(NONE, 2),
        deep: and_epochs(SOME, 2),
        sometimes: &[Fenced, LostWithNode, Rescued],
        size: size(8_130, 20_478),
        ..SWITCH
    },
    Scenario {
        name: "epoch-new-switch",
        shows: "the switch dies, entries stay at home, a new one comes and takes one (hard place 6, §5.4)",
        programs: &[on(1, &[Write(0)]), on(2, &[Read(0), Write(0)])],
        homes: &[0],
        in_switch: &[0],
        failures: &[Failure::Switch, Failure::NewSwitch],
        budget: and_epochs(and_moves(NONE, 1), 2),
        deep: and_epochs(and_moves(SOME, 1), 2),
        sometimes: &[Fenced, FencedHeld, Rescued, Migrated, Returned],
        size: size(567_937, 1_476_512),
        ..SWITCH
    },
    Scenario {
        name: "epoch-moves",
        shows: "an epoch ends while entries are on their way to the switch or back (§5.2, §5.4)",
        programs: &[on(1, &[Write(0)]), on(2, &[Read(0)])],
        homes: &[0],
        in_switch: &[],
        failures: &[Failure::Switch, Failure::Nothing],
        budget: and_epochs(and_moves(NONE, 2), 1),
        deep: and_epochs(and_moves(SOME, 2), 1),
        sometimes: &[Fenced, Migrated, Returned],
        size: size(78_371, 177_644),
        ..SWITCH
    },
    Scenario {
        name: "inside-pair",
        shows: "what a rebuild of two nodes says is lost, doubled and late (§5.4)",
        nodes: 2,
        programs: &[on(1, &[Write(0)]), on(0, &[Read(0)])],
        homes: &[0],
        failures: &[Failure::Nothing],
        inside: true,
        budget: and_epochs(SOME, 1),
        deep: and_epochs(MORE, 1),
        sometimes: &[Fenced, Rescued, ToldAgain, WentOnFirst],
        size: size(330_089, 1_074_302),
        ..BASE
    },
    Scenario {
        name: "inside-again",
        shows: "another epoch begins anywhere in a rebuild, and when one node has gone on (§5.4)",
        nodes: 2,
        programs: &[on(1, &[Write(0)]), on(0, &[Read(0)])],
        homes: &[0],
        failures: &[Failure::Nothing, Failure::Nothing],
        inside: true,
        budget: and_epochs(NONE, 2),
        deep: and_epochs(SOME, 2),
        sometimes: &[Fenced, Rescued, RebuildCutOff, CutOffApart],
        size: size(71_811, 148_512),
        ..BASE
    },
    Scenario {
        name: "inside-three",
        shows: "a provider, a requester and a home learn at different times; deep: the requester dies (§5.4)",
        programs: &[on(1, &[Write(0)]), on(2, &[Write(0)])],
        homes: &[0],
        failures: &[Failure::Nothing, Failure::Node(2)],
        inside: true,
        budget: and_epochs(NONE, 1),
        deep: and_epochs(NONE, 2),
        sometimes: &[Fenced, Rescued, WentOnFirst],
        size: size(2_131_712, 9_160_274),
        ..BASE
    },
    Scenario {
        name: "inside-node-dies",
        shows: "a requester dies in a rebuild: what has come home before is not lost (§5.4)",
        nodes: 2,
        programs: &[on(0, &[Write(0)]), on(1, &[Write(0)])],
        homes: &[0],
        failures: &[Failure::Nothing, Failure::Node(1)],
        inside: true,
        budget: and_epochs(SOME, 2),
        deep: and_epochs(MORE, 2),
        sometimes: &[Fenced, Rescued, RebuildCutOff, SavedFromLoss],
        size: size(250_493, 1_021_473),
        ..BASE
    },
    Scenario {
        name: "inside-dead-node",
        shows: "a node dies, and another epoch begins while the others rebuild (§5.4)",
        programs: &[on(1, &[Write(0)]), on(2, &[Read(0)])],
        homes: &[0],
        failures: &[Failure::Node(2), Failure::Nothing],
        inside: true,
        budget: and_epochs(NONE, 2),
        deep: and_epochs(SOME, 2),
        sometimes: &[Fenced, Rescued, RebuildCutOff, CutOffApart],
        size: size(10_153, 19_998),
        ..BASE
    },
];
