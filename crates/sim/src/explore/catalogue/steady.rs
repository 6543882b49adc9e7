//! Racks whose members stay.

use super::super::scenario::Op::{
    Evict, Fetch, HoldRead, HoldWrite, Read, Store, Swap, Write, WriteInPlace,
};
use super::super::scenario::Scenario;
use super::super::witness::Witness::{
    AnsweredAgain, AnsweredInKernel, Collided, EvictedClean, EvictedDirty, Fetched, Gathered,
    GaveInKernel, GrantedAfterRefusal, GrantedBySwitch, HeldTogether, IgnoredOld, Migrated,
    PassedOnAfterMove, Recalled, RefusedInvalid, RefusedLocked, RefusedMoved, Returned, Stayed,
    StoreRefused, Stored, TailWaited, TookWritten, TwoReadersLock, TwoSharers, UnlockAfterMove,
    UnlockedAgain, UpgradedOverSharers, WaitedForNeighbour, WrittenBackUnderRead, WrittenInPlace,
};
use super::{BASE, MORE, NONE, ONE_PLACE, SOME, SWITCH, and_moves, on, size};
use crate::world::Owners;

pub const STEADY: &[Scenario] = &[
    Scenario {
        name: "home-fetches",
        shows: "who keeps no copy reads what the last writer left, and home's threads write in home's memory",
        programs: &[
            on(0, &[WriteInPlace(0)]),
            on(1, &[Write(0), Evict(0)]),
            on(2, &[Fetch(0), Fetch(0)]),
        ],
        homes: &[0],
        sometimes: &[Fetched, WrittenInPlace, EvictedDirty],
        size: size(384_031, 1_403_048),
        ..BASE
    },
    Scenario {
        name: "switch-fetches",
        shows: "the same where entries move to the switch and back",
        programs: &[
            on(0, &[WriteInPlace(0)]),
            on(1, &[Write(0)]),
            on(2, &[Fetch(0), Fetch(0)]),
        ],
        homes: &[0],
        in_switch: &[],
        budget: and_moves(NONE, 2),
        deep: and_moves(SOME, 2),
        sometimes: &[Fetched, WrittenInPlace, Migrated, Returned],
        size: size(78_956, 231_500),
        ..SWITCH
    },
    Scenario {
        name: "home-stores",
        shows: "who keeps no copy has home write for it, once, where no cache has any",
        programs: &[on(1, &[Write(0), Evict(0)]), on(2, &[Store(0), Store(0)])],
        homes: &[0],
        sometimes: &[Stored, StoreRefused, EvictedDirty],
        size: size(91_654, 270_666),
        ..BASE
    },
    Scenario {
        name: "switch-stores",
        shows: "the same where entries move to the switch and back",
        programs: &[on(1, &[Write(0), Evict(0)]), on(2, &[Store(0), Store(0)])],
        homes: &[0],
        in_switch: &[],
        budget: and_moves(NONE, 2),
        deep: and_moves(SOME, 2),
        sometimes: &[Stored, StoreRefused, Migrated, Returned],
        size: size(671_488, 1_789_042),
        ..SWITCH
    },
    Scenario {
        name: "home-swaps",
        shows: "home operates on a word for who keeps no copy, once, and tells each copy of the packet the same",
        programs: &[on(1, &[Write(0), Evict(0)]), on(2, &[Swap(0), Swap(0)])],
        homes: &[0],
        sometimes: &[Stored, StoreRefused, EvictedDirty],
        size: size(117_474, 339_837),
        ..BASE
    },
    Scenario {
        name: "switch-swaps",
        shows: "the same where the switch has the entry, which home then takes back",
        programs: &[on(1, &[Write(0), Evict(0)]), on(2, &[Swap(0), Swap(0)])],
        homes: &[0],
        in_switch: &[0],
        budget: NONE,
        deep: SOME,
        sometimes: &[Stored, StoreRefused, Returned],
        size: size(206_426, 540_833),
        ..SWITCH
    },
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
        size: size(149_735, 531_106),
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
        size: size(628_977, 1_921_738),
        ..BASE
    },
    Scenario {
        name: "kernel-upgrade",
        shows: "the kernel of a sharer's host invalidates its copy, once, beside the sharer's agent",
        programs: &[on(1, &[Read(0), Write(0)]), on(2, &[Read(0), Read(0)])],
        homes: &[0],
        in_kernel: true,
        sometimes: &[AnsweredInKernel, AnsweredAgain, UpgradedOverSharers],
        size: size(159_786, 494_549),
        ..BASE
    },
    Scenario {
        name: "kernel-writers",
        shows: "the same where sharers write: what was written and then read goes by the kernel as well",
        programs: &[on(1, &[Write(0), Write(0)]), on(2, &[Read(0), Write(0)])],
        homes: &[0],
        in_kernel: true,
        sometimes: &[
            AnsweredInKernel,
            TookWritten,
            GaveInKernel,
            WrittenBackUnderRead,
            UpgradedOverSharers,
        ],
        size: size(472_295, 1_512_401),
        ..BASE
    },
    Scenario {
        name: "kernel-provides",
        shows: "the kernel of a home's host gives blocks whose entries the switch has, as they have come home",
        programs: &[on(1, &[Write(0), Evict(0)]), on(2, &[Read(0), Evict(0)])],
        homes: &[0],
        in_switch: &[0],
        in_kernel: true,
        sometimes: &[AnsweredInKernel, EvictedDirty, RefusedInvalid],
        size: size(833_088, 2_709_091),
        ..SWITCH
    },
    Scenario {
        name: "kernel-moves",
        shows: "the same while entries move: what the switch has given back is written in place",
        programs: &[on(0, &[WriteInPlace(0)]), on(1, &[Read(0), Evict(0)])],
        homes: &[0],
        in_switch: &[0],
        in_kernel: true,
        budget: and_moves(NONE, 2),
        deep: and_moves(SOME, 2),
        sometimes: &[AnsweredInKernel, Migrated, Returned],
        size: size(107_814, 259_119),
        ..SWITCH
    },
    Scenario {
        name: "home-evictions",
        shows: "evictions race with requests for the same block",
        programs: &[on(1, &[Write(0), Evict(0)]), on(2, &[Read(0), Evict(0)])],
        sometimes: &[EvictedClean, EvictedDirty, RefusedInvalid],
        size: size(776_562, 2_527_017),
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
        size: size(74_611, 224_218),
        ..BASE
    },
    Scenario {
        name: "home-evict-neighbours",
        shows: "a thread writes into the copy that another one evicts (hard place 8)",
        programs: &[
            on(1, &[Write(0), Evict(0)]),
            on(1, &[Write(0), Write(0)]),
            on(2, &[Read(0)]),
        ],
        budget: NONE,
        deep: SOME,
        sometimes: &[WaitedForNeighbour, EvictedDirty, EvictedClean],
        size: size(40_697, 94_188),
        ..BASE
    },
    Scenario {
        name: "home-segments",
        shows: "segments of several grants and retransmissions (hard place 5)",
        programs: &[on(1, &[Write(0)]), on(2, &[Write(0), Read(0)])],
        segments: 2,
        sometimes: &[Recalled, AnsweredAgain],
        size: size(117_126, 489_106),
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
        size: size(1_157_895, 4_111_540),
        ..BASE
    },
    Scenario {
        name: "gather-writers",
        shows: "the directory baseline: the home collects",
        rack: Owners::Gather,
        programs: &[on(1, &[Write(0), Read(1)]), on(2, &[Read(0), Write(0)])],
        sometimes: &[Gathered, UpgradedOverSharers],
        size: size(237_409, 812_144),
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
        size: size(189_475, 688_422),
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
        size: size(690_340, 2_115_676),
        ..SWITCH
    },
    Scenario {
        name: "switch-evictions",
        shows: "home-evictions, owned by the switch",
        programs: &[on(1, &[Write(0), Evict(0)]), on(2, &[Read(0), Evict(0)])],
        sometimes: &[EvictedClean, EvictedDirty, RefusedInvalid],
        size: size(833_088, 2_709_091),
        ..SWITCH
    },
    Scenario {
        name: "switch-neighbours",
        shows: "home-neighbours, owned by the switch (hard place 8)",
        programs: &[on(1, &[Read(0)]), on(1, &[Write(0)]), on(2, &[Write(0)])],
        sometimes: &[WaitedForNeighbour, UpgradedOverSharers, Recalled],
        size: size(80_273, 241_629),
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
        size: size(601_574, 2_121_289),
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
        size: size(635_772, 2_207_761),
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
];
