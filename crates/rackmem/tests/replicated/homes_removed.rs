//! Regions of coherent memory with copies that are removed, and what has their name and number
//! next.

use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, MODES, Stop, eventually, rack};
use rackmem::locked::Mutex;
use rackmem::{
    AccessError, AllocError, Contract, LockError, Node, RackError, Region, RegionError, RegionSpec,
    Shared, Survives,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

const MORE: &str = "lease = '2s'\npatience = '60s'\nreplace_after = '200ms'\n";
const BLOCK: usize = 4096;
const BLOCKS: usize = 8;
const BOTH: [Survives; 2] = [Survives::Rest, Survives::Writes];

fn spec(name: &str, blocks: usize, survives: Survives) -> RegionSpec {
    let spec = RegionSpec::new(name, blocks * BLOCK).copies(3);
    spec.survives(survives)
}

fn word(node: &Node, addr: u64) -> Shared<u64> {
    node.attach(addr).unwrap()
}

fn is_bad<T: std::fmt::Debug>(result: &Result<T, AccessError>) -> bool {
    matches!(result, Err(AccessError::BadAddress { .. }))
}

/// Nothing is done with memory of a removed region, and each call says that there is none.
fn is_gone(node: &Node, addr: u64, which: &str) {
    assert!(is_bad(&node.attach::<u64>(addr)), "{which}");
    assert!(is_bad(&node.load(addr)), "{which}");
    let mut bytes = [7; 100];
    let read = node.read(addr, &mut bytes);
    assert!(is_bad(&read), "{which}: {read:?}");
    let written = node.write(addr, &bytes).map_err(|bulk| bulk.error);
    assert!(is_bad(&written), "{which}: {written:?}");
}

/// The same by a handle that is left.
fn is_left(word: &Shared<u64>, which: &str) {
    assert!(is_bad(&word.read()), "{which}");
    assert!(is_bad(&word.write(9)), "{which}");
    assert!(is_bad(&word.fetch_add(1)), "{which}");
    assert!(is_bad(&word.update(|old| old + 1)), "{which}");
}

/// All of a region is zeros, at each node in turn, and goes from one to the other.
fn is_fresh(nodes: &[Node], spec: &RegionSpec, which: &str) {
    for (nth, node) in nodes.iter().enumerate() {
        let region = node.open_region(spec).unwrap();
        for block in 0..region.bytes() / BLOCK {
            let word: Shared<u64> = region.shared(block * BLOCK / 8).unwrap();
            assert_eq!(word.fetch_add(1), Ok(nth as u64), "{which}: {block}");
            let last: Shared<u64> = region.shared((block + 1) * BLOCK / 8 - 1).unwrap();
            assert_eq!(last.read(), Ok(0), "{which}: {block}");
        }
    }
}

fn fill(region: &Region, value: u64) {
    let bytes = value.to_le_bytes().repeat(region.bytes() / 8);
    region.write(0, &bytes).unwrap();
}

#[test]
fn memory_of_a_removed_region_with_copies_is_gone() {
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        for survives in BOTH {
            let which = format!("{fabric:?} {mode:?} {survives:?}");
            let rack = rack(fabric, mode, 4);
            let kept = rack.node(2).create_region(&spec("kept", 2, survives));
            let kept = kept.unwrap();
            fill(&kept, 5);
            let spec = spec("pages", BLOCKS, survives);
            let old = rack.node(1).create_region(&spec).unwrap();
            fill(&old, 3);
            let nodes: Vec<Node> = (0..4).map(|id| rack.node(id)).collect();
            let at = |block: usize| old.addr() + (block * BLOCK) as u64;
            // Dirty at each of them, read by all, and at rest.
            for (nth, node) in nodes.iter().enumerate() {
                word(node, at(nth)).write(40 + nth as u64).unwrap();
                assert_eq!(word(node, at(5)).read(), Ok(3), "{which}");
            }
            nodes[0].evict(at(6)).unwrap();
            let handles = nodes
                .iter()
                .flat_map(|node| [0, 5, 6].map(|b| word(node, at(b))));
            let handles: Vec<Shared<u64>> = handles.collect();
            nodes[3].remove_region("pages").unwrap();
            handles.iter().for_each(|word| is_left(word, &which));
            for node in &nodes {
                for block in [0, 3, 5, 6, 7] {
                    is_gone(node, at(block), &which);
                }
                let again = node.remove_region("pages");
                assert!(
                    matches!(again, Err(RegionError::NotFound { .. })),
                    "{again:?}"
                );
            }
            let removed = |done| matches!(done, Err(RegionError::Removed { .. }));
            assert!(removed(old.check()) && removed(old.read(0, &mut [0])));
            assert!(removed(old.write(0, &[1])), "{which}");
            // The name and the number are another region's, whose addresses are others.
            let new = nodes[0].create_region(&spec).unwrap();
            assert_eq!((new.is_new(), new.home()), (true, old.home()), "{which}");
            assert!(new.addr() >= at(BLOCKS), "{which}");
            is_fresh(&nodes, &spec, &which);
            for node in &nodes {
                is_gone(node, at(0), &which);
                is_gone(node, at(BLOCKS - 1), &which);
            }
            handles.iter().for_each(|word| is_left(word, &which));
            let mut bytes = vec![0; 2 * BLOCK];
            kept.read(0, &mut bytes).unwrap();
            assert_eq!(bytes, 5u64.to_le_bytes().repeat(2 * BLOCK / 8), "{which}");
            nodes[2].remove_region("pages").unwrap();
            // Then lines have the number, objects, and less of coherent memory than there was.
            for next in [
                RegionSpec::new("pages", 640).copies(3),
                RegionSpec::new("pages", 640)
                    .copies(3)
                    .line(64)
                    .contract(Contract::Object),
                RegionSpec::new("pages", BLOCK).copies(3).survives(survives),
            ] {
                let next = nodes[1].create_region(&next).unwrap();
                let status = nodes[1].groups();
                let it = status.iter().find(|it| it.name == "pages").unwrap();
                assert_eq!(Some(it.number), old.home().group(), "{which}");
                if next.contract() == Contract::Object {
                    let object = next.alloc(7u64).unwrap();
                    let offset = |addr: u64| addr % (1 << 45);
                    assert!(offset(object.addr()) > offset(new.addr()), "{which}");
                    assert_eq!(object.read(), Ok(7), "{which}");
                }
                for node in &nodes {
                    is_gone(node, at(0), &which);
                    is_gone(node, new.addr(), &which);
                }
                if next.contract() == Contract::Coherent {
                    assert!(next.addr() > new.addr(), "{which}");
                    let word: Shared<u64> = next.shared(1).unwrap();
                    assert_eq!(word.fetch_add(1), Ok(0), "{which}");
                }
                nodes[3].remove_region("pages").unwrap();
            }
        }
    }
}

