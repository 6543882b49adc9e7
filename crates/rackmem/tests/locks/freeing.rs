//! Freed locks: nobody enters them any more, and their memory is used by the next ones.

use crate::deaths::Cluster;
use crate::{FABRICS, NODES, rack, until};
use rackmem::locked::{Condvar, Content, Lock, Mutex, RangesLock, RwLock};
use rackmem::membership::Role;
use rackmem::{AllocError, Contract, Fabric, LockError, Mode, Node, Rack, RackError, Value};
use rackmem_proto::wire::Tag;
use std::time::Duration;

fn freed<T>(result: Result<T, LockError>) -> bool {
    matches!(result, Err(LockError::Freed { .. }))
}

/// Makes locks until one has the place of one that was freed. Its home passes a place over where
/// somebody with an old handle stays longer than a moment, as one does who gets no processor.
fn at<L>(place: u64, mut make: impl FnMut() -> (u64, L)) -> L {
    let mut made = None;
    until(|| {
        let (addr, lock) = make();
        if addr == place {
            made = Some(lock);
        }
        made.is_some()
    });
    made.unwrap()
}

fn mutex_at<T: Value + Copy>(node: &Node, place: u64, value: T) -> Mutex<T> {
    at(place, || {
        let made = Mutex::create(node, value).unwrap();
        (made.addr(), made)
    })
}

#[test]
fn a_freed_lock_admits_nobody_and_its_place_is_used_again() {
    for fabric in FABRICS {
        for mode in crate::MODES {
            let rack = rack(fabric, mode, None);
            let made: Mutex<u64> = Mutex::create(&rack.node(0), 7).unwrap();
            let addr = made.addr();
            let far: Mutex<u64> = Mutex::attach(&rack.node(1), addr).unwrap();
            let unused: Mutex<u64> = Mutex::attach(&rack.node(2), addr).unwrap();
            assert_eq!(far.lock().unwrap().update(|n| n + 1), 7);
            // By another node than its maker's.
            far.clone().free().unwrap();
            assert!(freed(far.lock()) && freed(made.lock()) && freed(unused.lock()));
            let long = Duration::from_secs(60);
            assert!(freed(made.lock_within(long)) && freed(made.try_lock()));
            assert!(
                freed(far.free()) && freed(made.clone().free()),
                "a second time"
            );
            assert!(freed(Mutex::<u64>::attach(&rack.node(0), addr)));
            // Its home does not use it again before it knows, and then does,
            // for a lock of another kind and size.
            let next: RwLock<[u64; 50]> = at(addr, || {
                let made = RwLock::create(&rack.node(0), [3; 50]).unwrap();
                (made.addr(), made)
            });
            assert!(freed(made.lock()) && freed(unused.lock()));
            let there: RwLock<[u64; 50]> = RwLock::attach(&rack.node(2), addr).unwrap();
            assert_eq!(there.read().unwrap().get(), [3; 50]);
            assert!(freed(unused.lock()), "while the same node uses the new one");
            there.write().unwrap().set([4; 50]);
            assert_eq!(next.read().unwrap().get(), [4; 50]);
            let error = made.lock().err().unwrap().to_string();
            assert!(error.contains("has been freed"), "{error}");
        }
    }
}

#[test]
fn who_waits_for_a_lock_that_is_freed_is_told() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::Switch, None);
        let made: Lock = Mutex::create(&rack.node(0), ()).unwrap();
        let [here, there] = [0, 1].map(|n| Lock::attach(&rack.node(n), made.addr()).unwrap());
        let last: Lock = Mutex::attach(&rack.node(2), made.addr()).unwrap();
        let held = last.lock().unwrap();
        std::thread::scope(|scope| {
            let frees = scope.spawn(|| made.clone().free());
            until(|| last.waiting().nodes == 1);
            // They come behind it.
            let waits = [&here, &there].map(|lock| scope.spawn(move || freed(lock.lock())));
            until(|| last.waiting().nodes == 2 && here.waiting().threads == 2);
            drop(held);
            frees.join().unwrap().unwrap();
            assert!(waits.into_iter().all(|wait| wait.join().unwrap()));
        });
        assert!(freed(last.lock()));
    }
}

