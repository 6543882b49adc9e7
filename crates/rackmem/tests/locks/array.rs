//! Arrays of locks, which nobody makes one by one.

use crate::{FABRICS, MODES, NODES, ROUGH, check_switch, rack};
use rackmem::locked::{Access, Content, Mutex, RwLockArray};
use rackmem::{Fabric, LockError, Mode};
use std::time::Duration;

const LOCKS: usize = 64;
const PAGE: usize = 1024;
const LONG: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 100;

/// Every word of a page says the same, and how often writers were inside.
fn count(locks: &RwLockArray, index: usize) -> u64 {
    let mut view = locks.view_mut(index);
    let old = view.u64(0);
    for at in (0..PAGE).step_by(8) {
        assert_eq!(view.u64(at), old);
        view.set_u64(at, old + 1);
    }
    old
}

#[test]
fn pages_are_everybodys_though_their_home_never_looked_at_them() {
    for fabric in FABRICS {
        for mode in MODES {
            for faults in [None, Some(ROUGH)] {
                if faults.is_some() && fabric == Fabric::Inline {
                    continue;
                }
                let rack = rack(fabric, mode, faults);
                let home = (NODES - 1) as u16;
                let addr = rack
                    .node(0)
                    .alloc_bytes_on(home, LOCKS * RwLockArray::STRIDE)
                    .unwrap();
                // Only the other nodes attach.
                std::thread::scope(|scope| {
                    for id in 0..NODES - 1 {
                        let node = rack.node(id);
                        scope.spawn(move || {
                            let locks = RwLockArray::attach(&node, addr, LOCKS, PAGE).unwrap();
                            for round in 0..ROUNDS {
                                let index = (round as usize * 7 + id) % LOCKS;
                                let entered = locks.enter(index, Access::Write, LONG);
                                assert_eq!(entered.unwrap(), Some(Content::Current));
                                count(&locks, index);
                                locks.leave(index, Access::Write);
                            }
                        });
                    }
                });
                let node = rack.node(0);
                let locks = RwLockArray::attach(&node, addr, LOCKS, PAGE).unwrap();
                let sum: u64 = (0..LOCKS)
                    .map(|index| {
                        locks.enter(index, Access::Read, LONG).unwrap().unwrap();
                        let count = locks.view(index).u64(PAGE - 8);
                        locks.leave(index, Access::Read);
                        count
                    })
                    .sum();
                assert_eq!(sum, ROUNDS * (NODES as u64 - 1), "{fabric:?} {mode:?}");
                check_switch(&rack);
            }
        }
    }
}

#[test]
fn whoever_is_not_let_in_in_time_is_told() {
    let rack = rack(Fabric::Inline, Mode::HomeOnly, None);
    let addr = rack.node(0).alloc_bytes(RwLockArray::STRIDE).unwrap();
    let [here, there] =
        [0, 1].map(|id| RwLockArray::attach(&rack.node(id), addr, 1, PAGE).unwrap());
    assert!(here.enter(0, Access::Read, LONG).unwrap().is_some());
    assert!(there.enter(0, Access::Read, LONG).unwrap().is_some());
    let short = Duration::from_millis(5);
    assert_eq!(here.enter(0, Access::Write, short).unwrap(), None);
    there.leave(0, Access::Read);
    here.leave(0, Access::Read);
    assert!(here.enter(0, Access::Write, LONG).unwrap().is_some());
    assert_eq!(there.enter(0, Access::Read, short).unwrap(), None);
    here.leave(0, Access::Write);
}

#[test]
fn a_node_has_room_for_a_whole_array_or_says_so_at_once() {
    let rack = rack(Fabric::Inline, Mode::HomeOnly, None);
    let node = rack.node(0);
    let attach = |addr, count| RwLockArray::attach(&node, addr, count, PAGE);
    let addr = node.alloc_bytes(1 << 20).unwrap();
    let most = match attach(addr, 1 << 22) {
        Err(LockError::TooManyLocks { most }) => most,
        other => panic!("{:?}", other.map(|_| ())),
    };
    // Whoever names an array once more needs no more room.
    let all: Vec<_> = (0..3).map(|_| attach(addr, most).unwrap()).collect();
    assert!(matches!(
        Mutex::create(&node, 0u64),
        Err(LockError::TooManyLocks { .. })
    ));
    assert!(all[0].enter(most - 1, Access::Write, LONG).is_ok());
    for (len, off) in [(0, 0), (12, 0), (65_544, 0), (8, 8)] {
        let bad = RwLockArray::attach(&node, addr + off, 1, len);
        assert!(
            matches!(bad, Err(LockError::BadShape { .. })),
            "{len} {off}"
        );
    }
}