/// What members keep of it is free each time, and what the node that serves it has: there is no
/// room for two, and a small region after a large one has few lines.
#[test]
fn memory_with_copies_is_made_and_removed_a_hundred_times() {
    for fabric in FABRICS {
        let rack = rack(fabric, MODES[0], 3);
        let half = |name: &str| spec(name, (40 << 20) / BLOCK, Survives::Writes);
        let mut old = Vec::new();
        for round in 0..100usize {
            let (maker, remover) = (rack.node(round % 3), rack.node(round / 3 % 3));
            let region = maker.create_region(&half("half")).unwrap();
            let beside = maker.create_region(&half("beside"));
            let full = Err(RegionError::Alloc(AllocError::OutOfMemory { node: 0 }));
            assert_eq!(beside.map(drop), full, "{fabric:?} {round}");
            let blocks = if round % 2 == 0 { 20 } else { 1 };
            for block in 0..blocks {
                let word: Shared<u64> = region.shared(block * BLOCK / 8).unwrap();
                assert_eq!(
                    word.fetch_add(round as u64 + 1),
                    Ok(0),
                    "{fabric:?} {round}"
                );
            }
            let status = remover.groups().remove(0);
            assert_eq!((status.name.as_str(), status.number), ("half", 0));
            let lines = status.copies.iter().filter_map(|copy| copy.lines).max();
            assert!(lines <= Some(blocks as u64), "{round}: {lines:?}");
            remover.remove_region("half").unwrap();
            assert!(remover.groups().is_empty());
            old.push(region.addr());
        }
        let mut apart = old.clone();
        apart.dedup();
        assert_eq!(
            apart.len(),
            old.len(),
            "{fabric:?}: addresses are used once"
        );
        rack.node(0).create_region(&half("half")).unwrap();
        for addr in old {
            let read = rack.node(1).load(addr);
            assert_eq!(read, Err(AccessError::BadAddress { addr }), "{fabric:?}");
        }
    }
}