#[test]
fn a_lock_that_somebody_stays_in_is_not_freed() {
    let rack = Rack::builder(2).patience(Duration::from_millis(50));
    let rack = rack.build().unwrap();
    let made: Mutex<u64> = Mutex::create(&rack.node(0), 1).unwrap();
    let held = made.lock().unwrap();
    // The same thread: another handle would be a lock that waits for itself.
    assert!(matches!(made.clone().free(), Err(LockError::Busy { .. })));
    drop(held);
    assert_eq!(made.lock().unwrap().get(), 1);
    made.free().unwrap();
}

#[test]
fn memory_of_a_lock_is_not_given_back_as_memory() {
    let rack = rack(Fabric::Inline, Mode::Switch, None);
    let made: Mutex<u64> = Mutex::create(&rack.node(0), 1).unwrap();
    let addr = made.addr();
    // What describes it is in coherent memory.
    let memory = Tag(addr).under(Contract::Coherent).0;
    let bytes = || rack.node(0).free_bytes(memory, 32);
    assert!(matches!(bytes(), Err(AllocError::NotAllocated { .. })));
    made.clone().free().unwrap();
    assert!(matches!(bytes(), Err(AllocError::NotAllocated { .. })));
}

#[test]
fn a_condition_that_is_freed_wakes_those_who_wait_for_it() {
    let rack = rack(Fabric::Udp, Mode::Switch, None);
    let made: Mutex<u64> = Mutex::create(&rack.node(0), 0).unwrap();
    let condition = Condvar::create(&rack.node(0)).unwrap();
    let mutex: Mutex<u64> = Mutex::attach(&rack.node(1), made.addr()).unwrap();
    let there = Condvar::attach(&rack.node(1), condition.addr()).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| freed(there.wait(mutex.lock().unwrap())));
        until(|| condition.waiters().unwrap() == 1);
        condition.clone().free().unwrap();
        assert!(waits.join().unwrap());
    });
    assert!(freed(there.notify_one()) && freed(condition.free()));
    assert_eq!(mutex.lock().unwrap().get(), 0, "the mutex goes on");
}

#[test]
fn ranges_of_a_freed_lock_are_memory_again() {
    let rack = rack(Fabric::Udp, Mode::Switch, None);
    let node = rack.node(1);
    let (near, far) = (
        node.alloc_bytes(4096).unwrap(),
        rack.node(0).alloc_bytes(64).unwrap(),
    );
    let made = RangesLock::create(&node, &[(near + 3, 3000), (far, 5)]).unwrap();
    let other = RangesLock::attach(&rack.node(2), made.addr()).unwrap();
    let mut held = other.write().unwrap();
    held.write(near + 3002, &[8]).unwrap();
    held.write(far, &[1, 2, 3, 4, 5]).unwrap();
    drop(held);
    other.free().unwrap();
    assert!(freed(made.read()));
    let (mut one, mut five) = ([0], [0; 5]);
    node.read(near + 3002, &mut one).unwrap();
    rack.node(2).read(far, &mut five).unwrap();
    assert_eq!((one, five), ([8], [1, 2, 3, 4, 5]));
    // Locks over as many ranges use each other's places; over none they have their own.
    let small: Mutex<u64> = Mutex::create(&node, 1).unwrap();
    at(made.addr(), || {
        let next = RangesLock::create(&node, &[(near, 8), (far, 8)]).unwrap();
        (next.addr(), next)
    });
    assert_ne!(small.addr(), made.addr());
}

