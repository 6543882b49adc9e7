//! The racks that are explored, and those that are walked through.

use super::Witness::{
    self, Adopted, Agreed, AtOnce, Counted, CutSync, Disagreed, EndedByRemoval, Fenced, Fetched,
    Filled, FilledOver, HadCome, KeptSync, NeverCame, Recounted, RefusedStore, Repaired, Retaken,
    Superseded, ToldConfig, WrittenBack, WrittenBySwitch,
};
use super::scenario::{Budget, Op, Scenario, Store};
use rackmem_proto::abd::{Change, Member};
use rackmem_proto::wire::NodeId;

const R: Op = Op::Read(0);
const W: Op = Op::Write(0);
const T: Op = Op::Take(0);

const CALM: Budget = Budget {
    lose: 0,
    double: 0,
    early: 0,
    crash: 0,
    die: 0,
    switch: 0,
    abandon: 0,
    damage: 0,
    fail: 0,
};

const BASE: Scenario = Scenario {
    name: "",
    about: "",
    threads: &[],
    copies: 3,
    spares: 0,
    written: 0,
    segments: 1,
    switch: false,
    at_once: false,
    held: false,
    entries: 4,
    homes: false,
    quorum_first: false,
    store: Store::Memory,
    changes: &[],
    again: false,
    dead: &[],
    mortal: &[],
    budget: CALM,
    sometimes: &[],
    states: 0,
};

const fn member(node: NodeId, life: u64) -> Member {
    Member { node, life }
}