/// Whoever reads and writes there while it goes is told. None of that is in the next region.
#[test]
fn who_uses_memory_with_copies_while_its_region_goes_is_told() {
    for (fabric, survives) in FABRICS.into_iter().flat_map(|f| BOTH.map(|s| (f, s))) {
        let which = format!("{fabric:?} {survives:?}");
        let rack = rack(fabric, MODES[0], 4);
        let nodes: Vec<Node> = (0..4).map(|id| rack.node(id)).collect();
        for round in 0..6usize {
            // More than a cache has room for.
            let spec = spec("busy", 400, survives);
            let addr = nodes[1].create_region(&spec).unwrap().addr();
            let done = [const { AtomicU64::new(0) }; 4];
            std::thread::scope(|scope| {
                for (id, done) in done.iter().enumerate() {
                    let (node, which) = (&nodes[id], &which);
                    scope.spawn(move || {
                        let block = |block: usize| addr + (block % 400 * BLOCK) as u64;
                        let word = |nth: usize| node.attach::<u64>(block(nth));
                        let step = |nth: usize| -> Result<(), AccessError> {
                            word(0)?.fetch_add(1)?;
                            word(1 + nth % 3)?.read()?;
                            word(nth * 7 + id * 100)?.write(77)?;
                            let mut bytes = [0; 3 * BLOCK];
                            let at = block((nth * 11) % 390);
                            node.read(at, &mut bytes)?;
                            node.write(at, &bytes).map_err(|bulk| bulk.error)
                        };
                        let error = (0..).find_map(|nth| {
                            let error = step(nth).err();
                            done.fetch_add(1, SeqCst);
                            error
                        });
                        let bad = matches!(error, Some(AccessError::BadAddress { .. }));
                        assert!(bad, "{which}: {error:?}");
                    });
                }
                eventually("all are at work", || {
                    done.iter().all(|done| done.load(SeqCst) > 2)
                });
                nodes[round % 4].remove_region("busy").unwrap();
                // At once, while those are told.
                nodes[2].create_region(&spec).unwrap();
                is_fresh(&nodes, &spec, &which);
            });
            nodes[3].remove_region("busy").unwrap();
        }
    }
}

/// A thread that is inside a lock of it goes on and leaves; nobody enters any more.
#[test]
fn locks_of_a_removed_region_say_so() {
    for (fabric, survives) in FABRICS.into_iter().flat_map(|f| BOTH.map(|s| (f, s))) {
        let rack = rack(fabric, MODES[0], 3);
        let spec = spec("locks", 2, survives);
        let region = rack.node(1).create_region(&spec).unwrap();
        let lock = Mutex::in_region(&region, 1024, 5u64).unwrap();
        let far = rack.node(2).open_region(&spec).unwrap();
        let far = Mutex::in_region(&far, 1024, 0u64).unwrap();
        *far.lock().unwrap() += 1;
        let mut inside = lock.lock().unwrap();
        *inside += 1;
        rack.node(0).remove_region("locks").unwrap();
        drop(inside);
        for lock in [&lock, &far] {
            let refused = lock.lock().map(drop);
            let bad = matches!(
                refused,
                Err(LockError::Access(AccessError::BadAddress { .. }))
            );
            assert!(bad, "{fabric:?} {survives:?}: {refused:?}");
        }
        let next = rack.node(2).create_region(&spec).unwrap();
        let fresh = Mutex::in_region(&next, 1024, 9u64).unwrap();
        assert_eq!(*fresh.lock().unwrap(), 9, "{fabric:?} {survives:?}");
    }
}

/// Its pages go with it, where it is mapped, and those of the next one are others.
#[test]
fn a_mapped_region_with_copies_can_be_removed() {
    let rack = rack(FABRICS[1], MODES[0], 3);
    let spec = spec("mapped", 4, Survives::Rest);
    for round in 0..4u64 {
        let region = rack.node(1).create_region(&spec).unwrap();
        let Ok(pages) = region.map() else {
            return;
        };
        let far = rack.node(2).open_region(&spec).unwrap();
        let far: Shared<u64> = far.shared(3).unwrap();
        assert_eq!(far.fetch_add(round + 1), Ok(0));
        assert_eq!(pages.words()[3].fetch_add(1, SeqCst), round + 1);
        rack.node(0).remove_region("mapped").unwrap();
        assert!(is_bad(&far.read()));
        assert!(is_bad(&rack.node(1).load(region.addr() + 24)));
    }
}