#[test]
fn a_name_that_was_a_freed_locks_is_free_again() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::Switch, None);
        let first: Mutex<u64> = Mutex::named(&rack.node(1), "it", 1).unwrap();
        let other: Mutex<u64> = Mutex::named(&rack.node(2), "it", 0).unwrap();
        // By a handle that knows no name.
        let bare: Mutex<u64> = Mutex::attach(&rack.node(0), first.addr()).unwrap();
        bare.free().unwrap();
        assert!(freed(first.lock()) && freed(other.lock()));
        // Of another type, from another node.
        let again: RwLock<[u64; 3]> = RwLock::named(&rack.node(2), "it", [5; 3]).unwrap();
        assert_eq!(again.read().unwrap().get(), [5; 3]);
        let same: RwLock<[u64; 3]> = RwLock::renewed(&rack.node(0), "it", [6; 3]).unwrap();
        assert_eq!(same.addr(), again.addr());
        // What was the first one's place is a lock without a name now, and that one's another's.
        let bare = mutex_at(&rack.node(1), first.addr(), 9);
        same.free().unwrap();
        let mut names = 0;
        let third: Mutex<u64> = at(again.addr(), || {
            names += 1;
            let made = Mutex::named(&rack.node(2), &format!("another {names}"), 2).unwrap();
            (made.addr(), made)
        });
        let it: Mutex<u64> = Mutex::named(&rack.node(0), "it", 4).unwrap();
        assert_ne!(it.addr(), third.addr());
        assert_eq!(
            (it.lock().unwrap().get(), third.lock().unwrap().get()),
            (4, 2)
        );
        assert_eq!(bare.lock().unwrap().get(), 9);
    }
}

#[test]
fn what_is_freed_stays_freed_when_who_freed_it_dies() {
    for fabric in ["udp", "shm"] {
        let cluster = Cluster::new("freed", fabric);
        let (_switch, [first, second, third]) = cluster.start();
        let made: Mutex<u64> = Mutex::create(&first.node(0), 1).unwrap();
        let near: Mutex<u64> = Mutex::attach(&second.node(1), made.addr()).unwrap();
        let far: Mutex<u64> = Mutex::attach(&third.node(2), made.addr()).unwrap();
        far.lock().unwrap().set(2);
        far.free().unwrap();
        let rebuilt = || first.node(0).metrics().rebuilds.done;
        let before = rebuilt();
        cluster.kill(Role::Node(2), third);
        until(|| rebuilt() > before);
        assert!(freed(near.lock()) && freed(made.lock()));
        let next: Mutex<u64> = mutex_at(&first.node(0), made.addr(), 7);
        assert!(freed(near.lock()) && freed(made.lock()));
        let held = next.lock().unwrap();
        assert_eq!((held.get(), held.content()), (7, Content::Current));
    }
}

#[test]
fn an_old_handle_is_refused_when_who_has_the_next_lock_dies() {
    let cluster = Cluster::new("next", "udp");
    let (_switch, [first, second, third]) = cluster.start();
    let made: Mutex<u64> = Mutex::create(&first.node(0), 1).unwrap();
    let near: Mutex<u64> = Mutex::attach(&second.node(1), made.addr()).unwrap();
    assert_eq!(near.lock().unwrap().get(), 1);
    made.clone().free().unwrap();
    let next: Mutex<u64> = mutex_at(&first.node(0), made.addr(), 7);
    let far: Mutex<u64> = Mutex::attach(&third.node(2), next.addr()).unwrap();
    far.lock().unwrap().set(8);
    std::thread::scope(|scope| {
        let inside = far.lock().unwrap();
        let waits = scope.spawn(|| freed(near.lock()));
        until(|| far.waiting().nodes == 1);
        cluster.kill(Role::Node(2), third);
        assert!(waits.join().unwrap());
        drop(inside);
    });
    // Who was refused has not heard of the death in place of those whose lock it is.
    let held = next.lock().unwrap();
    assert_eq!((held.get(), held.content()), (7, Content::OwnerDied));
}

#[test]
fn a_lock_whose_home_has_died_is_not_freed_but_lost() {
    let cluster = Cluster::new("lost", "udp");
    let (_switch, [first, second, third]) = cluster.start();
    let made: Mutex<u64> = Mutex::create(&third.node(2), 1).unwrap();
    let near: Mutex<u64> = Mutex::attach(&second.node(1), made.addr()).unwrap();
    near.lock().unwrap().set(2);
    let rebuilt = || first.node(0).metrics().rebuilds.done;
    let before = rebuilt();
    cluster.kill(Role::Node(2), third);
    until(|| rebuilt() > before);
    assert!(matches!(
        near.free(),
        Err(LockError::Rack(RackError::NodeLost { node: 2 }))
    ));
}