const SEEN_BY_ALL: &[Witness] = &[Agreed, Disagreed, Fetched, Repaired];

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "abd-calm",
        about: "a writer and a reader, nothing goes wrong",
        threads: &[&[W], &[R]],
        sometimes: SEEN_BY_ALL,
        states: 2_960,
        ..BASE
    },
    Scenario {
        name: "abd-two-writers",
        about: "two writers of one line",
        threads: &[&[W], &[W]],
        sometimes: &[Superseded],
        states: 7_474,
        ..BASE
    },
    Scenario {
        name: "abd-read-writes-back",
        about: "two reads of one reader while a write goes on: the second is no older than the first",
        threads: &[&[W], &[R, R]],
        sometimes: SEEN_BY_ALL,
        states: 22_645,
        ..BASE
    },
    Scenario {
        name: "abd-lossy",
        about: "a packet is lost",
        threads: &[&[W], &[R]],
        budget: Budget { lose: 1, ..CALM },
        sometimes: SEEN_BY_ALL,
        states: 15_649,
        ..BASE
    },
    Scenario {
        name: "abd-doubled",
        about: "a packet comes twice",
        threads: &[&[W], &[R]],
        budget: Budget { double: 1, ..CALM },
        sometimes: SEEN_BY_ALL,
        states: 30_430,
        ..BASE
    },
    Scenario {
        name: "abd-early",
        about: "a node asks again while answers are under way",
        threads: &[&[W, R]],
        budget: Budget { early: 1, ..CALM },
        sometimes: &[Agreed],
        states: 8_645,
        ..BASE
    },
    Scenario {
        name: "abd-segments",
        about: "a line of two segments is written three times and read, one packet is lost and one doubled",
        threads: &[&[W, W, W], &[R]],
        copies: 1,
        segments: 2,
        budget: Budget {
            lose: 1,
            double: 1,
            ..CALM
        },
        sometimes: &[Agreed],
        states: 27_727,
        ..BASE
    },
    Scenario {
        name: "abd-segments-3",
        about: "a line of two segments with three copies",
        threads: &[&[W], &[R]],
        segments: 2,
        sometimes: SEEN_BY_ALL,
        states: 17_296,
        ..BASE
    },
    Scenario {
        name: "abd-die",
        about: "a member is gone for good: nobody waits for it",
        threads: &[&[W], &[R]],
        mortal: &[2],
        budget: Budget { die: 1, ..CALM },
        sometimes: SEEN_BY_ALL,
        states: 5_936,
        ..BASE
    },
    Scenario {
        name: "abd-crash",
        about: "a member restarts and has forgotten: it is no member any more",
        threads: &[&[W], &[R]],
        mortal: &[2],
        budget: Budget { crash: 1, ..CALM },
        sometimes: SEEN_BY_ALL,
        states: 7_523,
        ..BASE
    },
    Scenario {
        name: "abd-crash-writer",
        about: "a writer's process ends: a reader finishes what it has begun, or nobody does",
        threads: &[&[W], &[R]],
        mortal: &[0],
        budget: Budget { crash: 1, ..CALM },
        sometimes: &[Adopted, Disagreed],
        states: 7_193,
        ..BASE
    },
    Scenario {
        name: "abd-crash-stamps",
        about: "a writer's process ends, and its next life writes again",
        threads: &[&[W, W]],
        mortal: &[0],
        budget: Budget { crash: 1, ..CALM },
        states: 1_656,
        ..BASE
    },
    Scenario {
        name: "abd-crash-durable",
        about: "a durable member restarts while lines are on their way to its store",
        threads: &[&[W, R]],
        store: Store::Durable,
        mortal: &[1],
        budget: Budget { crash: 1, ..CALM },
        sometimes: &[CutSync, Agreed],
        states: 14_836,
        ..BASE
    },
    Scenario {
        name: "abd-durable-order",
        about: "two lines of one place become durable in any order, and the member restarts",
        threads: &[&[W], &[W]],
        copies: 1,
        store: Store::Durable,
        mortal: &[2],
        budget: Budget { crash: 1, ..CALM },
        sometimes: &[CutSync, KeptSync],
        states: 882,
        ..BASE
    },
    Scenario {
        name: "abd-durable-fill",
        about: "a durable member restarts when it has filled, or while it does",
        threads: &[&[W]],
        copies: 1,
        spares: 1,
        store: Store::Durable,
        mortal: &[2],
        changes: &[Change::Add(member(2, 1)), Change::Filled(2)],
        budget: Budget { crash: 1, ..CALM },
        sometimes: &[CutSync, KeptSync, Filled],
        states: 54_054,
        ..BASE
    },
    Scenario {
        name: "abd-durable-damage",
        about: "a record of a member's store is damaged: it is no member any more",
        threads: &[&[W]],
        store: Store::Durable,
        mortal: &[1],
        budget: Budget { damage: 1, ..CALM },
        sometimes: &[RefusedStore],
        states: 876,
        ..BASE
    },
    Scenario {
        name: "abd-durable-fails",
        about: "a sync fails: the member ends, and starts again with what was durable before",
        threads: &[&[W]],
        copies: 1,
        store: Store::Durable,
        mortal: &[1],
        budget: Budget {
            fail: 1,
            crash: 1,
            ..CALM
        },
        sometimes: &[CutSync],
        states: 61,
        ..BASE
    },
    Scenario {
        name: "abd-replace",
        about: "a dead member is replaced, and the new one fills while a line is written",
        threads: &[&[W]],
        spares: 1,
        dead: &[3],
        changes: &[Change::Replace(3, member(4, 1)), Change::Filled(4)],
        sometimes: &[Filled, FilledOver, Recounted, ToldConfig],
        states: 103_376,
        ..BASE
    },
    Scenario {
        name: "abd-fill-lines",
        about: "a member that fills asks anew while two lines of two segments are on their way to it",
        spares: 1,
        written: 2,
        segments: 2,
        dead: &[2],
        changes: &[Change::Replace(2, member(3, 1)), Change::Filled(3)],
        budget: Budget { early: 1, ..CALM },
        sometimes: &[Filled],
        states: 11_371,
        ..BASE
    },
    Scenario {
        name: "abd-grow",
        about: "a line with one copy gets a second one while it is written",
        threads: &[&[W]],
        copies: 1,
        spares: 1,
        changes: &[Change::Add(member(2, 1)), Change::Filled(2)],
        sometimes: &[Filled, FilledOver, Recounted, ToldConfig],
        states: 2_720,
        ..BASE
    },
    Scenario {
        name: "abd-grow-back",
        about: "the second copy of a line that gets one is given up again",
        threads: &[&[W]],
        copies: 1,
        spares: 1,
        changes: &[
            Change::Add(member(2, 1)),
            Change::Filled(2),
            Change::Cancel(2),
        ],
        sometimes: &[Filled, FilledOver, Recounted, ToldConfig],
        states: 15_430,
        ..BASE
    },
    Scenario {
        name: "abd-remove",
        about: "a region is removed while it is written and read, and another one gets its number",
        threads: &[&[W], &[R]],
        copies: 1,
        changes: &[Change::Remove],
        again: true,
        sometimes: &[Agreed, ToldConfig, EndedByRemoval],
        states: 69_346,
        ..BASE
    },
    Scenario {
        name: "abd-home-fails-over",
        about: "a home writes a line, and the next one puts it in place",
        threads: &[&[W], &[T]],
        homes: true,
        sometimes: &[Fenced, Retaken],
        states: 12_706,
        ..BASE
    },
    Scenario {
        name: "abd-quorum-first",
        about: "questions go to a quorum first; a packet is lost, and all are asked",
        threads: &[&[W], &[R]],
        quorum_first: true,
        budget: Budget { lose: 1, ..CALM },
        sometimes: SEEN_BY_ALL,
        states: 10_223,
        ..BASE
    },
    Scenario {
        name: "abd-quorum-first-die",
        about: "questions go to a quorum first, and a member of it is gone for good",
        threads: &[&[W], &[R]],
        quorum_first: true,
        mortal: &[2, 3],
        budget: Budget { die: 1, ..CALM },
        sometimes: SEEN_BY_ALL,
        states: 3_400,
        ..BASE
    },
    Scenario {
        name: "abd-quorum-first-switch",
        about: "a switch counts what a quorum says, forgets it, and counts what all say",
        threads: &[&[W, R]],
        quorum_first: true,
        switch: true,
        mortal: &[2],
        budget: Budget {
            switch: 1,
            die: 1,
            ..CALM
        },
        sometimes: &[Counted, Agreed],
        states: 6_637,
        ..BASE
    },
    Scenario {
        name: "abd-switch",
        about: "a switch counts, for a writer and a reader",
        threads: &[&[W], &[R]],
        switch: true,
        sometimes: &[Counted, Agreed, Disagreed],
        states: 23_343,
        ..BASE
    },
    Scenario {
        name: "abd-switch-restart",
        about: "the switch starts again and has forgotten what it counted",
        threads: &[&[W, R]],
        switch: true,
        budget: Budget { switch: 1, ..CALM },
        sometimes: &[Counted, Agreed],
        states: 6_283,
        ..BASE
    },
    Scenario {
        name: "abd-one-round",
        about: "the switch chooses stamps: a line is written twice",
        threads: &[&[W, W]],
        switch: true,
        at_once: true,
        sometimes: &[AtOnce],
        states: 410,
        ..BASE
    },
    Scenario {
        name: "abd-one-round-cut",
        about: "the switch forgets the stamps that it has chosen, and a write asks for its fate",
        threads: &[&[W, W]],
        copies: 1,
        switch: true,
        at_once: true,
        budget: Budget { switch: 1, ..CALM },
        sometimes: &[AtOnce, HadCome, NeverCame],
        states: 600,
        ..BASE
    },
    Scenario {
        name: "abd-switch-crash-writer",
        about: "a writer's process ends, and its next life asks through the same switch",
        threads: &[&[W, W]],
        switch: true,
        mortal: &[0],
        budget: Budget { crash: 1, ..CALM },
        sometimes: &[Counted],
        states: 3_758,
        ..BASE
    },
    Scenario {
        name: "abd-one-round-crash-writer",
        about: "a writer's process ends, and the switch chooses for its next life",
        threads: &[&[W, W], &[W]],
        copies: 1,
        switch: true,
        at_once: true,
        mortal: &[0],
        budget: Budget { crash: 1, ..CALM },
        sometimes: &[AtOnce],
        states: 10_712,
        ..BASE
    },
    Scenario {
        name: "abd-one-round-abandoned",
        about: "a thread waits no longer for a write of one round, the switch forgets, and the thread writes again",
        threads: &[&[W, W, W]],
        copies: 1,
        switch: true,
        at_once: true,
        budget: Budget {
            switch: 1,
            abandon: 1,
            ..CALM
        },
        sometimes: &[AtOnce],
        states: 8_806,
        ..BASE
    },
    Scenario {
        name: "abd-line64",
        about: "a switch carries out both rounds, for a writer and a reader; one of three members is gone",
        threads: &[&[W], &[R]],
        dead: &[4],
        switch: true,
        at_once: true,
        held: true,
        sometimes: &[WrittenBySwitch, WrittenBack, AtOnce, Agreed],
        states: 555,
        ..BASE
    },
    Scenario {
        name: "abd-line64-again",
        about: "likewise, and requests come twice",
        threads: &[&[W, R], &[W]],
        copies: 1,
        switch: true,
        at_once: true,
        held: true,
        budget: Budget {
            early: 1,
            double: 1,
            ..CALM
        },
        sometimes: &[WrittenBySwitch, AtOnce],
        states: 54_801,
        ..BASE
    },
    Scenario {
        name: "abd-line64-cut",
        about: "the switch forgets what it holds, and a write asks for its fate",
        threads: &[&[W, W], &[R]],
        copies: 1,
        switch: true,
        at_once: true,
        held: true,
        budget: Budget { switch: 1, ..CALM },
        sometimes: &[AtOnce, HadCome, NeverCame],
        states: 20_230,
        ..BASE
    },
];

