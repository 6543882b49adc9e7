//! Nobody is inside together with a writer, and what is seen inside is what the last writer left.

use crate::{FABRICS, MODES, NODES, ROUGH, check_switch, rack};
use rackmem::locked::{Mutex, RwLock};
use rackmem::{Fabric, Rack};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

/// Threads of each node.
const THREADS: usize = 2;
/// Words of a value: it travels in two packets.
const WORDS: usize = 200;

type Long = [u64; WORDS];

/// All words of a long value count the same: a torn one does not.
fn count(value: &Long) -> u64 {
    assert!(value.iter().all(|word| *word == value[0]), "torn");
    value[0]
}

fn writers(rack: &Rack, turns: usize) {
    let made: Mutex<Long> = Mutex::create(&rack.node(1), [0; WORDS]).unwrap();
    let inside = AtomicI64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..NODES * THREADS {
            let node = rack.node(thread % NODES);
            let (inside, addr) = (&inside, made.addr());
            scope.spawn(move || {
                let mutex: Mutex<Long> = Mutex::attach(&node, addr).unwrap();
                let mut last = 0;
                for _ in 0..turns {
                    let mut held = mutex.lock().unwrap();
                    assert_eq!(inside.fetch_add(1, SeqCst), 0, "two are inside");
                    assert!(held.token() >= last, "tokens never fall");
                    last = held.token();
                    let now = count(&held.get()) + 1;
                    held.set([now; WORDS]);
                    inside.fetch_sub(1, SeqCst);
                }
            });
        }
    });
    let turns = (NODES * THREADS * turns) as u64;
    assert_eq!(count(&made.lock().unwrap().get()), turns);
}

fn readers_and_writers(rack: &Rack, turns: usize) {
    let made: RwLock<Long> = RwLock::create(&rack.node(0), [0; WORDS]).unwrap();
    // Readers inside, or minus one for a writer; and what the last writer left.
    let (inside, left) = (AtomicI64::new(0), AtomicU64::new(0));
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..NODES * THREADS {
            let node = rack.node(thread % NODES);
            let (inside, left, written, addr) = (&inside, &left, &written, made.addr());
            scope.spawn(move || {
                let lock: RwLock<Long> = RwLock::attach(&node, addr).unwrap();
                let mut rng = fastrand::Rng::with_seed(thread as u64);
                for _ in 0..turns {
                    let at_least = left.load(SeqCst);
                    if rng.u8(..4) == 0 {
                        let mut held = lock.write().unwrap();
                        assert_eq!(inside.fetch_sub(1, SeqCst), 0, "beside a writer");
                        let before = count(&held.get());
                        assert_eq!(before, left.load(SeqCst));
                        held.update(|value| value.map(|word| word + 1));
                        left.store(before + 1, SeqCst);
                        written.fetch_add(1, SeqCst);
                        inside.fetch_add(1, SeqCst);
                    } else {
                        let held = lock.read().unwrap();
                        assert!(inside.fetch_add(1, SeqCst) >= 0, "a writer is inside");
                        let seen = count(&held.get());
                        assert!(seen >= at_least, "older than the last release");
                        inside.fetch_sub(1, SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(count(&made.read().unwrap().get()), written.into_inner());
}

/// On good networks, and on bad ones.
fn everywhere(play: impl Fn(&Rack, usize)) {
    for mode in MODES {
        for fabric in FABRICS {
            let rack = rack(fabric, mode, None);
            play(&rack, if fabric == Fabric::Inline { 4000 } else { 200 });
            check_switch(&rack);
        }
        for fabric in [Fabric::Udp, Fabric::Shm] {
            let rack = rack(fabric, mode, Some(ROUGH));
            play(&rack, 80);
            assert!(rack.faults().unwrap().counts().lost > 0);
            check_switch(&rack);
        }
    }
}

#[test]
fn writers_exclude_each_other() {
    everywhere(writers);
}

#[test]
fn writers_exclude_readers() {
    everywhere(readers_and_writers);
}
