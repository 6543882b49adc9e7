//! Threads of several nodes under one lock.

use super::rack;
use rackmem::diagnostics::Faults;
use rackmem::{Fabric, Node, Rack};
use rackmem_bench::locks::{self, AnyLock, LockKind};
use rackmem_bench::system::System;
use std::time::Duration;

const WORDS: usize = 16;

fn get(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Every third entry reads, the others add one to every word.
fn work(node: &Node, addr: u64, entries: u64) -> u64 {
    let lock = AnyLock::attach(node, addr).unwrap();
    let mut writes = 0;
    for entry in 0..entries {
        let mut bytes = [0; WORDS * 8];
        if entry % 3 == 0 {
            lock.read().unwrap().read(0, &mut bytes).unwrap();
            let words = get(&bytes);
            assert!(
                words.iter().all(|word| *word == words[0]),
                "torn: {words:?}"
            );
            continue;
        }
        let mut held = lock.write().unwrap();
        held.read(0, &mut bytes).unwrap();
        for (at, word) in get(&bytes).into_iter().enumerate() {
            held.write(at * 8, &(word + 1).to_le_bytes()).unwrap();
        }
        writes += 1;
    }
    writes
}

fn contend(rack: &Rack, kind: LockKind, entries: u64) {
    let made = AnyLock::create(&rack.node(0), WORDS * 8).unwrap();
    assert_eq!(made.kind(), kind);
    let writes = std::thread::scope(|scope| {
        let threads = (0..6).map(|nth| {
            let (node, addr) = (rack.node(nth % 3), made.addr());
            scope.spawn(move || work(&node, addr, entries))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum::<u64>()
    });
    let mut bytes = [0; WORDS * 8];
    made.read().unwrap().read(0, &mut bytes).unwrap();
    assert_eq!(get(&bytes), [writes; WORDS], "{}", kind.name());
}

#[test]
fn writers_are_alone_and_readers_see_what_the_last_one_left() {
    for (kind, _) in LockKind::ALL {
        for mode in [System::Switch, System::Directory] {
            contend(&rack(Fabric::Inline, mode, kind), kind, 120);
        }
        for fabric in [Fabric::Udp, Fabric::Shm] {
            contend(&rack(fabric, System::Switch, kind), kind, 30);
        }
    }
}

#[test]
fn the_service_lives_with_a_network_that_loses_and_doubles() {
    let faults = Faults {
        loss: 0.03,
        duplication: 0.03,
        delay: 0.03,
        delay_up_to: Duration::from_millis(1),
        ..Faults::NONE
    };
    let rack = Rack::builder(3)
        .fabric(Fabric::Udp)
        .guests(locks::guests(LockKind::Service))
        .faults(faults)
        .memory(64 << 20)
        .build()
        .unwrap();
    contend(&rack, LockKind::Service, 40);
}

#[test]
fn more_threads_than_a_node_has_places_take_turns() {
    for kind in [LockKind::Mcs, LockKind::Cohort, LockKind::Service] {
        let rack = rack(Fabric::Inline, System::Switch, kind);
        let made = AnyLock::create(&rack.node(0), WORDS * 8).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                let (node, addr) = (rack.node(1), made.addr());
                scope.spawn(move || work(&node, addr, 6));
            }
        });
        let mut bytes = [0; WORDS * 8];
        made.read().unwrap().read(0, &mut bytes).unwrap();
        assert_eq!(get(&bytes)[0], 20 * 4);
    }
}
