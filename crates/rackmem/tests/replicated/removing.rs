//! Regions with copies that are removed, and what has their name and number next.

use crate::durable::{durable, folders, line, write_some};
use crate::{FABRICS, MODES, eventually, rack};
use rackmem::{AccessError, Durability, RegionError, RegionSpec, Replicated};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[test]
fn handles_of_a_removed_region_say_so() {
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let rack = rack(fabric, mode, 4);
        let spec = RegionSpec::new("ledger", 640).copies(3).on(1);
        let old = rack.node(0).create_region(&spec).unwrap();
        let value: Replicated<u64> = old.replicated(3).unwrap();
        let there = rack.node(2).open_region(&spec).unwrap();
        value.write(7).unwrap();
        rack.node(3).remove_region("ledger").unwrap();
        let again = rack.node(0).remove_region("ledger").unwrap_err();
        assert!(matches!(again, RegionError::NotFound { .. }), "{again}");
        let addr = value.addr();
        eventually("nodes have heard of it", || {
            value.write(8) == Err(AccessError::Removed { addr })
        });
        eventually("so has another node", || there.check().is_err());
        let error = there.read(0, &mut [0; 8]).unwrap_err();
        assert!(matches!(error, RegionError::Removed { .. }), "{error}");
        assert!(rack.node(0).groups().is_empty());
        // Another region has the number, the addresses and the name, and nothing else of it.
        let spec = RegionSpec::new("ledger", 1280).copies(3).on(1);
        let new = rack.node(1).create_region(&spec).unwrap();
        assert_eq!((new.addr(), new.is_new()), (old.addr(), true));
        for node in rack.nodes() {
            let line = node
                .open_region(&spec)
                .unwrap()
                .replicated::<u64>(3)
                .unwrap();
            assert_eq!(line.read().unwrap(), 0, "{fabric:?} {mode:?}");
        }
        assert_eq!(value.read(), Err(AccessError::Removed { addr }));
        assert_eq!(value.write(9), Err(AccessError::Removed { addr }));
        let line: Replicated<u64> = new.replicated(3).unwrap();
        assert_eq!(line.read().unwrap(), 0);
        line.write(10).unwrap();
        assert_eq!(
            rack.node(3)
                .attach_replicated::<u64>(addr)
                .unwrap()
                .read()
                .unwrap(),
            10
        );
    }
}

/// A region is removed while others write: each operation ends, and what has its number next has
/// none of them. There are more than a rack has numbers.
#[test]
fn late_writes_never_land_in_the_next_region() {
    for fabric in FABRICS {
        let rack = rack(fabric, MODES[0], 4);
        for round in 0..40u64 {
            let spec = RegionSpec::new(&format!("round {round}"), 64 * 4).copies(3);
            let region = rack.node(0).create_region(&spec).unwrap();
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for node in 0..3usize {
                    let line: Replicated<u64> = rack
                        .node(node)
                        .open_region(&spec)
                        .unwrap()
                        .replicated(node)
                        .unwrap();
                    // The last region's writes would be seen.
                    assert_eq!(line.read().unwrap(), 0, "{fabric:?} {round}");
                    let stop = &stop;
                    scope.spawn(move || {
                        while !stop.load(SeqCst) {
                            match line.write(round + 1) {
                                Ok(()) => {}
                                Err(AccessError::Removed { .. }) => return,
                                Err(error) => panic!("{error}"),
                            }
                        }
                    });
                }
                rack.node(3).remove_region(region.name()).unwrap();
                eventually("all have heard of it", || {
                    rack.nodes().iter().all(|node| node.groups().is_empty())
                });
                stop.store(true, SeqCst);
            });
        }
        assert!(rack.node(0).groups().is_empty());
    }
}

/// Stores are removed with their region, also at a node that was away meanwhile, and the next
/// region of this name and number has nothing of them.
#[test]
fn stores_of_a_removed_region_are_removed() {
    let durability = Durability::Sync;
    let cluster = durable("removed", "");
    write_some(&cluster, durability);
    let spec = RegionSpec::new("ledger", 640)
        .copies(3)
        .durability(durability);
    {
        let (_racks, nodes) = cluster.nodes(2);
        nodes[1].remove_region("ledger").unwrap();
        eventually("two have removed theirs", || {
            folders(&cluster, 0).is_empty() && folders(&cluster, 1).is_empty()
        });
        assert_eq!(folders(&cluster, 2).len(), 1, "it is away");
    }
    let (_racks, nodes) = cluster.nodes(3);
    nodes[2].create_region(&spec).unwrap();
    for node in &nodes {
        for nth in 0..10 {
            assert_eq!(line(node, durability, nth).read().unwrap(), 0);
        }
    }
    line(&nodes[0], durability, 3).write(9).unwrap();
    assert_eq!(line(&nodes[2], durability, 3).read().unwrap(), 9);
    eventually("the store of the old one is removed", || {
        let left = folders(&cluster, 2);
        left.len() == 1 && !left[0].ends_with("group-0-1-1")
    });
}
