//! Objects with copies: they do not die with the node that serves them, and what is done to them is
//! done once, whichever node dies meanwhile.

use crate::history::{LINES, judge, record};
use crate::homes::replaced;
use crate::maps;
use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, LONG, MODES, Stop, eventually, rack};
use rackmem::diagnostics::Faults;
use rackmem::object::{Object, ObjectRef};
use rackmem::{
    AccessError, AllocError, Contract, Fabric, Node, Rack, Region, RegionError, RegionSpec,
};
use rackmem_sim::history::{ClientLog, Recorder};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

const MORE: &str = "lease = '1500ms'\npatience = '60s'\nreplace_after = '200ms'\n";
/// Words of an object that takes several packets where these are small.
const WORDS: usize = 300;

fn spec(name: &str, line: u32, objects: usize) -> RegionSpec {
    let spec = RegionSpec::new(name, objects * line as usize);
    spec.contract(Contract::Object).copies(3).line(line)
}

#[test]
fn an_object_with_copies_is_an_object() {
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let rack = rack(fabric, mode, 4);
        // Copies before the contract, or behind it.
        let spec = RegionSpec::new("users", 3 * 4096).copies(3).line(4096);
        let spec = spec.contract(Contract::Object);
        let region = rack.node(1).create_region(&spec).unwrap();
        let which = format!("{fabric:?} {mode:?}");
        assert_eq!(
            (region.contract(), region.bytes()),
            (Contract::Object, 3 * 4096)
        );
        let first = region.alloc([1u64; WORDS]).unwrap();
        let far = |node: usize| -> Object<[u64; WORDS]> {
            rack.node(node).attach_object(first.at()).unwrap()
        };
        for node in 0..4 {
            let object = far(node);
            let (version, value) = object.read_versioned().unwrap();
            assert_eq!(value, [node as u64 + 1; WORDS], "{which}");
            assert_eq!(object.read_if_newer(version), Ok(None), "{which}");
            let next = object.write(&[node as u64 + 2; WORDS]).unwrap();
            assert_eq!(next, version + 2, "{which}");
            assert_eq!(
                object.write_if(version, &[99; WORDS]),
                Ok(Err(next)),
                "{which}"
            );
            assert_eq!(object.with(|view| view.u64(8)), Ok(node as u64 + 2));
        }
        far(2).update(|all| all[0] += 10).unwrap();
        let seen = far(3).read().unwrap();
        assert_eq!((seen[0], seen[1]), (15, 5), "{which}");
        // As many as there are lines; one that is freed is gone, and its place is another's.
        let second = region.alloc([7u64; WORDS]).unwrap();
        let third = rack
            .node(3)
            .open_region(&spec)
            .unwrap()
            .alloc_bytes(b"third", 4064);
        let third = third.unwrap();
        let full = region.alloc(5u64);
        assert!(
            matches!(full, Err(AllocError::OutOfMemory { .. })),
            "{which}: {full:?}"
        );
        let (a, b) = (far(2), rack.node(2).attach_object(second.at()).unwrap());
        let both = rack.node(2).read_many(&[&a, &b]).into_iter();
        let both: Vec<u64> = both.map(|read| read.unwrap().1[1]).collect();
        assert_eq!(both, [5, 7], "{which}");
        let addr = second.addr();
        second.free().unwrap();
        assert_eq!(b.read(), Err(AccessError::Gone { addr }), "{which}");
        assert_eq!(
            b.write(&[0; WORDS]),
            Err(AccessError::Gone { addr }),
            "{which}"
        );
        let another = region.alloc([8u64; WORDS]).unwrap();
        assert_eq!(another.addr(), addr, "{which}");
        assert_eq!(b.read(), Err(AccessError::Gone { addr }), "{which}");
        assert_eq!(another.read(), Ok([8; WORDS]), "{which}");
        assert_eq!(third.read(), Ok(b"third".to_vec()), "{which}");
    }
}

#[test]
fn what_objects_with_copies_do_not_do_is_said() {
    let rack = rack(Fabric::Udp, MODES[0], 3);
    let node = rack.node(0);
    let spec = spec("small", 64, 10);
    let region = node.create_region(&spec).unwrap();
    let long = region.alloc([0u64; 5]);
    let (len, most) = (40, 32);
    assert!(matches!(long, Err(AllocError::TooLarge { len: l, most: m }) if (l, m) == (len, most)));
    let object = region.alloc([1u64; 4]).unwrap();
    // Neither another size nor other memory.
    let other = spec.clone().line(128);
    assert!(matches!(
        node.open_region(&other),
        Err(RegionError::Mismatch { .. })
    ));
    let coherent = RegionSpec::new("small", 640).copies(3);
    assert!(matches!(
        node.open_region(&coherent),
        Err(RegionError::Mismatch { .. })
    ));
    // An address that is between two objects, and one behind all.
    let at = |bytes: u64| ObjectRef::new(object.addr() + bytes, object.at().generation());
    for bytes in [32, 640, 1 << 20] {
        let none: Object<u64> = node.attach_object(at(bytes)).unwrap();
        let addr = none.addr();
        assert_eq!(
            none.read(),
            Err(AccessError::BadAddress { addr }),
            "{bytes}"
        );
    }
    let wrong = RegionSpec::new("odd", 640).contract(Contract::Object);
    let wrong = node.create_region(&wrong.copies(3).line(96));
    assert!(matches!(wrong, Err(RegionError::BadLines { line: 96, .. })));
}

