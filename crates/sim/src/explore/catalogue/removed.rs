//! Racks in which a region is removed whose home a group keeps, and the next one has its number.

use super::super::scenario::Op::{Evict, HoldRead, HoldWrite, Read, Write};
use super::super::scenario::{Failure, Scenario};
use super::super::witness::Witness::{
    CameNowhere, CleanRemoved, DirtyRemoved, Fenced, HeardOfBoth, NotHeardYet, RefusedLocked,
    RefusedRemoved, RegionGone, RemovedUnderWay, Rescued, UpgradedOverSharers,
};
use super::{BASE, MORE, NONE, SOME, and_epochs, on, size};

pub const REMOVED: &[Scenario] = &[
    Scenario {
        name: "removed-under-copies",
        shows: "a region is removed under copies, clean and dirty, and under requests; its blocks are no blocks of the next one",
        programs: &[on(1, &[Write(0), Write(1)]), on(2, &[Read(0), Read(1)])],
        sometimes: &[
            DirtyRemoved,
            CleanRemoved,
            RemovedUnderWay,
            HeardOfBoth,
            NotHeardYet,
            RegionGone,
            RefusedRemoved,
        ],
        budget: SOME,
        deep: MORE,
        size: size(1_780_621, 7_179_248),
        ..REMOVAL
    },
    Scenario {
        name: "removed-on-the-way-home",
        shows: "what comes home of a removed region is acknowledged and comes nowhere, and evictions end",
        programs: &[
            on(1, &[Write(0), Evict(0)]),
            on(2, &[Read(0), Evict(0), Write(1)]),
        ],
        sometimes: &[DirtyRemoved, RemovedUnderWay, CameNowhere, RegionGone],
        size: size(2_501_231, 9_896_868),
        ..REMOVAL
    },
    Scenario {
        name: "removed-in-an-epoch",
        shows: "an epoch begins, or a reader dies, when some have heard of a removal and some have not: what members tell of the region is no block of the next one",
        programs: &[on(1, &[Write(0), Write(1)]), on(2, &[Read(0), Read(1)])],
        failures: &[Failure::Nothing, Failure::Node(2)],
        budget: and_epochs(NONE, 1),
        deep: and_epochs(SOME, 1),
        sometimes: &[Fenced, DirtyRemoved, RemovedUnderWay, Rescued, RegionGone],
        size: size(217_010, 690_448),
        ..REMOVAL
    },
    Scenario {
        name: "removed-under-locks",
        shows: "a region is removed while a thread holds a lock in it and another one waits, and while a copy is made writable: both end",
        programs: &[
            on(1, &[HoldWrite(0), Read(0), HoldWrite(1)]),
            on(2, &[Read(0), Write(0), HoldRead(1)]),
        ],
        sometimes: &[
            RemovedUnderWay,
            UpgradedOverSharers,
            RefusedLocked,
            RefusedRemoved,
            RegionGone,
        ],
        size: size(2_447_493, 8_803_121),
        ..REMOVAL
    },
];

/// Node 0 keeps a block of the region that is removed, and one of the next.
const REMOVAL: Scenario = Scenario {
    homes: &[0, 0],
    kept: &[1, 2],
    budget: NONE,
    deep: SOME,
    ..BASE
};
