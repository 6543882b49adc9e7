//! Regions of objects with copies that are removed, and what has their name and number next.

use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, MODES, Stop, eventually, rack};
use rackmem::object::{MapSpec, Object};
use rackmem::{
    AccessError, AllocError, Contract, Node, RegionError, RegionSpec, Survives, TransactionError,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

const MORE: &str = "lease = '1500ms'\npatience = '60s'\nreplace_after = '200ms'\n";
const WORDS: usize = 20;
const LINE: u32 = 256;

type Words = Object<[u64; WORDS]>;

fn spec(name: &str, objects: usize) -> RegionSpec {
    let spec = RegionSpec::new(name, objects * LINE as usize);
    spec.contract(Contract::Object).copies(3).line(LINE)
}

fn at(node: &Node, object: &Words) -> Words {
    node.attach_object(object.at()).unwrap()
}

/// Nothing is done with an object, and each call says that it is gone.
fn is_gone(object: &Words, which: &str) {
    let addr = object.addr();
    let gone = AccessError::Gone { addr };
    assert_eq!(object.read(), Err(gone), "{which}");
    assert_eq!(object.read_if_newer(2), Err(gone), "{which}");
    assert_eq!(object.write(&[9; WORDS]), Err(gone), "{which}");
    assert_eq!(object.write_if(2, &[9; WORDS]), Err(gone), "{which}");
    assert_eq!(object.update(|all| all[0] = 9), Err(gone), "{which}");
    let object = Object::clone(object);
    assert_eq!(object.free(), Err(gone), "{which}");
}

#[test]
fn objects_of_a_removed_region_with_copies_are_gone() {
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let which = format!("{fabric:?} {mode:?}");
        let rack = rack(fabric, mode, 4);
        let kept = rack.node(2).create_region(&spec("kept", 8)).unwrap();
        let kept: Words = kept.alloc([5; WORDS]).unwrap();
        let spec = spec("users", 8);
        let old = rack.node(1).create_region(&spec).unwrap();
        let first: Words = old.alloc([1; WORDS]).unwrap();
        let second: Words = old.alloc([2; WORDS]).unwrap();
        let far: Vec<Words> = rack.nodes().iter().map(|node| at(node, &first)).collect();
        for object in &far {
            assert_eq!(object.read(), Ok([1; WORDS]), "{which}");
        }
        rack.node(3).remove_region("users").unwrap();
        for object in far.iter().chain([&second]) {
            is_gone(object, &which);
        }
        let (a, b) = (at(&rack.node(2), &first), at(&rack.node(2), &kept));
        let mut both = rack.node(2).read_many(&[&a, &b]).into_iter();
        let addr = a.addr();
        let read = [both.next(), both.next()].map(|read| read.unwrap().map(|(_, all)| all));
        let gone = Err(AccessError::Gone { addr });
        assert_eq!(read, [gone, Ok([5; WORDS])], "{which}");
        for (node, writes) in [(0, true), (2, false), (3, true)] {
            let (node, mine) = (&rack.node(node), at(&rack.node(node), &first));
            let beside = at(node, &kept);
            let done = node.transaction(|t| {
                t.read(&beside)?;
                match writes {
                    true => t.write(&mine, [7; WORDS]),
                    false => t.read(&mine).map(drop),
                }
            });
            let gone = matches!(
                done,
                Err(TransactionError::Access(AccessError::Gone { .. }))
            );
            assert!(gone, "{which}: {done:?}");
        }
        assert!(matches!(old.check(), Err(RegionError::Removed { .. })));
        let none = old.alloc(7u64);
        assert!(
            matches!(none, Err(AllocError::Access(AccessError::Gone { .. }))),
            "{which}: {none:?}"
        );
        let again = rack.node(0).remove_region("users");
        assert!(
            matches!(again, Err(RegionError::NotFound { .. })),
            "{again:?}"
        );
        let again = rack.node(0).open_region(&spec);
        assert!(
            matches!(again, Err(RegionError::NotFound { .. })),
            "{again:?}"
        );
        // The name and the number are another region's, whose addresses are others.
        let new = rack.node(0).create_region(&spec).unwrap();
        assert_eq!((new.is_new(), new.home()), (true, old.home()), "{which}");
        assert!(new.addr() > second.addr(), "{which}");
        for nth in 0..8 {
            let fresh: Words = new.alloc([0; WORDS]).unwrap();
            assert_eq!(fresh.read(), Ok([0; WORDS]), "{which}");
            assert_eq!(at(&rack.node(nth % 4), &fresh).write(&[3; WORDS]), Ok(4));
        }
        for object in far.iter().chain([&second]) {
            is_gone(object, &which);
        }
        assert_eq!(kept.read(), Ok([5; WORDS]), "{which}");
        // And then lines have the number, and coherent memory.
        rack.node(2).remove_region("users").unwrap();
        for next in [
            RegionSpec::new("users", 640).copies(3),
            RegionSpec::new("users", 640)
                .copies(3)
                .survives(Survives::Rest),
        ] {
            let next = rack.node(1).create_region(&next).unwrap();
            let status = rack.node(1).groups();
            let it = status.iter().find(|it| it.name == "users").unwrap();
            assert_eq!(it.number, old.home().group().unwrap(), "{which}");
            for object in far.iter().chain([&second]) {
                is_gone(object, &which);
            }
            if next.contract() == Contract::Replicated {
                rack.node(1).remove_region("users").unwrap();
            }
        }
    }
}

