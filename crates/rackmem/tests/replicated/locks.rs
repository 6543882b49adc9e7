//! Locks in coherent memory with copies: no death takes one along, and what is lost of what they
//! protect is told.

use crate::homes::replaced;
use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, LONG, MODES, eventually, rack};
use rackmem::locked::{Content, Lock, Mutex, RwLock, RwLockArray};
use rackmem::membership::{self, Role};
use rackmem::{
    AccessError, LockError, LockShape, Node, Rack, Region, RegionError, RegionSpec, Shared,
    Survives,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Members are declared dead, and not found so: leases that end are `failover`'s.
pub const MORE: &str = "lease = '12s'\npatience = '60s'\nreplace_after = '200ms'\n";
const BLOCK: usize = 4096;
const BYTES: usize = Mutex::<u64>::BYTES;
const EACH: [Survives; 2] = [Survives::Rest, Survives::Writes];

fn spec(survives: Survives) -> RegionSpec {
    let spec = RegionSpec::new("locks", 4 * BLOCK).copies(3);
    spec.survives(survives)
}

fn nth(region: &Region, nth: usize) -> Mutex<u64> {
    Mutex::in_region(region, nth * BYTES, 0).unwrap()
}

fn put(lock: &Mutex<u64>, value: u64) {
    *lock.lock().unwrap() = value;
}

/// What is found inside, by a thread that leaves it so.
fn found(lock: &Mutex<u64>) -> (u64, Content) {
    let held = lock.lock().unwrap();
    (*held, held.content())
}

/// A member dies, and all that live go on without it. Who leaves a lock before its node does so
/// leaves it to the dead one, which may have been inside: whoever comes next is told.
pub fn kill(cluster: &Cluster, racks: &mut [Option<Rack>], nodes: &[Node], dead: usize) {
    let rebuilt = |node: &Node| node.rebuilds().done;
    let before: Vec<u64> = nodes.iter().map(rebuilt).collect();
    racks[dead] = None;
    membership::remove(&cluster.store(), Role::Node(dead as u16), LONG).unwrap();
    for (id, (node, before)) in nodes.iter().zip(before).enumerate() {
        let lives = racks[id].is_some();
        eventually("the others go on", || {
            !lives || !node.is_member(dead as u16) && rebuilt(node) > before
        });
    }
}

#[test]
fn they_are_used_as_all_locks_are() {
    for fabric in FABRICS {
        for mode in MODES {
            for survives in EACH {
                let rack = rack(fabric, mode, 3);
                let spec = spec(survives);
                let made = rack.node(1).create_region(&spec).unwrap();
                let first: Mutex<[u64; 3]> = Mutex::in_region(&made, 1024, [1, 2, 3]).unwrap();
                let lock: Lock = Mutex::in_region(&made, 2048, ()).unwrap();
                drop(lock.lock().unwrap());
                std::thread::scope(|scope| {
                    for node in rack.nodes() {
                        let (spec, addr) = (&spec, first.addr());
                        scope.spawn(move || {
                            let region = node.open_region(spec).unwrap();
                            // Whoever comes later finds what the first has made.
                            let same = Mutex::in_region(&region, 1024, [0u64; 3]).unwrap();
                            let table = RwLock::in_region(&region, BLOCK, 10u64).unwrap();
                            for nth in 0..50 {
                                same.lock().unwrap()[1] += 1;
                                let seen = *table.read().unwrap();
                                assert!(seen >= 10 + nth, "{fabric:?}, {mode:?}, {survives:?}");
                                *table.write().unwrap() += 1;
                                if nth % 10 == 0 {
                                    same.rest().unwrap();
                                    table.rest().unwrap();
                                }
                            }
                            let attached = Mutex::<[u64; 3]>::attach(node, addr).unwrap();
                            assert!(attached.lock().unwrap()[1] >= 52);
                        });
                    }
                });
                let held = first.lock().unwrap();
                assert_eq!((*held, held.content()), ([1, 152, 3], Content::Current));
                drop(held);
                let table: RwLock<u64> = RwLock::in_region(&made, BLOCK, 0).unwrap();
                assert_eq!(*table.read().unwrap(), 160);
            }
        }
    }
}

#[test]
fn refusals_say_why() {
    let rack = rack(FABRICS[0], MODES[0], 3);
    let node = rack.node(0);
    let region = node.create_region(&spec(Survives::Rest)).unwrap();
    let shape = |error: RegionError| match error {
        RegionError::Lock(LockError::BadShape { why }) => why,
        other => panic!("{other}"),
    };
    let two = LockShape::TwoBlocks { block: BLOCK };
    for at in [8, BLOCK - 16] {
        let made = Mutex::in_region(&region, at, 0u64);
        assert_eq!(shape(made.unwrap_err()), two);
    }
    let long = Mutex::in_region(&region, 0, [0u64; 512]);
    assert_eq!(shape(long.unwrap_err()), two);
    let plain = RegionSpec::new("plain", BLOCK);
    let plain = node.create_region(&plain).unwrap();
    let made = Mutex::in_region(&plain, 0, 0u64);
    assert_eq!(shape(made.unwrap_err()), LockShape::NoCopies);
    let made = Mutex::in_region(&region, 4 * BLOCK, 0u64);
    assert!(matches!(
        made.unwrap_err(),
        RegionError::OutOfBounds { at, .. } if at == 4 * BLOCK
    ));
    let lock = nth(&region, 0);
    let addr = lock.addr();
    let wrong = Mutex::in_region(&region, 0, 0i64).unwrap_err();
    assert_eq!(wrong, RegionError::Lock(LockError::WrongType { addr }));
    let other = RwLock::in_region(&region, 0, 0u64).unwrap_err();
    assert_eq!(other, RegionError::Lock(LockError::NoLock { addr }));
    assert_eq!(
        Mutex::<u64>::attach(&node, addr + BYTES as u64).err(),
        Some(LockError::NoLock {
            addr: addr + BYTES as u64
        })
    );
    let array = RwLockArray::attach(&node, region.addr(), 2, 64).err();
    let addr = region.addr();
    assert_eq!(
        array,
        Some(LockError::Access(AccessError::BadAddress { addr }))
    );
    let addr = lock.addr();
    assert_eq!(lock.free(), Err(LockError::Stays { addr }));
    assert_eq!(found(&nth(&region, 0)), (0, Content::Current));
}

/// The node that serves them dies, which had some of them itself; another serves them, and then the
/// first one again.
#[test]
fn locks_outlive_the_node_that_serves_them() {
    for fabric in NETWORKS {
        for survives in EACH {
            let case = format!("{fabric}, {survives:?}");
            let cluster = Cluster::new("outlive", fabric, 4, MORE);
            let (mut racks, mut nodes) = cluster.nodes(4);
            let spec = spec(survives);
            nodes[0].create_region(&spec).unwrap();
            let all = |node: &Node| {
                let region = node.open_region(&spec).unwrap();
                [0, 1, 2, 3, 4, 5].map(|at| nth(&region, at))
            };
            let [zero, one, two, three] = [0, 1, 2, 3].map(|id| all(&nodes[id]));
            let [new, at_rest, handed, sole, held, read] = [0, 1, 2, 3, 4, 5];
            // Of `new` nobody ever had anything.
            put(&zero[at_rest], 5);
            zero[at_rest].rest().unwrap();
            put(&one[handed], 6);
            put(&zero[handed], 7);
            put(&zero[sole], 8);
            put(&three[read], 9);
            let inside = two[held].lock().unwrap();
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| found(&one[held]));
                eventually("it waits", || one[held].waiting().threads == 1);
                kill(&cluster, &mut racks, &nodes, 0);
                // Who is inside stays inside, and what waits goes on waiting.
                assert_eq!(one[held].waiting().threads, 1, "{case}");
                let mut inside = inside;
                *inside = 10;
                drop(inside);
                assert_eq!(waits.join().unwrap(), (10, Content::Current), "{case}");
            });
            let last = |rest, writes| match survives {
                Survives::Rest => rest,
                Survives::Writes => writes,
            };
            let died = Content::OwnerDied;
            assert_eq!(found(&three[new]), (0, Content::Current), "{case}");
            assert_eq!(found(&three[at_rest]), (5, Content::Current), "{case}");
            assert_eq!(found(&three[read]), (9, Content::Current), "{case}");
            // All are told until one has written.
            let region = nodes[2].open_region(&spec).unwrap();
            assert_eq!(found(&nth(&region, handed)), (last(6, 7), died), "{case}");
            assert_eq!(found(&three[handed]).1, Content::Current, "{case}");
            assert_eq!(found(&two[sole]), (last(0, 8), died), "{case}");
            for (at, lock) in two.iter().enumerate() {
                put(lock, 20 + at as u64);
            }
            // It serves them again, and has seen nothing of what has become of them.
            racks[0] = Some(cluster.node(0));
            nodes[0] = racks[0].as_ref().unwrap().node(0);
            for (at, lock) in all(&nodes[0]).iter().enumerate() {
                assert_eq!(found(lock), (20 + at as u64, Content::Current), "{case}");
            }
            for (at, lock) in one.iter().enumerate() {
                assert_eq!(found(lock).0, 20 + at as u64, "{case}");
            }
        }
    }
}

