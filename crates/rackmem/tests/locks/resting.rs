//! Homes and other nodes forget locks of which nobody keeps anything,
//! and the locks go on as if they had not.

use crate::{FABRICS, MODES, NODES, ROUGH, rack, until};
use rackmem::locked::{PageWriteGuard, RwLockArray};
use rackmem::{Fabric, Mode, Node};
use std::time::Duration;

const LOCKS: usize = 256;
const PAGE: usize = 256;
const LONG: Duration = Duration::from_secs(60);

fn hold(locks: &RwLockArray, index: usize) -> PageWriteGuard<'_> {
    let held = locks.write_within(index, LONG).unwrap();
    held.unwrap_or_else(|| panic!("lock {index} does not come"))
}

/// One more than what is found there.
fn add(locks: &RwLockArray, index: usize) -> u64 {
    let mut held = hold(locks, index);
    let mut page = held.view_mut(8);
    let sum = page.u64(0) + 1;
    page.set_u64(0, sum);
    sum
}

/// The home has all of them, as nobody has ever written them, and all nodes forget them.
fn forget(locks: [RwLockArray; NODES], nodes: &[Node]) {
    for index in 0..LOCKS {
        hold(&locks[0], index).trim(0);
        locks[0].tell_home(index);
    }
    drop(locks);
    nodes.iter().for_each(|node| {
        node.forget_locks();
    });
}

#[test]
fn what_a_home_forgets_goes_on_where_it_was() {
    for (fabric, mode) in FABRICS.iter().flat_map(|f| MODES.map(|m| (*f, m))) {
        for faults in [None, Some(ROUGH)] {
            if faults.is_some() && fabric == Fabric::Inline {
                continue;
            }
            let rack = rack(fabric, mode, faults);
            let home = rack.node(0);
            let addr = home.alloc_bytes(LOCKS * RwLockArray::STRIDE).unwrap();
            let attach = |id| RwLockArray::attach(&rack.node(id), addr, LOCKS, PAGE).unwrap();
            for round in 0..4 {
                let locks = [0, 1, 2].map(attach);
                // Who has it first, second and third differs from lock to lock,
                // and from round to round.
                for index in 0..LOCKS {
                    for nth in 0..NODES {
                        let sum = add(&locks[(nth + index + round) % NODES], index);
                        assert_eq!(sum, nth as u64 + 1, "{fabric:?} {mode:?} {round} {index}");
                    }
                }
                // A late copy of a request is served, too: then its node has the lock once more.
                let mut locks = Some(locks);
                until(|| {
                    forget(
                        locks.take().unwrap_or_else(|| [0, 1, 2].map(attach)),
                        rack.nodes(),
                    );
                    rack.nodes().iter().all(|n| {
                        let (known, memory) = (n.lock_metrics().known, n.lock_memory());
                        known == 0 && memory.kept + memory.kept_home == 0
                    })
                });
                for node in rack.nodes() {
                    let memory = node.lock_memory();
                    assert!(memory.remembered <= LOCKS * 8, "{memory:?}");
                }
            }
        }
    }
}

#[test]
fn a_lock_that_is_written_or_of_which_there_is_a_handle_stays() {
    let rack = rack(Fabric::Inline, Mode::Switch, None);
    let home = rack.node(0);
    let addr = home.alloc_bytes(LOCKS * RwLockArray::STRIDE).unwrap();
    let locks = RwLockArray::attach(&home, addr, LOCKS, PAGE).unwrap();
    for index in 0..LOCKS {
        add(&locks, index);
        if index % 2 == 0 {
            hold(&locks, index).trim(0);
        }
    }
    home.forget_locks();
    assert_eq!(home.lock_metrics().known, LOCKS);
    drop(locks);
    home.forget_locks();
    assert_eq!(home.lock_metrics().known, LOCKS / 2);
    let locks = RwLockArray::attach(&rack.node(1), addr, LOCKS, PAGE).unwrap();
    for index in 0..LOCKS {
        assert_eq!(add(&locks, index), 1 + index as u64 % 2);
    }
}