/// A thread's reads and writes, recorded. What was not answered may have happened.
fn work(objects: &[Object<[u64; WORDS]>], client: u32, log: &mut ClientLog<'_>, most: usize) {
    let read = |at: usize| objects[at].read().ok();
    let write = |at: usize, words| objects[at].write(&words).is_ok();
    record(objects.len(), (client, log, most), read, write);
}

fn attached<T: rackmem::Value>(node: &Node, all: &[ObjectRef]) -> Vec<Object<T>> {
    let attach = |at: &ObjectRef| node.attach_object(*at).unwrap();
    all.iter().map(attach).collect()
}

#[test]
fn histories_of_objects_with_copies_are_linearizable() {
    const CLIENTS: usize = 6;
    const OPERATIONS: usize = 80;
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let rack = Rack::builder(4).fabric(fabric).mode(mode).patience(LONG);
        let rack = match fabric {
            Fabric::Inline => rack,
            _ => rack.mtu(1500).faults(Faults {
                loss: 0.02,
                duplication: 0.02,
                delay: 0.05,
                ..Faults::NONE
            }),
        };
        let rack = rack.build().unwrap();
        let region = rack
            .node(0)
            .create_region(&spec("history", 4096, LINES))
            .unwrap();
        let all: Vec<ObjectRef> = (0..LINES)
            .map(|_| region.alloc([0u64; WORDS]).unwrap().at())
            .collect();
        let recorder = Recorder::new(OPERATIONS);
        std::thread::scope(|scope| {
            for client in 0..CLIENTS as u32 {
                let (node, recorder, all) = (rack.node(client as usize % 4), &recorder, &all);
                scope.spawn(move || {
                    let mut log = recorder.client(client);
                    work(&attached(&node, all), client, &mut log, OPERATIONS);
                });
            }
        });
        judge(&format!("{fabric:?} {mode:?}"), &recorder.into_history());
    }
}

/// The node that serves them dies twice, and comes back: each update counts once, also those that
/// its death has met, and whatever was read is there.
#[test]
fn updates_count_once_while_the_home_dies() {
    const COUNTERS: usize = 3;
    for fabric in NETWORKS {
        let cluster = Cluster::new("object-counters", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        let region = nodes[3].create_region(&spec("counters", 64, 16)).unwrap();
        let all: Vec<ObjectRef> = (0..COUNTERS)
            .map(|_| region.alloc(0u64).unwrap().at())
            .collect();
        let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for (thread, id) in [1, 2, 3, 3].into_iter().enumerate() {
                let (node, all, stop, done) = (&nodes[id], &all, &stop, &done);
                scope.spawn(move || {
                    let counters: Vec<Object<u64>> = attached(node, all);
                    for nth in thread.. {
                        if stop.load(SeqCst) {
                            return;
                        }
                        counters[nth % COUNTERS]
                            .update(|count| *count += 1)
                            .unwrap();
                        done.fetch_add(1, SeqCst);
                    }
                });
            }
            // What is read never goes back.
            let (node, all, stop) = (&nodes[2], &all, &stop);
            scope.spawn(move || {
                let counters: Vec<Object<u64>> = attached(node, all);
                let mut last = [(0, 0); COUNTERS];
                while !stop.load(SeqCst) {
                    for (counter, last) in counters.iter().zip(&mut last) {
                        let now = counter.read_versioned().unwrap();
                        assert!(now.0 >= last.0 && now.1 >= last.1, "{now:?} after {last:?}");
                        *last = now;
                    }
                }
            });
            for _ in 0..2 {
                let before = done.load(SeqCst);
                eventually("they count", || done.load(SeqCst) > before + 100);
                racks[0] = None;
                eventually("the death is noticed", || !nodes[1].is_member(0));
                let before = done.load(SeqCst);
                eventually("they go on", || done.load(SeqCst) > before + 100);
                replaced(&nodes[1], "counters");
                racks[0] = Some(cluster.node(0));
            }
            stop.store(true, SeqCst);
        });
        let counters: Vec<Object<u64>> = attached(&nodes[1], &all);
        let sum: u64 = counters.iter().map(|counter| counter.read().unwrap()).sum();
        assert_eq!(sum, done.load(SeqCst), "{fabric}");
    }
}

