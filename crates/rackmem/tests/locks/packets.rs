//! What locks cost, counted.

use crate::{MODES, check_switch, rack};
use rackmem::locked::{LockMetrics, Mutex};
use rackmem::{Fabric, Mode};

#[test]
fn a_lock_that_stays_costs_no_packet() {
    let rack = rack(Fabric::Inline, Mode::Switch, None);
    let made: Mutex<u64> = Mutex::create(&rack.node(0), 0).unwrap();
    let far: Mutex<u64> = Mutex::attach(&rack.node(1), made.addr()).unwrap();
    far.lock().unwrap().set(1);
    let before = rack.node(1).lock_metrics();
    for _ in 0..1000 {
        far.lock().unwrap().update(|n| n + 1);
    }
    let after = rack.node(1).lock_metrics();
    let expected = LockMetrics {
        local: before.local + 1000,
        ..before
    };
    assert_eq!(after, expected);
    assert_eq!(made.lock().unwrap().get(), 1001);
}

#[test]
fn a_hand_over_is_one_request_and_one_release() {
    MODES.into_iter().for_each(count_hand_overs);
}

fn count_hand_overs(mode: Mode) {
    let rack = rack(Fabric::Inline, mode, None);
    let made: Mutex<[u64; 100]> = Mutex::create(&rack.node(0), [0; 100]).unwrap();
    let nodes = [rack.node(1), rack.node(2)];
    let handles = nodes
        .each_ref()
        .map(|node| Mutex::<[u64; 100]>::attach(node, made.addr()).unwrap());
    handles[0].lock().unwrap().set([1; 100]);
    let before = nodes.each_ref().map(|node| node.lock_metrics());
    for turn in 0..100 {
        let old = handles[(turn + 1) % 2]
            .lock()
            .unwrap()
            .update(|value| value.map(|word| word + 1));
        assert_eq!(old, [turn as u64 + 1; 100]);
    }
    for (node, before) in nodes.iter().zip(before) {
        let after = node.lock_metrics();
        assert_eq!(after.granted - before.granted, 50);
        assert_eq!(after.requests - before.requests, 50);
        assert_eq!(after.releases - before.releases, 50);
        assert_eq!((after.denied, after.local), (before.denied, before.local));
    }
    check_switch(&rack);
}
