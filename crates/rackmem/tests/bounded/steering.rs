//! Changes that are left to the owner of a partition: each is done once or not at all, whoever
//! asks, gives up or dies.

use crate::child::ChildTest;
use crate::processes::{CONFIG, LEASE, config, joined};
use crate::{FABRICS, LONG, rack};
use rackmem::bounded::{Partition, PartitionOwner};
use rackmem::{Config, ErrorKind, Fabric, Rack, RegionError, SteerError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

type Asks = Partition<u64, u64>;
type Owns = PartitionOwner<u64, u64>;

const NAME: &str = "prices/0";
/// How long an owner waits before it looks whether the test is over.
const TURN: Duration = Duration::from_millis(20);

/// An owner that adds, and answers with the sum, until it is told that the test is over.
fn add(owner: &mut Owns, over: &AtomicBool) -> u64 {
    let mut sum = 0;
    while !over.load(SeqCst) {
        let served = owner.serve(TURN, |by| {
            sum += by;
            sum
        });
        served.unwrap();
    }
    sum
}

#[test]
fn what_all_nodes_leave_to_the_owner_is_done_once_and_in_order() {
    // More threads than there are trays.
    const THREADS: usize = 12;
    const EACH: u64 = 50;
    for fabric in FABRICS {
        let rack = rack(fabric, 2);
        let mut owner = Owns::own(&rack.node(0), NAME).unwrap();
        let over = AtomicBool::new(false);
        let sum = std::thread::scope(|threads| {
            let sum = threads.spawn(|| add(&mut owner, &over));
            let asking: Vec<_> = (0..2 * THREADS)
                .map(|thread| {
                    let node = rack.node(thread % 2);
                    threads.spawn(move || {
                        let asks = Asks::named(&node, NAME).unwrap();
                        let mut last = 0;
                        for _ in 0..EACH {
                            let sum = asks.steer(&1).unwrap();
                            assert!(sum > last, "{fabric:?}");
                            last = sum;
                        }
                    })
                })
                .collect();
            let asked: Vec<_> = asking.into_iter().map(|one| one.join()).collect();
            over.store(true, SeqCst);
            assert!(asked.iter().all(Result::is_ok));
            sum.join().unwrap()
        });
        assert_eq!(sum, 2 * THREADS as u64 * EACH, "{fabric:?}");
    }
}

#[test]
fn a_partition_has_one_owner_and_one_kind_of_requests() {
    for fabric in FABRICS {
        let rack = rack(fabric, 2);
        let node = |n| rack.node(n);
        let none = Asks::named(&node(1), NAME);
        assert!(matches!(none, Err(SteerError::NoOwner { name }) if name == NAME));
        let mut owner = Owns::own(&node(1), NAME).unwrap();
        for asking in [0, 1] {
            let second = Owns::own(&node(asking), NAME);
            assert!(matches!(second, Err(SteerError::Owned { by: 1, .. })));
            let other = Partition::<u64, [u64; 2]>::named(&node(asking), NAME);
            let other = other.map(drop).unwrap_err();
            assert!(matches!(
                other,
                SteerError::Region(RegionError::Mismatch { .. })
            ));
            assert_eq!(other.kind(), ErrorKind::Mismatch);
        }
        assert_eq!(owner.serve(Duration::ZERO, |by| by), Ok(0));
        let before = Asks::named(&node(0), NAME).unwrap();
        drop(owner);
        // Again and again: what a partition takes is given back.
        for turn in 0..50 {
            let mut owner = Owns::own(&node(turn % 2), NAME).unwrap();
            std::thread::scope(|threads| {
                let asks = Asks::named(&node(0), NAME).unwrap();
                let asked = threads.spawn(move || asks.steer(&3));
                while owner.serve(TURN, |by| by + 1).unwrap() == 0 {}
                assert_eq!(asked.join().unwrap(), Ok(4));
            });
        }
        let gone = before.steer(&1).unwrap_err();
        assert!(matches!(gone, SteerError::NoOwner { .. }), "{gone}");
    }
}

#[test]
fn who_waits_for_an_owner_that_gives_up_hears_of_it() {
    for fabric in FABRICS {
        let rack = rack(fabric, 2);
        let mut owner = Owns::own(&rack.node(0), NAME).unwrap();
        std::thread::scope(|threads| {
            let asking: Vec<_> = (0..20)
                .map(|thread| {
                    let node = rack.node(thread % 2);
                    threads.spawn(move || Asks::named(&node, NAME).unwrap().steer(&1))
                })
                .collect();
            // Some are in trays, and others wait for one.
            let mut done = 0;
            while done == 0 {
                done = owner.serve(TURN, |by| by).unwrap();
            }
            // All who will ask have found it: the rest is told.
            std::thread::sleep(TURN);
            drop(owner);
            let mut answered = 0;
            for one in asking {
                match one.join() {
                    Ok(Ok(1)) => answered += 1,
                    Ok(Err(SteerError::Unanswered { .. } | SteerError::NoOwner { .. })) => {}
                    // It came when there was no owner any more.
                    Err(_) => {}
                    other => panic!("{fabric:?} {other:?}"),
                }
            }
            // Answers that were not fetched yet have gone with the trays.
            assert!(answered <= done, "{fabric:?}: {answered} of {done}");
        });
    }
}

#[test]
fn a_panic_of_the_owner_is_an_answer_that_nobody_knows() {
    let rack = rack(Fabric::Inline, 2);
    let mut owner = Owns::own(&rack.node(0), NAME).unwrap();
    std::thread::scope(|threads| {
        let asks = Asks::named(&rack.node(1), NAME).unwrap();
        let asked = threads.spawn(move || [asks.steer(&1), asks.steer(&2)]);
        let panics =
            AssertUnwindSafe(|| while owner.serve(TURN, |_| panic!("on purpose")) == Ok(0) {});
        assert!(catch_unwind(panics).is_err());
        while owner.serve(TURN, |by| by).unwrap() == 0 {}
        let [first, second] = asked.join().unwrap();
        assert!(matches!(first, Err(SteerError::Unanswered { .. })));
        assert_eq!(second, Ok(2));
    });
}

/// Not a test but the process that another one starts: node 1, which asks until it is killed.
#[test]
fn asking_process() {
    let Some(rack) = joined() else {
        return;
    };
    let asks = Asks::named(&rack.node(1), NAME).unwrap();
    eprintln!("asks");
    loop {
        asks.steer(&1).unwrap();
    }
}

/// Not a test but the process that another one starts: node 1, which owns until it is killed.
#[test]
fn owning_process() {
    let Some(rack) = joined() else {
        return;
    };
    let mut owner = Owns::own(&rack.node(1), NAME).unwrap();
    eprintln!("owns");
    add(&mut owner, &AtomicBool::new(false));
}

#[test]
fn who_dies_while_it_asks_holds_nobody_up() {
    for fabric in ["shm", "udp"] {
        let (text, _folder) = config("asks", fabric, [LONG, LEASE]);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let mut owner = Owns::own(&rack.node(0), NAME).unwrap();
        let (over, mine) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let mut sum = 0;
                while !over.load(SeqCst) {
                    // The lock may be away with a node that has just been killed.
                    let _ = owner.serve(TURN, |by| {
                        sum += by;
                        mine.fetch_add(u64::from(by == 2), SeqCst);
                        sum
                    });
                }
            });
            for _ in 0..3 {
                let mut child = ChildTest::start("steering::asking_process", (CONFIG, &text));
                assert_eq!(child.line(), "asks");
                std::thread::sleep(Duration::from_millis(50));
                child.signal("-KILL");
                let asks = Asks::named(&rack.node(0), NAME).unwrap();
                let end = Instant::now() + LONG;
                let (before, mut unknown) = (mine.load(SeqCst), 0);
                for nth in 0..100 {
                    match asks.steer(&2) {
                        Ok(_) => {}
                        // It died with the trays.
                        Err(SteerError::Unanswered { .. }) => unknown += 1,
                        Err(error) => panic!("{fabric} {nth}: {error}"),
                    }
                    assert!(Instant::now() < end, "{fabric} {nth}");
                }
                assert!(unknown <= 1, "{fabric}: {unknown}");
                let done = mine.load(SeqCst) - before;
                assert!((100 - unknown..=100).contains(&done), "{fabric}: {done}");
            }
            over.store(true, SeqCst);
        });
    }
}

