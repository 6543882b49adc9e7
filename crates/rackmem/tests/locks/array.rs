//! Arrays of locks, which nobody makes one by one.

use crate::{FABRICS, MODES, NODES, ROUGH, check_switch, rack};
use rackmem::locked::{
    Content, Entered, Guard, Mutex, Page, PageWriteGuard, Reading, RwLockArray, Writing,
};
use rackmem::{Fabric, LockError, Mode};
use std::time::Duration;

const LOCKS: usize = 64;
const PAGE: usize = 1024;
const LONG: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 100;

/// Every word of a page says the same, and how often writers were inside.
fn count(held: &mut PageWriteGuard<'_>) -> u64 {
    let mut view = held.view_mut(PAGE);
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
                                let mut held = locks.write(index).unwrap();
                                assert_eq!(held.content(), Content::Current);
                                count(&mut held);
                            }
                        });
                    }
                });
                let node = rack.node(0);
                let locks = RwLockArray::attach(&node, addr, LOCKS, PAGE).unwrap();
                let sum: u64 = (0..LOCKS)
                    .map(|index| locks.read(index).unwrap().view().u64(PAGE - 8))
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
    let both = (here.read_within(0, LONG).unwrap(), there.read(0).unwrap());
    assert!(both.0.is_some());
    let short = Duration::from_millis(5);
    assert!(here.write_within(0, short).unwrap().is_none());
    assert!(here.try_write(0).unwrap().is_none());
    drop(both);
    let alone = here.write_within(0, LONG).unwrap();
    assert!(alone.is_some());
    assert!(there.read_within(0, short).unwrap().is_none());
    assert!(there.try_read(0).unwrap().is_none());
}

/// Tokens are guards without a borrow: what has them is inside until it gives them back, wherever
/// they are kept meanwhile.
#[test]
fn tokens_keep_their_locks_until_they_are_given_back() {
    let rack = rack(Fabric::Udp, Mode::Switch, None);
    let addr = rack
        .node(0)
        .alloc_bytes(LOCKS * RwLockArray::STRIDE)
        .unwrap();
    let [here, there] =
        [0, 1].map(|id| RwLockArray::attach(&rack.node(id), addr, LOCKS, PAGE).unwrap());
    let enter = |index| here.enter::<Writing>(index, LONG).unwrap().unwrap();
    let mut all: Vec<Entered<Writing>> = (0..LOCKS).map(enter).collect();
    for (index, entered) in all.iter_mut().enumerate() {
        assert_eq!(entered.index(), index);
        assert_eq!(entered.content(), Content::Current);
        let mut view = here.view_mut(entered, 8);
        view.set_u64(0, index as u64);
        assert!(view.grow(PAGE) && !view.grow(PAGE + 1));
        view.set_u64(PAGE - 8, index as u64);
        assert_eq!(here.view(entered).u64(PAGE - 8), index as u64);
        here.trim(entered, 8);
    }
    for (index, entered) in all.into_iter().enumerate() {
        assert!(there.try_read(index).unwrap().is_none());
        assert!(
            there
                .enter::<Reading>(index, Duration::ZERO)
                .unwrap()
                .is_none()
        );
        // Any thread may leave.
        std::thread::scope(|scope| scope.spawn(|| here.leave(entered)).join().unwrap());
        let entered = there.enter::<Reading>(index, LONG).unwrap().unwrap();
        assert_eq!(there.view(&entered).u64(0), index as u64);
        assert_eq!(there.view(&entered).u64(PAGE - 8), 0, "it was trimmed");
        there.leave(entered);
    }
}

/// Otherwise the holder of one page could write another.
#[test]
#[should_panic(expected = "the token of one array, used with another")]
fn the_token_of_one_array_opens_no_other() {
    let rack = rack(Fabric::Inline, Mode::HomeOnly, None);
    let node = rack.node(0);
    let [one, other] = [0, 1].map(|_| {
        let addr = node.alloc_bytes(RwLockArray::STRIDE).unwrap();
        RwLockArray::attach(&node, addr, 1, PAGE).unwrap()
    });
    drop(other.write(0).unwrap());
    let mut entered = one.enter::<Writing>(0, LONG).unwrap().unwrap();
    one.view_mut(&mut entered, 8).set_u64(0, 1);
    other.view_mut(&mut entered, 8).set_u64(0, 1);
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
    assert!(all[0].write(most - 1).is_ok());
    for (len, off) in [(0, 0), (12, 0), (65_544, 0), (8, 8)] {
        let bad = RwLockArray::attach(&node, addr + off, 1, len);
        assert!(
            matches!(bad, Err(LockError::BadShape { .. })),
            "{len} {off}"
        );
    }
}

/// Fills a page up to a length with what the round says, and asks for as much memory.
fn fill(held: &mut PageWriteGuard<'_>, words: usize, round: u64) {
    let mut view = held.view_mut(words * 8);
    for at in 1..words {
        view.set_u64(at * 8, round);
    }
    view.set_u64(0, round << 16 | words as u64);
    held.trim(words * 8);
}

/// Reads what somebody has filled.
fn filled<A>(held: &Guard<'_, Page, A>) -> u64 {
    let view = held.view();
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
                        filled(&locks.read(index).unwrap());
                        let mut held = locks.write(index).unwrap();
                        let last = filled(&held);
                        // From most of a page to next to nothing, and back.
                        let words = 1 + (last as usize * 197 + id * 31) % 511;
                        fill(&mut held, words, last + 1);
                    }
                });
            }
        });
        let locks = RwLockArray::attach(&rack.node(1), addr, 2, 4096).unwrap();
        for index in 0..2 {
            let held = locks.read(index).unwrap();
            assert_eq!(filled(&held), ROUNDS / 2 * NODES as u64);
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
    let read = |id: usize| (0..PAGES).for_each(|index| drop(arrays[id].read(index).unwrap()));
    let write = |id: usize| {
        for index in 0..PAGES {
            let mut held = arrays[id].write(index).unwrap();
            held.view_mut(100).write(0, &[id as u8; 100]);
        }
    };
    write(1);
    read(0);
    read(2);
    write(2);
    read(1);
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