/// The node that serves it dies while it is removed and made again, time after time: what is read
/// is of the region that is asked for, or there is none.
#[test]
fn the_home_of_memory_dies_while_its_region_is_removed() {
    for (fabric, survives) in NETWORKS.into_iter().flat_map(|f| BOTH.map(|s| (f, s))) {
        let which = format!("{fabric} {survives:?}");
        let name = format!("homes-removed-{}", survives.name());
        let cluster = Cluster::new(&name, fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let spec = spec("again", 4, survives);
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            let (spec, stop, done, nodes, which) = (&spec, &stop, &done, &nodes, &which);
            scope.spawn(move || {
                let mut old = Vec::new();
                for nth in 1.. {
                    if stop.load(SeqCst) {
                        return;
                    }
                    let region = nodes[3].create_region(spec).unwrap();
                    assert!(region.is_new(), "{which}: it was removed");
                    let addr = region.addr();
                    let put = word(&nodes[3], addr).write(nth);
                    let read = word(&nodes[1], addr).read();
                    let put = put.is_ok() || matches!(put, Err(AccessError::Interrupted { .. }));
                    assert!(put, "{which}");
                    // What a dead node's cache alone had goes on as it was at home; here that is
                    // none of the living.
                    assert!(
                        matches!(read, Ok(value) if value == nth || value == 0),
                        "{read:?}"
                    );
                    nodes[2].remove_region("again").unwrap();
                    old.push(addr);
                    // The remover knows at once, and the others by themselves.
                    for addr in old.iter().rev().take(5) {
                        assert!(is_bad(&nodes[2].load(*addr)), "{which} {nth}");
                    }
                    eventually("all have heard", || {
                        let read = [1, 2, 3].map(|id| nodes[id].load(addr));
                        let fenced = Err(AccessError::Rack(RackError::Fenced));
                        assert!(!read.contains(&fenced), "{which} {nth}: {read:?}");
                        read.iter().all(is_bad)
                    });
                    done.fetch_add(1, SeqCst);
                }
            });
            cluster.first_dies_twice(&mut racks[0], nodes, (done, 3));
        });
        let region = nodes[1].create_region(&spec).unwrap();
        fill(&region, 8);
        let mut bytes = vec![0; 4 * BLOCK];
        nodes[3]
            .open_region(&spec)
            .unwrap()
            .read(0, &mut bytes)
            .unwrap();
        assert_eq!(bytes, 8u64.to_le_bytes().repeat(4 * BLOCK / 8), "{which}");
    }
}

/// A process that makes and removes it dies, at any time: there is a whole region, or none.
#[test]
fn removers_that_die_leave_memory_with_copies_or_none() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("homes-removers", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        // Nodes 0 to 2 keep copies, and the remover none.
        let spec = spec("again", 4, Survives::Writes).on(0);
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let (node, spec, done) = (&nodes[3], &spec, &done);
            let ends = scope.spawn(move || {
                let step = || -> Result<(), RegionError> {
                    let region = node.create_region(spec)?;
                    region.shared::<u64>(0)?.fetch_add(1)?;
                    node.remove_region("again")
                };
                while step().is_ok() {
                    done.fetch_add(1, SeqCst);
                }
            });
            eventually("it is made and removed", || done.load(SeqCst) > 5);
            racks[3] = None;
            eventually("the remover ends", || ends.is_finished());
        });
        eventually("the death is noticed", || !nodes[1].is_member(3));
        match nodes[1].open_region(&spec) {
            Ok(region) => {
                let word: Shared<u64> = region.shared(0).unwrap();
                let value = word.read().unwrap();
                assert!(value <= 1, "{fabric}: {value}");
                nodes[2].remove_region("again").unwrap();
                eventually("it is gone", || is_bad(&word.read()));
            }
            Err(RegionError::NotFound { .. }) => {}
            Err(error) => panic!("{fabric}: {error}"),
        }
        assert!(nodes[1].create_region(&spec).unwrap().is_new(), "{fabric}");
        is_fresh(&nodes[..3], &spec, fabric);
    }
}