#[test]
fn the_next_owner_follows_one_that_died() {
    for fabric in ["shm", "udp"] {
        let (text, _folder) = config("owns", fabric, [LONG, LEASE]);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let mut child = ChildTest::start("steering::owning_process", (CONFIG, &text));
        assert_eq!(child.line(), "owns");
        let asks = Asks::named(&rack.node(0), NAME).unwrap();
        for nth in 1..=20 {
            assert_eq!(asks.steer(&1), Ok(nth), "{fabric}");
        }
        let asked = std::thread::scope(|threads| {
            let asked = threads.spawn(|| {
                loop {
                    if let Err(error) = asks.steer(&1) {
                        return error;
                    }
                }
            });
            std::thread::sleep(Duration::from_millis(50));
            child.signal("-KILL");
            asked.join().unwrap()
        });
        assert!(
            matches!(
                asked,
                SteerError::Unanswered { .. } | SteerError::NoOwner { .. }
            ),
            "{fabric}: {asked}"
        );
        assert!(matches!(
            Asks::named(&rack.node(0), NAME).map(drop),
            Err(SteerError::NoOwner { .. })
        ));
        let mut owner = Owns::own(&rack.node(0), NAME).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| add(&mut owner, &over));
            let asks = Asks::named(&rack.node(0), NAME).unwrap();
            assert_eq!(asks.steer(&5), Ok(5), "{fabric}");
            over.store(true, SeqCst);
        });
    }
}
