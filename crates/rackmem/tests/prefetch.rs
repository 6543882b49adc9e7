//! Copies that come before they are read, several at a time.

use rackmem::locked::BlockLock;
use rackmem::{Contract, Fabric, Mode, Node, Rack, RegionSpec};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);
const BLOCK: usize = 512;
const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Shm, Fabric::Udp];
const MODES: [Mode; 2] = [Mode::Switch, Mode::HomeOnly];

fn rack(fabric: Fabric, mode: Mode, blocks: usize) -> Rack {
    let rack = Rack::builder(3).fabric(fabric).mode(mode);
    let rack = rack.block_size(BLOCK).cache(blocks * BLOCK);
    rack.patience(LONG).build().unwrap()
}

/// Blocks of all three homes, in turns.
fn blocks(rack: &Rack, count: usize) -> Vec<u64> {
    let block = |nth| rack.node(nth % 3).alloc_bytes(BLOCK).unwrap();
    (0..count).map(block).collect()
}

/// Asks until so many are here: what others have just used may be locked for a moment longer.
fn bring(node: &Node, addrs: &[u64], wanted: usize) {
    let began = Instant::now();
    loop {
        let here = node.prefetch(addrs);
        if here == wanted {
            return;
        }
        assert!(
            here < wanted && began.elapsed() < LONG,
            "{here} of {wanted}"
        );
    }
}

fn everywhere(claim: impl Fn(Fabric, Mode)) {
    for (fabric, mode) in FABRICS
        .iter()
        .flat_map(|fabric| MODES.map(|mode| (*fabric, mode)))
    {
        eprintln!("{fabric:?} {mode:?}");
        claim(fabric, mode);
    }
}

#[test]
fn what_was_prefetched_is_read_without_a_packet() {
    everywhere(|fabric, mode| {
        let rack = rack(fabric, mode, 256);
        let addrs = blocks(&rack, 50);
        // At home, with a copy elsewhere, and changed elsewhere; by turns.
        for (nth, addr) in addrs.iter().enumerate() {
            rack.node(nth / 3 % 3).store(*addr, nth as u64 + 1).unwrap();
        }
        let reader = rack.node(2);
        // What is asked for twice comes once.
        let twice = [&addrs[..], &addrs[..]].concat();
        bring(&reader, &twice, 100);
        let missed = || reader.metrics().events.total();
        let before = missed();
        for (nth, addr) in addrs.iter().enumerate() {
            assert_eq!(reader.load(*addr).unwrap(), nth as u64 + 1);
        }
        assert_eq!(missed(), before);
        assert_eq!(reader.prefetch(&addrs), 50);
        assert_eq!(missed(), before);
    });
}

#[test]
fn what_others_have_locked_is_left_out_and_nobody_waits_for_it() {
    everywhere(|fabric, mode| {
        let rack = rack(fabric, mode, 256);
        let addrs = blocks(&rack, 30);
        let locks = addrs.iter().step_by(10);
        let locks: Vec<_> = locks
            .map(|addr| BlockLock::attach(&rack.node(0), *addr).unwrap())
            .collect();
        let held: Vec<_> = locks.iter().map(|lock| lock.write().unwrap()).collect();
        // Who waited for them would wait for as long as a test may take.
        bring(&rack.node(1), &addrs, 27);
        drop(held);
        bring(&rack.node(1), &addrs, 30);
    });
}

#[test]
fn what_is_no_memory_is_left_out_and_the_rest_comes() {
    let rack = rack(Fabric::Udp, Mode::HomeOnly, 256);
    let addrs = blocks(&rack, 9);
    let spec = RegionSpec::new("bounded", 4096).contract(Contract::Bounded);
    let bounded = rack.node(0).create_region(&spec).unwrap().addr();
    let nowhere = [u64::MAX, addrs[0] | 1 << 60, bounded];
    let all = [&nowhere[..], &addrs[..], &nowhere[..]].concat();
    let reader = rack.node(1);
    assert_eq!(reader.prefetch(&nowhere), 0);
    bring(&reader, &all, 9);
    assert_eq!(reader.prefetch(&[]), 0);
}

#[test]
fn what_has_no_room_makes_some_and_loses_nothing() {
    everywhere(|fabric, mode| {
        let rack = rack(fabric, mode, 32);
        let addrs = blocks(&rack, 300);
        let node = rack.node(1);
        for (nth, addr) in addrs.iter().enumerate() {
            node.store(*addr, nth as u64).unwrap();
        }
        // What leaves for it is changed, and goes home; and then what has come leaves.
        assert!((1..=32).contains(&node.prefetch(&addrs)));
        assert!((1..=32).contains(&node.prefetch(&addrs)));
        bring(&node, &addrs[100..108], 8);
        for (nth, addr) in addrs.iter().enumerate() {
            assert_eq!(rack.node(2).load(*addr).unwrap(), nth as u64);
        }
    });
}

/// Threads of two nodes bring the same blocks, from either end, while a third node adds to them.
#[test]
fn who_prefetches_holds_nobody_up_and_sees_no_older_value() {
    const ROUNDS: u64 = 100;
    everywhere(|fabric, mode| {
        // Some of them have to leave for others.
        let rack = rack(fabric, mode, 32);
        let addrs = blocks(&rack, 40);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (node, mut addrs, over) = (rack.node(1 + thread % 2), addrs.clone(), &over);
                if thread < 2 {
                    addrs.reverse();
                }
                scope.spawn(move || {
                    let mut seen = vec![0; addrs.len()];
                    while !over.load(Relaxed) {
                        node.prefetch(&addrs);
                        for (addr, seen) in addrs.iter().zip(&mut seen) {
                            let now = node.load(*addr).unwrap();
                            assert!(*seen <= now);
                            *seen = now;
                        }
                    }
                });
            }
            for _ in 0..ROUNDS {
                for addr in &addrs {
                    rack.node(0).fetch_add(*addr, 1).unwrap();
                }
            }
            over.store(true, Relaxed);
        });
        for addr in &addrs {
            assert_eq!(rack.node(2).load(*addr).unwrap(), ROUNDS);
        }
    });
}
