//! What nodes keep of locks counts under their cache: the coldest are given up,
//! and nothing is lost.

use crate::{FABRICS, MODES, NODES, check_switch, rack, until};
use rackmem::locked::{Mutex, RwLockArray};
use rackmem::{Fabric, Mode, Rack};
use std::time::Duration;

/// Four times the cache of a node.
const PAGES: usize = 1024;
const LEN: usize = 4096;
const CACHE: usize = 1 << 20;
/// What may be kept beyond it until the hand has been round.
const SLACK: usize = 64 * (LEN + 512);
const ROUNDS: usize = 3000;
const LONG: Duration = Duration::from_secs(60);

fn arrays(rack: &Rack) -> [RwLockArray; NODES] {
    let addr = rack
        .node(0)
        .alloc_bytes(PAGES * RwLockArray::STRIDE)
        .unwrap();
    [0, 1, 2].map(|id| RwLockArray::attach(&rack.node(id), addr, PAGES, LEN).unwrap())
}

fn bound(rack: &Rack) {
    for id in [1, 2] {
        until(|| rack.node(id).lock_memory().kept <= CACHE + SLACK);
        assert!(rack.node(id).lock_memory().given_up > 0);
    }
}

#[test]
fn nodes_keep_what_there_is_room_for_and_lose_nothing() {
    for (fabric, mode) in FABRICS.iter().flat_map(|f| MODES.map(|m| (*f, m))) {
        let rack = rack(fabric, mode, None);
        let arrays = arrays(&rack);
        for round in 0..2u64 {
            for index in 0..PAGES {
                let held = arrays[1].write_within(index, LONG).unwrap();
                let mut held = held.expect("the lock comes");
                let value = [index as u64, round].map(u64::to_le_bytes).concat();
                let mut page = held.view_mut(LEN);
                page.write(0, &value);
                page.write(LEN - 16, &value);
            }
            for (id, array) in [2, 1, 2].map(|id| (id, &arrays[id])) {
                for index in 0..PAGES {
                    let held = array.read_within(index, LONG).unwrap();
                    let held = held.expect("the lock comes");
                    let page = held.view();
                    for at in [0, LEN - 16] {
                        assert_eq!(page.u64(at), index as u64, "{fabric:?} {mode:?} {id}");
                        assert_eq!(page.u64(at + 8), round);
                    }
                }
                bound(&rack);
            }
        }
        check_switch(&rack);
    }
}

/// Threads of all nodes meet at locks that nodes give up all the time.
#[test]
fn every_addition_counts_while_locks_are_given_up() {
    for (fabric, mode) in [
        (Fabric::Inline, Mode::HomeOnly),
        (Fabric::Shm, Mode::Switch),
        (Fabric::Udp, Mode::Switch),
    ] {
        let rack = rack(fabric, mode, None);
        let arrays = arrays(&rack);
        std::thread::scope(|scope| {
            for (id, array) in arrays.iter().enumerate() {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(id as u64);
                    for _ in 0..ROUNDS {
                        // Some meet all the time, most hardly ever.
                        let all = [PAGES, 4][usize::from(random.u8(..4) == 0)];
                        let index = random.usize(..all);
                        let held = array.write_within(index, LONG).unwrap();
                        let mut held = held.expect("the lock comes");
                        let mut page = held.view_mut(LEN);
                        let (first, last) = (page.u64(0), page.u64(LEN - 8));
                        assert_eq!(first, last);
                        page.set_u64(0, first + 1);
                        page.set_u64(LEN - 8, last + 1);
                    }
                });
            }
        });
        let sum: u64 = (0..PAGES)
            .map(|index| {
                let held = arrays[0].read_within(index, LONG).unwrap();
                held.expect("the lock comes").view().u64(0)
            })
            .sum();
        assert_eq!(sum, (NODES * ROUNDS) as u64, "{fabric:?}");
        bound(&rack);
    }
}

/// A lock that a program holds on to is given up like any other,
/// and is whole when the program comes back to it.
#[test]
fn locks_that_programs_hold_handles_of_are_given_up_too() {
    let rack = rack(Fabric::Udp, Mode::Switch, None);
    let made: Vec<Mutex<[u64; 1024]>> = (0..400)
        .map(|n| Mutex::create(&rack.node(0), [n; 1024]).unwrap())
        .collect();
    let far: Vec<Mutex<[u64; 1024]>> = made
        .iter()
        .map(|mutex| Mutex::attach(&rack.node(1), mutex.addr()).unwrap())
        .collect();
    for round in 0..2 {
        for (n, mutex) in far.iter().enumerate() {
            let mut held = mutex.lock().unwrap();
            assert_eq!(held.get(), [n as u64 + round; 1024]);
            held.update(|words| words.map(|word| word + 1));
        }
        until(|| rack.node(1).lock_memory().kept <= CACHE + SLACK);
    }
    for (n, mutex) in made.iter().enumerate() {
        assert_eq!(mutex.lock().unwrap().get(), [n as u64 + 2; 1024]);
    }
}
