//! Coherent memory whose home a group keeps: whichever node dies, what was at rest is there, and so
//! is what live nodes have in their caches.

use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, MODES, eventually, rack};
use rackmem::{
    AccessError, Contract, Durability, LeaveError, Node, RackError, Region, RegionError,
    RegionSpec, Shared, Survives, membership,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

pub const MORE: &str = "lease = '1500ms'\npatience = '60s'\nreplace_after = '200ms'\n";
pub const BLOCK: usize = 4096;

pub fn spec(name: &str, blocks: usize, survives: Survives) -> RegionSpec {
    let spec = RegionSpec::new(name, blocks * BLOCK).copies(3);
    spec.survives(survives)
}

pub fn put(region: &Region, block: usize, value: u64) {
    let written = region.write(block * BLOCK, &value.to_le_bytes());
    written.unwrap();
}

pub fn get(region: &Region, block: usize) -> u64 {
    let mut bytes = [0; 8];
    region.read(block * BLOCK, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// Drops a node's copy of a block, which goes home if it is dirty.
fn rest(node: &Node, region: &Region, block: usize) {
    node.evict(region.addr() + (block * BLOCK) as u64).unwrap();
}

pub fn replaced(node: &Node, name: &str) {
    eventually("a live node has its copies", || {
        let all = node.groups();
        let group = all.iter().find(|group| group.name == name).unwrap();
        group.copies.iter().all(|copy| copy.counts && copy.live)
    });
}

/// The node that serves it dies, and the one that serves it next, and the first one comes back:
/// nothing is lost of what was at rest, or is in the cache of a live node.
#[test]
fn memory_outlives_the_nodes_that_serve_it() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("homes", fabric, 5, MORE);
        let (mut racks, mut nodes) = cluster.nodes(5);
        let spec = spec("pages", 6, Survives::Rest);
        let made = nodes[4].create_region(&spec).unwrap();
        assert_eq!(made.contract(), Contract::Coherent);
        let open = |node: &Node| node.open_region(&spec).unwrap();
        // At rest, dirty at a live node, read by one and dirty at another before.
        put(&made, 0, 10);
        rest(&nodes[4], &made, 0);
        put(&open(&nodes[3]), 1, 11);
        put(&open(&nodes[2]), 2, 12);
        assert_eq!(get(&made, 2), 12);
        put(&open(&nodes[0]), 3, 13);
        rest(&nodes[0], &open(&nodes[0]), 3);
        let check = |node: &Node, more: &[u64]| {
            let region = open(node);
            for block in 0..4 {
                assert_eq!(get(&region, block), 10 + block as u64, "{fabric}: {block}");
            }
            for (at, value) in more.iter().enumerate() {
                assert_eq!(get(&region, 4 + at), *value, "{fabric}");
            }
        };
        racks[0] = None;
        // Whoever asks before the death is known waits for what follows.
        check(&nodes[4], &[0, 0]);
        check(&nodes[1], &[0, 0]);
        assert!(!nodes[4].is_member(0));
        put(&open(&nodes[4]), 4, 77);
        rest(&nodes[4], &made, 4);
        replaced(&nodes[1], "pages");
        racks[1] = None;
        check(&nodes[2], &[77, 0]);
        put(&open(&nodes[3]), 5, 78);
        // The lowest node serves it again, without having seen what has become of it.
        racks[0] = Some(cluster.node(0));
        nodes[0] = racks[0].as_ref().unwrap().node(0);
        check(&nodes[0], &[77, 78]);
        check(&nodes[3], &[77, 78]);
    }
}

/// Two nodes count while the one that serves the counters dies and comes back.
#[test]
fn counters_are_exact_while_their_home_dies() {
    const COUNTERS: usize = 4;
    for fabric in NETWORKS {
        let cluster = Cluster::new("counters", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        let spec = spec("counters", COUNTERS, Survives::Rest);
        nodes[3].create_region(&spec).unwrap();
        let (done, doubtful) = (AtomicU64::new(0), AtomicU64::new(0));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (thread, id) in [1, 2, 3, 3].into_iter().enumerate() {
                let (node, spec, stop) = (&nodes[id], &spec, &stop);
                let (done, doubtful) = (&done, &doubtful);
                scope.spawn(move || {
                    let region = node.open_region(spec).unwrap();
                    let counters: Vec<Shared<u64>> = (0..COUNTERS)
                        .map(|nth| region.shared(nth * BLOCK / 8).unwrap())
                        .collect();
                    for nth in thread.. {
                        if stop.load(SeqCst) {
                            return;
                        }
                        match counters[nth % COUNTERS].fetch_add(1) {
                            Ok(_) => done.fetch_add(1, SeqCst),
                            Err(AccessError::Interrupted { .. }) => doubtful.fetch_add(1, SeqCst),
                            Err(error) => panic!("{fabric}: {error}"),
                        };
                    }
                });
            }
            for _ in 0..2 {
                let before = done.load(SeqCst);
                eventually("they count", || done.load(SeqCst) > before + 200);
                racks[0] = None;
                eventually("the death is noticed", || !nodes[1].is_member(0));
                let before = done.load(SeqCst);
                eventually("they go on", || done.load(SeqCst) > before + 200);
                racks[0] = Some(cluster.node(0));
            }
            stop.store(true, SeqCst);
        });
        let region = nodes[1].open_region(&spec).unwrap();
        let sum: u64 = (0..COUNTERS).map(|block| get(&region, block)).sum();
        let (done, doubtful) = (done.load(SeqCst), doubtful.load(SeqCst));
        assert!(
            (done..=done + doubtful).contains(&sum),
            "{fabric}: {done} + {doubtful} made {sum}"
        );
    }
}