/// What members keep of it is free each time: there is no room for two, and a small region after a
/// large one has few lines.
#[test]
fn a_region_with_copies_is_made_and_removed_a_hundred_times() {
    for fabric in FABRICS {
        let rack = rack(fabric, MODES[0], 3);
        let half = |name: &str| {
            let spec = RegionSpec::new(name, 40 << 20).contract(Contract::Object);
            spec.copies(3).line(4096)
        };
        let mut old: Vec<Object<u64>> = Vec::new();
        let mut most = 0;
        for round in 0..100usize {
            let (maker, remover) = (rack.node(round % 3), rack.node(round / 3 % 3));
            let region = maker.create_region(&half("half")).unwrap();
            let beside = maker.create_region(&half("beside"));
            let full = Err(RegionError::Alloc(AllocError::OutOfMemory { node: 0 }));
            assert_eq!(beside.map(drop), full, "{fabric:?} {round}");
            let objects = if round % 2 == 0 { 40 } else { 1 };
            let made = |_| region.alloc(round as u64 + 1).unwrap();
            let made: Vec<Object<u64>> = (0..objects).map(made).collect();
            let read = |object: &Object<u64>| object.read() == Ok(round as u64 + 1);
            assert!(made.iter().all(read), "{fabric:?} {round}");
            // By the region's own figures, of this node's copy: an object's line, those of rows,
            // and one or two beside.
            let status = remover.groups().remove(0);
            assert_eq!((status.name.as_str(), status.number), ("half", 0));
            let lines = status.copies.iter().filter_map(|copy| copy.lines).max();
            most = most.max(lines.unwrap());
            assert!(objects == 40 || lines < Some(10), "{round}: {lines:?}");
            remover.remove_region("half").unwrap();
            assert!(remover.groups().is_empty());
            old.extend(made.into_iter().next());
        }
        assert!((40..60).contains(&most), "{fabric:?}: {most}");
        let last = rack.node(0).create_region(&half("half")).unwrap();
        last.alloc(7u64).unwrap();
        for object in &old {
            let addr = object.addr();
            assert_eq!(object.read(), Err(AccessError::Gone { addr }), "{fabric:?}");
        }
    }
}

