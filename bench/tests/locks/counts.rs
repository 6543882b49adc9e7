//! What a hand-over costs, counted: coherence transactions of the nodes, or messages.

use super::{layered, rack};
use rackmem::diagnostics::Kind;
use rackmem::{Fabric, Rack};
use rackmem_bench::locks::{AnyLock, LockKind, Progress, Steps};
use rackmem_bench::system::System;
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;

fn transactions(rack: &Rack) -> u64 {
    rack.metrics().events().misses()
}

/// Transactions of one hand-over between two nodes that write in strict turn: in all, and from the
/// moment that the holder begins to leave to that when the other is inside.
fn hand_over(rack: &Rack, from: &mut Steps<'_>, to: &mut Steps<'_>) -> (u64, u64) {
    let began = transactions(rack);
    to.enter(true);
    assert_eq!(to.run().unwrap(), Progress::Waits);
    let leaves = transactions(rack);
    from.leave();
    let mut inside = None;
    loop {
        let left = from.step().unwrap() == Progress::Outside;
        if to.run().unwrap() == Progress::Inside && inside.is_none() {
            inside = Some(transactions(rack));
        }
        if left {
            break;
        }
    }
    let inside = inside.expect("who leaves lets the next one in");
    (transactions(rack) - began, inside - leaves)
}

fn counted(kind: LockKind, mode: System) -> (u64, u64) {
    let rack = rack(Fabric::Inline, mode, kind);
    let made = AnyLock::create(&rack.node(0), BLOCK).unwrap();
    let locks = [1, 2].map(|node| AnyLock::attach(&rack.node(node), made.addr()).unwrap());
    let mut steps = locks.each_ref().map(|lock| lock.steps().unwrap());
    steps[0].enter(true);
    assert_eq!(steps[0].run().unwrap(), Progress::Inside);
    let mut counts = Vec::new();
    for _ in 0..6 {
        let [from, to] = &mut steps;
        counts.push(hand_over(&rack, from, to));
        steps.swap(0, 1);
    }
    // What each node has not touched before costs more, once.
    let steady = counts.split_off(3);
    assert!(steady.iter().all(|count| *count == steady[0]), "{steady:?}");
    steady[0]
}

#[test]
fn a_strict_hand_over_costs_what_each_lock_is_known_for() {
    for (kind, all, critical) in [
        (LockKind::Mcs, 5, 3),
        (LockKind::Central, 4, 3),
        // Three nodes' indicators.
        (LockKind::PerNode, 6, 5),
        (LockKind::Cohort, 3, 2),
        (LockKind::Service, 0, 0),
    ] {
        for mode in [System::Switch, System::HomeOnly, System::Directory] {
            assert_eq!(
                counted(kind, mode),
                (all, critical),
                "{} {mode:?}",
                kind.name()
            );
        }
    }
}

#[test]
fn what_a_lock_protects_is_one_transaction_more_for_each_block() {
    for kind in layered() {
        let rack = rack(Fabric::Inline, System::Switch, kind);
        let made = AnyLock::create(&rack.node(0), BLOCK).unwrap();
        let locks = [1, 2].map(|node| AnyLock::attach(&rack.node(node), made.addr()).unwrap());
        let cost = |data: bool| {
            let round = || {
                for lock in &locks {
                    let mut held = lock.write().unwrap();
                    if data {
                        held.write(0, &[7; BLOCK]).unwrap();
                    }
                }
            };
            (0..3).for_each(|_| round());
            let before = transactions(&rack);
            (0..10).for_each(|_| round());
            transactions(&rack) - before
        };
        let (without, with) = (cost(false), cost(true));
        assert_eq!(with - without, 20, "{}", kind.name());
    }
}

#[test]
fn taken_again_where_it_was_a_lock_costs_no_transaction() {
    for kind in layered() {
        let rack = rack(Fabric::Inline, System::Switch, kind);
        let made = AnyLock::create(&rack.node(0), BLOCK).unwrap();
        let lock = AnyLock::attach(&rack.node(1), made.addr()).unwrap();
        // A ticket lock calls its tickets in one word after the other: a round for each node.
        for _ in 0..3 {
            lock.write().unwrap().write(0, &[7; BLOCK]).unwrap();
        }
        let before = transactions(&rack);
        for _ in 0..10 {
            lock.write().unwrap().write(0, &[7; BLOCK]).unwrap();
        }
        assert_eq!(transactions(&rack), before, "{}", kind.name());
    }
}

#[test]
fn the_service_costs_messages() {
    let rack = rack(Fabric::Inline, System::Switch, LockKind::Service);
    let made = AnyLock::create(&rack.node(0), 64).unwrap();
    let lock = AnyLock::attach(&rack.node(1), made.addr()).unwrap();
    let messages = || {
        let packets = rack.metrics().agent_packets();
        let count = |kind| {
            packets
                .0
                .iter()
                .find(|row| row.0 == kind)
                .map_or(0, |row| row.1)
        };
        (count(Kind::GuestAsk), count(Kind::GuestTell))
    };
    let before = messages();
    (0..10).for_each(|_| drop(lock.write().unwrap()));
    let after = messages();
    // To be let in and to leave, and an answer to each.
    assert_eq!((after.0 - before.0, after.1 - before.1), (20, 20));
    // The manager's own node sends nothing.
    (0..10).for_each(|_| drop(made.write().unwrap()));
    assert_eq!(messages(), after);
}

/// So many turns of two nodes, each of which waits in the queue before the other leaves.
fn take_turns(locks: &[AnyLock; 2], turns: u8) {
    std::thread::scope(|scope| {
        for lock in locks {
            scope.spawn(move || {
                for turn in 0..turns {
                    let mut held = lock.write().unwrap();
                    held.write(0, &[turn; BLOCK]).unwrap();
                    // The other one waits, unless it has had all its turns.
                    let began = Instant::now();
                    while turn + 1 < turns && lock.waiting().nodes == 0 {
                        assert!(began.elapsed() < Duration::from_secs(60), "nobody comes");
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
}

#[test]
fn gcp_needs_one_request_and_one_release_a_hand_over_with_the_data() {
    let rack = rack(Fabric::Inline, System::Switch, LockKind::Gcp);
    let made = AnyLock::create(&rack.node(0), BLOCK).unwrap();
    let locks = [1, 2].map(|node| AnyLock::attach(&rack.node(node), made.addr()).unwrap());
    let sum = || {
        let of = |node| rack.node(node).lock_metrics();
        [of(1), of(2)].map(|m| [m.granted, m.requests, m.releases])
    };
    let events = transactions(&rack);
    // Where threads are kept waiting for a processor they ask again, which is counted, too:
    // it is not always so.
    let exact = (0..50).any(|_| {
        // The second node has it from here on, and the first asks for it.
        locks.iter().for_each(|lock| drop(lock.write().unwrap()));
        let before = sum();
        take_turns(&locks, 10);
        let after = sum();
        let count = |at: usize| (0..2).map(|n| after[n][at] - before[n][at]).sum::<u64>();
        let [granted, requests, releases] = [0, 1, 2].map(count);
        // The one that has it may begin; then it asks once less.
        assert!((19..=20).contains(&granted), "{granted}");
        requests == granted && releases == granted
    });
    assert!(exact, "more than one request or release each");
    assert_eq!(transactions(&rack), events, "the data came with the lock");
}