/// Threads of a process that closes its rack are told so, however patient they are: nobody answers
/// what they have asked, and where writes survive they have more to ask.
#[test]
fn threads_of_a_closed_rack_end_with_it() {
    // Longer than the test is patient: no lease that ends may end them.
    const PATIENT: &str = "lease = '65s'\npatience = '900s'\n";
    for fabric in NETWORKS {
        for survives in [Survives::Rest, Survives::Writes] {
            let name = format!("closed-{}", survives.name());
            let cluster = Cluster::new(&name, fabric, 4, PATIENT);
            let (mut racks, nodes) = cluster.nodes(4);
            let spec = spec("closed", 1, survives);
            nodes[3].create_region(&spec).unwrap();
            let done = AtomicU64::new(0);
            let stop = AtomicBool::new(false);
            let count = |node: &Node| {
                let region = node.open_region(&spec)?;
                let word: Shared<u64> = region.shared(0)?;
                while !stop.load(SeqCst) {
                    match word.fetch_add(1) {
                        Err(AccessError::Interrupted { .. }) => {}
                        counted => drop(counted?),
                    }
                    done.fetch_add(1, SeqCst);
                }
                Ok::<(), RegionError>(())
            };
            std::thread::scope(|scope| {
                // The block goes from one to the other, by the node that serves it.
                let ends = [0, 0, 1].map(|id| {
                    let node = &nodes[id];
                    scope.spawn(|| count(node))
                });
                eventually("they count", || done.load(SeqCst) > 200);
                (racks[0], racks[1]) = (None, None);
                stop.store(true, SeqCst);
                eventually("they end", || ends.iter().all(|end| end.is_finished()));
                for end in ends {
                    // Who had the block has asked for nothing.
                    match end.join().unwrap() {
                        Ok(()) | Err(RegionError::Rack(RackError::Closed)) => {}
                        Err(error) => panic!("{fabric}: {error}"),
                    }
                }
            });
        }
    }
}

/// What waits for a majority of one region's copies, because two have died and nobody has noticed,
/// keeps nothing waiting that is about another region: both are served by the same node.
#[test]
fn a_region_without_a_majority_keeps_no_other_one_waiting() {
    // Longer than the test is patient.
    const PATIENT: &str = "lease = '65s'\npatience = '900s'\n";
    for fabric in NETWORKS {
        let cluster = Cluster::new("beside", fabric, 5, PATIENT);
        let (mut racks, nodes) = cluster.nodes(5);
        let made = |name: &str, on| {
            let spec = spec(name, 2, Survives::Writes).on(on);
            nodes[4].create_region(&spec).unwrap()
        };
        let (dead, live) = (made("dead", 1), made("live", 3));
        let members = |name: &str| {
            let all = nodes[4].groups();
            let group = all.iter().find(|group| group.name == name).unwrap();
            let members: Vec<u16> = group.copies.iter().map(|copy| copy.node).collect();
            members
        };
        assert_eq!(members("dead")[..2], [1, 2]);
        assert!(!members("live").iter().any(|node| [1, 2].contains(node)));
        put(&dead, 0, 1);
        put(&live, 0, 1);
        (racks[1], racks[2]) = (None, None);
        let written = AtomicU64::new(0);
        std::thread::scope(|scope| {
            // Closed also if this fails: nobody else ends what waits.
            let open = std::mem::take(&mut racks);
            // One that is in place comes home, and one is to be put in place.
            let waits = [0, 1].map(|block| {
                let dead = &dead;
                scope.spawn(move || dead.write(block * BLOCK, &[7; 8]))
            });
            scope.spawn(|| {
                for value in 2..100 {
                    put(&live, 0, value);
                    put(&live, 1, value);
                    written.store(value, SeqCst);
                }
            });
            eventually("the other region is used", || written.load(SeqCst) == 99);
            assert!(!waits.iter().any(|wait| wait.is_finished()), "{fabric}");
            drop(open);
            for wait in waits {
                assert!(wait.join().unwrap().is_err(), "{fabric}");
            }
        });
    }
}