/// Whoever reads, writes, makes objects, has a transaction or a map there while it goes is told, at
/// once or when what it does has ended. None of that is in the next region.
#[test]
fn who_uses_objects_with_copies_while_their_region_goes_is_told() {
    for fabric in FABRICS {
        let rack = rack(fabric, MODES[0], 4);
        for round in 0..6u64 {
            let spec = spec("busy", 600);
            let region = rack.node(1).create_region(&spec).unwrap();
            let fresh: Words = region.alloc([0; WORDS]).unwrap();
            let (first, second) = (fresh.at(), region.alloc([0; WORDS]).unwrap().at());
            let map = MapSpec::new(2, 20);
            let map = rack.node(0).create_map(&[region.addr()], map).unwrap().at();
            let done = [const { AtomicU64::new(0) }; 4];
            std::thread::scope(|scope| {
                for (id, done) in done.iter().enumerate() {
                    let (rack, spec) = (&rack, &spec);
                    scope.spawn(move || {
                        let node = rack.node(id);
                        let region = node.open_region(spec).unwrap();
                        let first: Words = node.attach_object(first).unwrap();
                        let second: Words = node.attach_object(second).unwrap();
                        let map = node.attach_map(map).unwrap();
                        let step = |nth: u64| -> Result<(), AccessError> {
                            let all = first.read()?;
                            assert!(all.iter().all(|word| *word == all[0]));
                            first.write(&[round * 1000 + nth; WORDS])?;
                            match node.transaction(|t| {
                                let next = t.read(&first)?;
                                t.write(&first, next)?;
                                t.write(&second, next)
                            }) {
                                Ok(()) | Err(TransactionError::Conflict { .. }) => {}
                                Err(TransactionError::Access(why)) => return Err(why),
                                Err(other) => panic!("{fabric:?}: {other}"),
                            }
                            map.insert(&[nth as u8 % 4], &[id as u8]).map_err(access)?;
                            match region.alloc([1u64; WORDS]) {
                                Ok(object) => object.free(),
                                Err(error) => Err(access(error)),
                            }
                        };
                        let error = (0..).find_map(|nth| {
                            let done_so = step(nth).err();
                            done.fetch_add(1, SeqCst);
                            done_so
                        });
                        let gone = matches!(error, Some(AccessError::Gone { .. }));
                        assert!(gone, "{fabric:?}: {error:?}");
                    });
                }
                eventually("all are at work", || {
                    done.iter().all(|done| done.load(SeqCst) > 2)
                });
                rack.node(round as usize % 4).remove_region("busy").unwrap();
                // At once, while those are told.
                let next = rack.node(2).create_region(&spec).unwrap();
                for _ in 0..20 {
                    let fresh: Words = next.alloc([0; WORDS]).unwrap();
                    assert_eq!(fresh.read(), Ok([0; WORDS]), "{fabric:?}");
                }
            });
            rack.node(3).remove_region("busy").unwrap();
        }
    }
}

fn access(error: AllocError) -> AccessError {
    match error {
        AllocError::Access(error) => error,
        other => panic!("{other}"),
    }
}

/// The node that serves it dies while it is removed and made again, time after time: each handle's
/// call ends with a value of its own region or with a typed error, and at the end there is one
/// region, of which all is usable.
#[test]
fn the_home_dies_while_its_region_is_removed() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("objects-removed", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let spec = spec("again", 16);
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            let (spec, stop, done, nodes) = (&spec, &stop, &done, &nodes);
            scope.spawn(move || {
                for nth in 1.. {
                    if stop.load(SeqCst) {
                        return;
                    }
                    let region = nodes[3].create_region(spec).unwrap();
                    assert!(region.is_new(), "{fabric}: it was removed");
                    let object: Words = region.alloc([nth; WORDS]).unwrap();
                    let there = at(&nodes[1], &object);
                    assert_eq!(there.read(), Ok([nth; WORDS]), "{fabric}");
                    nodes[2].remove_region("again").unwrap();
                    // Wherever it is asked, as soon as the removal is over.
                    for node in &nodes[1..] {
                        let addr = object.addr();
                        let read = at(node, &object).read();
                        assert_eq!(read, Err(AccessError::Gone { addr }), "{fabric} {nth}");
                    }
                    done.fetch_add(1, SeqCst);
                }
            });
            cluster.first_dies_twice(&mut racks[0], nodes, (done, 5));
        });
        let region = nodes[1].create_region(&spec).unwrap();
        for nth in 0..16u64 {
            region.alloc([nth; WORDS]).unwrap();
        }
        let full = region.alloc(0u64);
        assert!(
            matches!(full, Err(AllocError::OutOfMemory { .. })),
            "{full:?}"
        );
    }
}