const R1: Op = Op::Read(1);
const W1: Op = Op::Write(1);
const MANY: &[&[Op]] = &[
    &[W, R, W1, R1, W, R],
    &[R, W, R, W1, R1, W],
    &[W1, R, R1, W, R, R],
    &[R, R, W, R1, R, W1],
];
const ROUGH: Budget = Budget {
    lose: 12,
    double: 12,
    early: 12,
    crash: 0,
    die: 0,
    switch: 0,
    abandon: 0,
    damage: 0,
    fail: 0,
};

/// Larger racks, for seeded ways.
pub const WALKS: &[Scenario] = &[
    Scenario {
        name: "walk-five",
        about: "five copies, lines of two segments; one member dies and is replaced",
        quorum_first: true,
        threads: MANY,
        copies: 5,
        spares: 1,
        segments: 2,
        changes: &[Change::Replace(8, member(9, 1)), Change::Filled(9)],
        mortal: &[8],
        budget: Budget { die: 1, ..ROUGH },
        ..BASE
    },
    Scenario {
        name: "walk-homes",
        about: "four homes write, one after the other, and each puts in place what it finds",
        threads: &[&[W, W, W], &[T, W, W], &[T, W, W], &[T, W, T]],
        segments: 2,
        homes: true,
        budget: ROUGH,
        ..BASE
    },
    Scenario {
        name: "walk-durable",
        about: "three durable copies; every process restarts now and then",
        threads: MANY,
        segments: 2,
        store: Store::Durable,
        mortal: &[0, 1, 2, 3, 4, 5, 6],
        budget: Budget { crash: 8, ..ROUGH },
        ..BASE
    },
    Scenario {
        name: "walk-switch",
        about: "a switch counts for five copies, starts again, and a member is replaced",
        quorum_first: true,
        threads: MANY,
        copies: 5,
        spares: 1,
        segments: 2,
        switch: true,
        changes: &[Change::Replace(4, member(9, 1)), Change::Filled(9)],
        budget: Budget { switch: 3, ..ROUGH },
        ..BASE
    },
    Scenario {
        name: "walk-one-round",
        about: "a switch chooses stamps, forgets them, and a member is replaced",
        quorum_first: true,
        threads: MANY,
        spares: 1,
        segments: 2,
        switch: true,
        at_once: true,
        changes: &[Change::Replace(4, member(7, 1)), Change::Filled(7)],
        budget: Budget {
            switch: 3,
            abandon: 3,
            ..ROUGH
        },
        ..BASE
    },
    Scenario {
        name: "walk-line64",
        about: "a switch carries out both rounds, forgets what it holds, and a member is replaced",
        threads: MANY,
        spares: 1,
        switch: true,
        at_once: true,
        held: true,
        changes: &[Change::Replace(4, member(7, 1)), Change::Filled(7)],
        budget: Budget {
            switch: 3,
            abandon: 3,
            ..ROUGH
        },
        ..BASE
    },
    Scenario {
        name: "walk-one-round-fill",
        about: "a write of one round is cut off while a member fills",
        threads: &[&[W, W, W]],
        copies: 1,
        spares: 1,
        switch: true,
        at_once: true,
        changes: &[Change::Add(member(2, 1)), Change::Filled(2)],
        budget: Budget { switch: 1, ..CALM },
        ..BASE
    },
    Scenario {
        name: "walk-one-entry",
        about: "a switch chooses stamps of one line at a time, and threads restart",
        threads: MANY,
        copies: 1,
        switch: true,
        at_once: true,
        entries: 1,
        mortal: &[0, 1, 2, 3],
        budget: Budget {
            crash: 2,
            early: 40,
            ..ROUGH
        },
        ..BASE
    },
    Scenario {
        name: "walk-grow",
        about: "one copy becomes three while lines are used, and one of them is replaced",
        threads: MANY,
        copies: 1,
        spares: 3,
        changes: &[
            Change::Add(member(5, 1)),
            Change::Filled(5),
            Change::Add(member(6, 1)),
            Change::Filled(6),
            Change::Replace(4, member(7, 1)),
            Change::Filled(7),
        ],
        budget: ROUGH,
        ..BASE
    },
    Scenario {
        name: "walk-grow-to-five",
        about: "three copies become five while lines are used through a switch that starts again",
        threads: MANY,
        spares: 2,
        segments: 2,
        switch: true,
        at_once: true,
        changes: &[
            Change::Add(member(7, 1)),
            Change::Filled(7),
            Change::Add(member(8, 1)),
            Change::Filled(8),
        ],
        budget: Budget {
            switch: 2,
            abandon: 2,
            ..ROUGH
        },
        ..BASE
    },
    Scenario {
        name: "walk-grow-back",
        about: "one copy becomes two, the second one is given up, and others take its place until there are three",
        threads: MANY,
        copies: 1,
        spares: 3,
        changes: &[
            Change::Add(member(5, 1)),
            Change::Filled(5),
            Change::Add(member(6, 1)),
            Change::Cancel(6),
            Change::Cancel(5),
            Change::Add(member(6, 1)),
            Change::Filled(6),
            Change::Add(member(7, 1)),
            Change::Filled(7),
        ],
        budget: ROUGH,
        ..BASE
    },
    Scenario {
        name: "walk-remove",
        about: "a region with three copies is removed, one of which fills, and another one gets its number",
        threads: MANY,
        spares: 1,
        segments: 2,
        changes: &[Change::Replace(6, member(7, 1)), Change::Remove],
        again: true,
        budget: ROUGH,
        ..BASE
    },
    Scenario {
        name: "walk-remove-one-round",
        about: "the same while a switch chooses stamps",
        threads: MANY,
        segments: 2,
        switch: true,
        at_once: true,
        changes: &[Change::Remove],
        again: true,
        budget: Budget {
            abandon: 3,
            ..ROUGH
        },
        ..BASE
    },
    Scenario {
        name: "walk-live",
        about: "a member that is not dead is replaced: it goes on in the config that it knows",
        quorum_first: true,
        threads: &[&[W, R, W, R], &[R, W, R]],
        spares: 1,
        changes: &[Change::Replace(4, member(5, 1)), Change::Filled(5)],
        ..BASE
    },
    Scenario {
        name: "walk-durable-config",
        about: "a durable member that is not dead is replaced, and all restart and hear of the first config",
        threads: &[&[W, R, W, R], &[R, W, R]],
        spares: 1,
        store: Store::Durable,
        mortal: &[2, 3, 4, 5],
        changes: &[Change::Replace(4, member(5, 1)), Change::Filled(5)],
        budget: Budget { crash: 4, ..CALM },
        ..BASE
    },
    Scenario {
        name: "walk-replace",
        about: "of three copies, two are replaced one after the other",
        quorum_first: true,
        threads: MANY,
        spares: 2,
        changes: &[
            Change::Replace(4, member(7, 1)),
            Change::Filled(7),
            Change::Replace(5, member(8, 1)),
            Change::Filled(8),
        ],
        budget: ROUGH,
        ..BASE
    },
    Scenario {
        name: "walk-forget",
        about: "a member restarts and has forgotten: it fills and is one again",
        threads: MANY,
        mortal: &[6],
        changes: &[Change::Replace(6, member(6, 2)), Change::Filled(6)],
        budget: Budget { crash: 1, ..ROUGH },
        ..BASE
    },
];