/// Nodes die and come back, first the one that serves this region; `start` begins what each does
/// before, and `more` waits for what goes on.
pub fn die_and_come_back(
    (cluster, region): (&Cluster, &str),
    (racks, nodes): (&mut [Option<Rack>], &mut [Node]),
    more: impl Fn(&str),
    mut start: impl FnMut(Node),
) {
    for dead in [0, 1, 0] {
        start(nodes[dead].clone());
        more("they count");
        kill(cluster, racks, nodes, dead);
        more("they go on");
        racks[dead] = Some(cluster.node(dead));
        nodes[dead] = racks[dead].as_ref().unwrap().node(dead);
        replaced(&nodes[2], region);
        more("they go on when it is back");
    }
}

/// Threads of all nodes count by locks, and by words beside them, while nodes die and come back:
/// first the one that serves both. Where writes survive, what is counted is exact.
#[test]
fn counts_are_exact_while_nodes_die() {
    const LOCKS: usize = 3;
    for fabric in NETWORKS {
        let cluster = Cluster::new("exact", fabric, 4, MORE);
        let (mut racks, mut nodes) = cluster.nodes(4);
        let spec = spec(Survives::Writes);
        nodes[3].create_region(&spec).unwrap();
        let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let words = [const { AtomicU64::new(0) }; 2];
        let stop = AtomicBool::new(false);
        let count = |node: Node, dies: bool| {
            let region = node.open_region(&spec).unwrap();
            let locks = (0..LOCKS).map(|at| Mutex::in_region(&region, at * BYTES, 0u64));
            let locks = match locks.collect::<Result<Vec<_>, _>>() {
                Ok(locks) => locks,
                Err(error) => {
                    assert!(dies, "{fabric}: {error}");
                    return;
                }
            };
            let word: Shared<u64> = match region.shared(3 * BLOCK / 8) {
                Ok(word) => word,
                Err(error) => {
                    assert!(dies, "{fabric}: {error}");
                    return;
                }
            };
            for round in 0.. {
                if stop.load(SeqCst) {
                    return;
                }
                begun.fetch_add(1, SeqCst);
                let mut held = match locks[round % LOCKS].lock() {
                    Ok(held) => held,
                    Err(error) => {
                        assert!(dies, "{fabric}: {error}");
                        return;
                    }
                };
                *held += 1;
                drop(held);
                // A node that is gone has not left the lock.
                if dies && word.read().is_err() {
                    return;
                }
                done.fetch_add(1, SeqCst);
                words[0].fetch_add(1, SeqCst);
                match word.fetch_add(1) {
                    Ok(_) => drop(words[1].fetch_add(1, SeqCst)),
                    Err(AccessError::Interrupted { .. }) => {}
                    Err(error) if dies => return eprintln!("{fabric}: {error}"),
                    Err(error) => panic!("{fabric}: {error}"),
                }
            }
        };
        std::thread::scope(|scope| {
            for id in [2, 3, 3] {
                let node = nodes[id].clone();
                scope.spawn(|| count(node, false));
            }
            let more = |what: &str| {
                let before = done.load(SeqCst);
                eventually(what, || done.load(SeqCst) > before + 60);
            };
            let lives = (&mut racks[..], &mut nodes[..]);
            die_and_come_back((&cluster, "locks"), lives, more, |node| {
                scope.spawn(|| count(node, true));
            });
            stop.store(true, SeqCst);
        });
        let region = nodes[1].open_region(&spec).unwrap();
        let sum: u64 = (0..LOCKS).map(|at| found(&nth(&region, at)).0).sum();
        let (begun, done) = (begun.load(SeqCst), done.load(SeqCst));
        assert!(
            (done..=begun).contains(&sum) && begun - done <= 3,
            "{fabric}: {done} done and {begun} begun made {sum}"
        );
        let word: Shared<u64> = region.shared(3 * BLOCK / 8).unwrap();
        let [tried, counted] = words.map(AtomicU64::into_inner);
        let is = word.read().unwrap();
        assert!(
            (counted..=tried).contains(&is),
            "{fabric}: {counted} and {tried} made {is}"
        );
    }
}