/// A node that is back has not begun the epoch that it has come into, and has kept nothing in the
/// one before: while the rack waits for a dead member it serves nothing, even to itself.
#[test]
fn a_node_that_is_back_serves_nothing_of_the_epoch_before() {
    const LONG: &str = "lease = '12s'\npatience = '60s'\n";
    for fabric in NETWORKS {
        let cluster = Cluster::new("back", fabric, 5, LONG);
        let (mut racks, nodes) = cluster.nodes(5);
        let spec = spec("back", 1, Survives::Rest);
        let made = nodes[3].create_region(&spec).unwrap();
        put(&made, 0, 1);
        rest(&nodes[3], &made, 0);
        put(&made, 0, 2);
        let copies = nodes[3].groups()[0].copies.clone();
        let silent = [4, 2, 1].into_iter();
        let mut silent = silent.filter(|id| copies.iter().all(|copy| copy.node != *id));
        let silent = silent.next().unwrap();
        racks[usize::from(silent)] = None;
        racks[0] = None;
        let remove = |id: u16| {
            let role = membership::Role::Node(id);
            membership::remove(&cluster.store(), role, crate::LONG).unwrap();
        };
        remove(0);
        eventually("the epoch begins, and waits", || !nodes[3].is_member(0));
        racks[0] = Some(cluster.node(0));
        let node = racks[0].as_ref().unwrap().node(0);
        std::thread::scope(|scope| {
            let reads = scope.spawn(|| get(&node.open_region(&spec).unwrap(), 0));
            // Longer than a read of what it has takes.
            std::thread::sleep(std::time::Duration::from_millis(500));
            remove(silent);
            assert_eq!(reads.join().unwrap(), 2, "{fabric}");
        });
    }
}

/// A node writes and dies. What it had written is there if writes survive; otherwise what was at
/// rest is.
#[test]
fn what_a_dead_node_wrote_last_survives_if_it_is_to() {
    for fabric in NETWORKS {
        for (survives, left) in [(Survives::Rest, 1), (Survives::Writes, 2)] {
            let name = format!("last-{}", survives.name());
            let cluster = Cluster::new(&name, fabric, 4, MORE);
            let (mut racks, nodes) = cluster.nodes(4);
            let spec = spec("last", 40, survives);
            let region = nodes[0].create_region(&spec).unwrap();
            let long = |value: u64| value.to_le_bytes().repeat(36 * BLOCK / 8);
            put(&region, 0, 1);
            let word: Shared<u64> = region.shared(BLOCK / 8).unwrap();
            word.write(1).unwrap();
            let range = nodes[0]
                .attach_slice::<u8>(region.addr() + 4 * BLOCK as u64, 36 * BLOCK)
                .unwrap();
            range.write_from(0, &long(1)).unwrap();
            for block in 0..40 {
                rest(&nodes[0], &region, block);
            }
            put(&region, 0, 2);
            word.fetch_add(1).unwrap();
            range.write_from(0, &long(2)).unwrap();
            // The node that serves it, too.
            racks[0] = None;
            let region = nodes[2].open_region(&spec).unwrap();
            for block in [0, 1, 4, 7, 20, 39] {
                assert_eq!(get(&region, block), left, "{fabric}, {survives:?}: {block}");
            }
        }
    }
}

