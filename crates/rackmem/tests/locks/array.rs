//! Arrays of locks, which nobody makes one by one.

use crate::{FABRICS, MODES, NODES, ROUGH, check_switch, rack};
use rackmem::locked::{Access, Content, Mutex, RwLockArray};
use rackmem::{Error, Fabric, Mode};
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
        Err(Error::TooManyLocks { most }) => most,
        other => panic!("{:?}", other.map(|_| ())),
    };
    // Whoever names an array once more needs no more room.
    let all: Vec<_> = (0..3).map(|_| attach(addr, most).unwrap()).collect();
    assert!(matches!(
        Mutex::create(&node, 0u64),
        Err(Error::TooManyLocks { .. })
    ));
    assert!(all[0].enter(most - 1, Access::Write, LONG).is_ok());
    for (len, off) in [(0, 0), (12, 0), (65_544, 0), (8, 8)] {
        let bad = RwLockArray::attach(&node, addr + off, 1, len);
        assert!(matches!(bad, Err(Error::BadRange { .. })), "{len} {off}");
    }
}