/// Fills a page up to a length with what the round says, and asks for as much memory.
fn fill(locks: &RwLockArray, index: usize, words: usize, round: u64) {
    let mut view = locks.view_mut_of(index, words * 8);
    for at in 1..words {
        view.set_u64(at * 8, round);
    }
    view.set_u64(0, round << 16 | words as u64);
    locks.trim(index, words * 8);
}

/// Reads what somebody has filled.
fn filled(locks: &RwLockArray, index: usize) -> u64 {
    let view = locks.view(index);
    let (round, words) = (view.u64(0) >> 16, view.u64(0) as usize & 0xffff);
    for at in 1..words {
        assert_eq!(view.u64(at * 8), round, "word {at} of {words}");
    }
    round
}

#[test]
fn pages_that_grow_and_shrink_are_whole_wherever_they_are() {
    for fabric in FABRICS {
        let faults = (fabric != Fabric::Inline).then_some(ROUGH);
        let rack = rack(fabric, Mode::Switch, faults);
        let addr = rack.node(0).alloc_bytes(2 * RwLockArray::STRIDE).unwrap();
        std::thread::scope(|scope| {
            for id in 0..NODES {
                let node = rack.node(id);
                scope.spawn(move || {
                    let locks = RwLockArray::attach(&node, addr, 2, 4096).unwrap();
                    for round in 1..=ROUNDS {
                        let index = round as usize % 2;
                        locks.enter(index, Access::Read, LONG).unwrap().unwrap();
                        filled(&locks, index);
                        locks.leave(index, Access::Read);
                        locks.enter(index, Access::Write, LONG).unwrap().unwrap();
                        let last = filled(&locks, index);
                        // From most of a page to next to nothing, and back.
                        let words = 1 + (last as usize * 197 + id * 31) % 511;
                        fill(&locks, index, words, last + 1);
                        locks.leave(index, Access::Write);
                    }
                });
            }
        });
        let locks = RwLockArray::attach(&rack.node(1), addr, 2, 4096).unwrap();
        for index in 0..2 {
            locks.enter(index, Access::Read, LONG).unwrap().unwrap();
            assert_eq!(filled(&locks, index), ROUNDS / 2 * NODES as u64);
            locks.leave(index, Access::Read);
        }
    }
}

#[test]
fn a_page_takes_as_much_memory_as_is_used_wherever_it_is() {
    const PAGES: usize = 512;
    /// Of a lock without its page, and a page of 100 bytes.
    const EACH: usize = 432 + 128;
    let rack = rack(Fabric::Inline, Mode::HomeOnly, None);
    let addr = rack
        .node(0)
        .alloc_bytes(PAGES * RwLockArray::STRIDE)
        .unwrap();
    let arrays = [0, 1, 2].map(|id| {
        let node = rack.node(id);
        RwLockArray::attach(&node, addr, PAGES, 4096).unwrap()
    });
    let enter = |id: usize, access| {
        for index in 0..PAGES {
            arrays[id].enter(index, access, LONG).unwrap().unwrap();
            if access == Access::Write {
                arrays[id]
                    .view_mut_of(index, 100)
                    .write(0, &[id as u8; 100]);
            }
            arrays[id].leave(index, access);
        }
    };
    enter(1, Access::Write);
    enter(0, Access::Read);
    enter(2, Access::Read);
    enter(2, Access::Write);
    enter(1, Access::Read);
    for id in 0..NODES {
        let metrics = rack.node(id).lock_metrics();
        let kept = if id == 0 {
            metrics.kept_home
        } else {
            metrics.kept
        };
        assert_eq!(metrics.kept + metrics.kept_home, kept);
        assert!(kept > PAGES * 100 && kept <= PAGES * EACH, "{metrics:?}");
    }
}