/// Objects are made and freed while the node that serves them dies: none is given to two, and none
/// is lost.
#[test]
fn objects_are_given_once_while_the_home_dies() {
    const OBJECTS: usize = 40;
    for fabric in NETWORKS {
        let cluster = Cluster::new("object-places", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        let spec = spec("places", 64, OBJECTS);
        nodes[3].create_region(&spec).unwrap();
        let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let there = Mutex::new(BTreeSet::new());
        std::thread::scope(|scope| {
            for id in [1, 2, 3] {
                let (node, spec, stop, done, there) = (&nodes[id], &spec, &stop, &done, &there);
                scope.spawn(move || {
                    let region = node.open_region(spec).unwrap();
                    let mut mine: Vec<Object<u64>> = Vec::new();
                    while !stop.load(SeqCst) {
                        if mine.len() == 10 {
                            let old = mine.swap_remove(fastrand::usize(..10));
                            assert!(there.lock().unwrap().remove(&old.addr()));
                            old.free().unwrap();
                        }
                        let new = region.alloc(id as u64).unwrap();
                        let fresh = there.lock().unwrap().insert(new.addr());
                        assert!(fresh, "{fabric}: {:x} was given twice", new.addr());
                        mine.push(new);
                        done.fetch_add(1, SeqCst);
                    }
                    for object in &mine {
                        assert_eq!(object.read(), Ok(id as u64), "{fabric}");
                    }
                });
            }
            for _ in 0..2 {
                let before = done.load(SeqCst);
                eventually("they are made", || done.load(SeqCst) > before + 100);
                racks[0] = None;
                eventually("the death is noticed", || !nodes[1].is_member(0));
                let before = done.load(SeqCst);
                eventually("they go on", || done.load(SeqCst) > before + 100);
                replaced(&nodes[1], "places");
                racks[0] = Some(cluster.node(0));
            }
            stop.store(true, SeqCst);
        });
        // No place is lost to a call that a death has met.
        let region = nodes[1].open_region(&spec).unwrap();
        let left = OBJECTS - there.lock().unwrap().len();
        for _ in 0..left {
            region.alloc(0u64).unwrap();
        }
        let full = |region: &Region, which: &str| {
            let refused = region.alloc(0u64);
            let full = matches!(refused, Err(AllocError::OutOfMemory { .. }));
            assert!(full, "{fabric}, {which}: {refused:?}");
        };
        full(&region, "as it is");
        // A node that asks before it knows who serves the region.
        for (id, member) in [(2, 2), (0, 0)] {
            racks[id] = None;
            eventually("the death is noticed", || !nodes[1].is_member(member));
            let anew = racks[id].insert(cluster.node(id)).node(id);
            full(&anew.open_region(&spec).unwrap(), "a new node");
        }
    }
}

/// Transactions that read objects with copies, and write one that has none, while the node that
/// serves the first ones dies: what they read is of one moment, and so is what they write.
#[test]
fn transactions_read_objects_of_one_moment_while_the_home_dies() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("object-audits", fabric, 4, maps::MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        let region = nodes[3].create_region(&spec("pair", 64, 4)).unwrap();
        let [first, second] = [(); 2].map(|()| region.alloc(0u64).unwrap().at());
        let own = RegionSpec::new("own", 64 << 10).contract(Contract::Object);
        let own = nodes[3].create_region(&own.on(3)).unwrap();
        let seen = own.alloc([0u64; 2]).unwrap().at();
        let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            // The first one is the second one or one ahead of it, at every moment.
            let pair: Vec<Object<u64>> = attached(&nodes[2], &[first, second]);
            let stop = &stop;
            scope.spawn(move || {
                for nth in 1.. {
                    if stop.load(SeqCst) {
                        return;
                    }
                    for object in &pair {
                        object.write(&nth).unwrap();
                    }
                    // So that a transaction finds a moment between two of these.
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            for id in [1, 2, 3] {
                let (node, done) = (&nodes[id], &done);
                scope.spawn(move || {
                    let pair: Vec<Object<u64>> = attached(node, &[first, second]);
                    let seen: Object<[u64; 2]> = node.attach_object(seen).unwrap();
                    while !stop.load(SeqCst) {
                        let read = node.transaction(|t| {
                            let [a, b] = [t.read(&pair[0])?, t.read(&pair[1])?];
                            Ok([a, b])
                        });
                        let read = read.unwrap();
                        assert!(read[0] - read[1] <= 1, "{fabric}: {read:?}");
                        let before = node.transaction(|t| {
                            let (was, now) = (t.read(&seen)?, t.read(&pair[1])?);
                            t.write(&seen, [now, was[1] + 1])?;
                            Ok([was[0], now])
                        });
                        // Transactions have one order, and what has copies never goes back.
                        let before = before.unwrap();
                        assert!(before[0] <= before[1], "{fabric}: {before:?}");
                        done.fetch_add(1, SeqCst);
                    }
                });
            }
            let before = done.load(SeqCst);
            eventually("they read", || done.load(SeqCst) > before + 30);
            maps::first_dies(&cluster, &mut racks);
            eventually("the death is noticed", || !nodes[1].is_member(0));
            let before = done.load(SeqCst);
            eventually("they go on", || done.load(SeqCst) > before + 30);
        });
        let seen: Object<[u64; 2]> = nodes[1].attach_object(seen).unwrap();
        assert_eq!(seen.read().unwrap()[1], done.load(SeqCst), "{fabric}");
    }
}