/// The node that serves it dies. Nobody uses the memory afterwards, and all copies have what was
/// written, in the epoch that has begun; what was never written takes no memory, and what it costs
/// ends.
#[test]
fn memory_that_nobody_uses_is_swept_after_a_death() {
    const BLOCKS: usize = 200;
    const WRITTEN: usize = 30;
    for fabric in NETWORKS {
        let cluster = Cluster::new("swept", fabric, 5, MORE);
        let (mut racks, nodes) = cluster.nodes(5);
        let spec = spec("swept", BLOCKS, Survives::Rest);
        let region = nodes[4].create_region(&spec).unwrap();
        for nth in 0..WRITTEN {
            put(&region, nth * 6, 7 + nth as u64);
            rest(&nodes[4], &region, nth * 6);
        }
        let status = |node: &Node| node.groups().into_iter().find(|it| it.name == "swept");
        assert_eq!(status(&nodes[1]).unwrap().swept, None, "another serves it");
        racks[0] = None;
        let swept = || status(&nodes[1]).unwrap().swept;
        eventually("all of it is swept", || {
            swept().is_some_and(|sweep| (sweep.blocks, sweep.of) == (200, 200))
        });
        replaced(&nodes[1], "swept");
        eventually("all of it is swept with the new copy", || {
            swept().is_some_and(|sweep| sweep.blocks == sweep.of)
        });
        let repaired = swept().unwrap().repaired;
        assert_eq!(repaired, WRITTEN as u64, "{fabric}");
        for node in &nodes[1..] {
            let group = status(node).unwrap();
            let own = group.copies.iter().find(|copy| copy.node == node.id());
            if let Some(copy) = own {
                eventually("each copy has what was written", || {
                    let lines = status(node).unwrap();
                    let mut copies = lines.copies.iter().filter(|it| it.node == copy.node);
                    copies.next().and_then(|copy| copy.lines) == Some(WRITTEN as u64)
                });
            }
        }
        let work = || {
            let copies = nodes[1].metrics().copies;
            copies.reads + copies.writes
        };
        let before = work();
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert_eq!(work(), before, "{fabric}: it goes on without an end");
        for nth in 0..WRITTEN {
            assert_eq!(get(&region, nth * 6), 7 + nth as u64, "{fabric}");
        }
    }
}

/// On every fabric, with and without a switch: what programs see of it.
#[test]
fn it_is_used_as_all_coherent_memory_is() {
    for fabric in FABRICS {
        for mode in MODES {
            for survives in [Survives::Rest, Survives::Writes] {
                let rack = rack(fabric, mode, 3);
                let spec = spec("table", 64, survives);
                let region = rack.node(2).create_region(&spec).unwrap();
                assert!(region.is_new());
                let same = rack.node(1).create_region(&spec).unwrap();
                assert!(!same.is_new() && same.addr() == region.addr());
                let bytes: Vec<u8> = (0..64 * BLOCK).map(|at| (at / 7) as u8).collect();
                region.write(0, &bytes).unwrap();
                let mut read = vec![0; 64 * BLOCK - 5];
                same.read(5, &mut read).unwrap();
                assert_eq!(read, bytes[5..], "{fabric:?}, {mode:?}");
                let count: Shared<u64> = region.shared(3).unwrap();
                let before = count.read().unwrap();
                for node in rack.nodes() {
                    let region = node.open_region(&spec).unwrap();
                    region.shared::<u64>(3).unwrap().fetch_add(1).unwrap();
                }
                assert_eq!(count.read().unwrap(), before.wrapping_add(3));
                let all = rack.node(0).regions().unwrap();
                assert_eq!(all[0].spec.asks_survives(), Some(survives));
            }
        }
    }
}

/// What it is not is said.
#[test]
fn refusals_say_why() {
    let cluster = Cluster::new("refusals", "udp", 3, MORE);
    let (mut racks, nodes) = cluster.nodes(3);
    let rest = spec("memory", 2, Survives::Rest);
    let region = nodes[1].create_region(&rest).unwrap();
    let node = &nodes[2];
    let refused = |spec: &RegionSpec| node.create_region(spec).unwrap_err();
    let name = || "memory".to_owned();
    assert_eq!(
        refused(&spec("memory", 2, Survives::Writes)),
        RegionError::Mismatch { name: name() }
    );
    assert_eq!(
        refused(&spec("memory", 3, Survives::Rest)),
        RegionError::Mismatch { name: name() }
    );
    let plain = RegionSpec::new("memory", 2 * BLOCK);
    let has = 3;
    assert_eq!(
        refused(&plain),
        RegionError::OtherCopies { name: name(), has }
    );
    nodes[0]
        .create_region(&RegionSpec::new("plain", 2 * BLOCK))
        .unwrap();
    let has = 0;
    assert_eq!(
        refused(&spec("plain", 2, Survives::Rest)),
        RegionError::OtherCopies {
            name: "plain".into(),
            has
        }
    );
    let durability = Durability::Sync;
    assert_eq!(
        refused(&spec("synced", 2, Survives::Rest).durability(durability)),
        RegionError::NoStore { durability }
    );
    // Behind its end there is nothing, and no group has the next home.
    let end = region.addr() + 2 * BLOCK as u64;
    assert_eq!(node.load(end), Err(AccessError::BadAddress { addr: end }));
    let next = region.addr() + (1 << 48);
    assert_eq!(node.load(next), Err(AccessError::BadAddress { addr: next }));
    // Who serves it stays.
    let keeper = racks[0].take().unwrap();
    assert!(matches!(keeper.leave(), Err(LeaveError::InUse { node: 0 })));
}