/// Blocks of 4 KiB that a node can still give out.
fn room(rack: &Rack, node: usize) -> usize {
    let mut taken = Vec::new();
    while let Ok(addr) = rack.node(node).alloc_bytes(4096) {
        taken.push(addr);
    }
    for addr in &taken {
        rack.node(node).free_bytes(*addr, 4096).unwrap();
    }
    taken.len()
}

/// Makes locks of some size on a node and frees them on another one.
fn round<const WORDS: usize>(rack: &Rack, nth: usize) {
    let (home, other) = (rack.node(nth % NODES), rack.node((nth / NODES) % NODES));
    let made: RwLock<[u64; WORDS]> = RwLock::create(&home, [nth as u64; WORDS]).unwrap();
    let there: RwLock<[u64; WORDS]> = RwLock::attach(&other, made.addr()).unwrap();
    assert_eq!(there.write().unwrap().get(), [nth as u64; WORDS]);
    there.free().unwrap();
    if nth.is_multiple_of(64) {
        assert!(freed(made.read()));
    }
}

#[test]
fn locks_that_come_and_go_take_no_more_memory_than_those_that_are_there() {
    for (fabric, rounds) in [
        (Fabric::Inline, 100_000),
        (Fabric::Udp, 400),
        (Fabric::Shm, 800),
    ] {
        let rack = rack(fabric, Mode::Switch, None);
        let rounds_of = |from: usize, to: usize| {
            for nth in from..to {
                match nth % 5 {
                    0 => round::<1>(&rack, nth),
                    1 => round::<9>(&rack, nth),
                    2 => round::<512>(&rack, nth),
                    3 => round::<3>(&rack, nth),
                    _ => round::<2_000>(&rack, nth),
                }
            }
        };
        rounds_of(0, 50);
        let metrics = || {
            rack.nodes()
                .iter()
                .map(|n| n.lock_metrics())
                .collect::<Vec<_>>()
        };
        let rooms = || (0..NODES).map(|n| room(&rack, n)).collect::<Vec<_>>();
        let (before, had) = (metrics(), rooms());
        rounds_of(50, rounds);
        assert_eq!(rooms(), had, "{fabric:?}: memory is as it was");
        for (before, after) in before.iter().zip(metrics()) {
            assert_eq!((before.known, before.vacant), (after.known, after.vacant));
            assert_eq!(after.vacant, 1, "one at a time: {after:?}");
            let kept = |m: &rackmem::locked::LockMetrics| m.kept + m.kept_home;
            // What a lock protected last stays where it was read last.
            assert!(
                kept(&after) <= kept(before) + 3 * 20_000,
                "{before:?} {after:?}"
            );
        }
    }
}

#[test]
fn a_node_that_has_forgotten_a_freed_lock_knows_the_next_one_in_its_place() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::Switch, None);
        let made: Mutex<[u64; 100]> = Mutex::create(&rack.node(0), [1; 100]).unwrap();
        let addr = made.addr();
        let keeps: Mutex<[u64; 100]> = Mutex::attach(&rack.node(2), addr).unwrap();
        let used: Mutex<[u64; 100]> = Mutex::attach(&rack.node(1), addr).unwrap();
        used.lock().unwrap().set([2; 100]);
        keeps.clone().free().unwrap();
        drop(used);
        let node = rack.node(1);
        until(|| {
            node.forget_locks();
            node.lock_metrics().known == 0
        });
        assert_eq!(node.lock_metrics().kept, 0);
        let next = mutex_at(&rack.node(0), addr, [3u64; 100]);
        let there: Mutex<[u64; 100]> = Mutex::attach(&node, addr).unwrap();
        assert_eq!(there.lock().unwrap().update(|_| [4; 100]), [3; 100]);
        assert!(freed(keeps.lock()) && freed(made.lock()));
        assert_eq!(next.lock().unwrap().get(), [4; 100]);
    }
}
