//! Names of regions that a group has copies of: whichever node dies, none is lost.

use crate::eventually;
use crate::members::{Cluster, NETWORKS};
use rackmem::locked::Mutex;
use rackmem::{Node, Rack, RegionError, RegionSpec};
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const MORE: &str = "copies = 3\nlease = '1500ms'\npatience = '60s'\nreplace_after = '200ms'\n";

fn names(node: &Node) -> Vec<String> {
    let regions = node.regions().unwrap();
    let names = regions.iter().map(|region| region.spec.name().to_owned());
    names.collect()
}

fn write(node: &Node, name: &str, value: u64) {
    let region = node.create_region(&RegionSpec::new(name, 64)).unwrap();
    region.write(0, &value.to_le_bytes()).unwrap();
}

fn read(node: &Node, name: &str) -> u64 {
    let region = node.open_region(&RegionSpec::new(name, 64)).unwrap();
    let mut bytes = [0; 8];
    region.read(0, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// The node that has the table dies, and so does the one that has it next: everyone goes on with
/// all names, those of locks too, and a node that comes back finds them.
#[test]
fn names_outlive_the_node_that_keeps_them() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("keeper", fabric, 5, MORE);
        let (mut racks, mut nodes) = cluster.nodes(5);
        write(&nodes[4], "ledger", 7);
        write(&nodes[3], "log", 8);
        let lock = Mutex::named(&nodes[4], "door", 41u64).unwrap();
        let handle = nodes[2].open_region(&RegionSpec::new("log", 64)).unwrap();
        racks[0] = None;
        // Whoever asks before the death is known waits for what follows.
        assert_eq!(read(&nodes[2], "ledger"), 7, "{fabric}");
        assert!(!nodes[2].is_member(0));
        assert_eq!(names(&nodes[1]), ["door", "ledger", "log"], "{fabric}");
        if fabric == "udp" {
            let told = rackmem::diagnostics::inspect_regions(&cluster.config);
            let told = told.unwrap().expect("somebody answers");
            let told: Vec<&str> = told.iter().map(|region| region.spec.name()).collect();
            assert_eq!(told, ["door", "ledger", "log"]);
        }
        write(&nodes[4], "more", 9);
        nodes[1].remove_region("log").unwrap();
        let gone = RegionError::Removed { name: "log".into() };
        assert_eq!(handle.check(), Err(gone), "{fabric}");
        let same = Mutex::named(&nodes[3], "door", 0u64).unwrap();
        *same.lock().unwrap() += 1;
        assert_eq!(*lock.lock().unwrap(), 42);
        eventually("another has its copies", || {
            let all = nodes[1].groups();
            let names = all.iter().find(|group| group.name == ".names").unwrap();
            names.copies.iter().all(|copy| copy.counts && copy.live)
        });
        racks[1] = None;
        assert_eq!(names(&nodes[2]), ["door", "ledger", "more"], "{fabric}");
        write(&nodes[3], "log", 10);
        assert!(handle.check().is_err(), "it is another region");
        // The lowest node keeps the table again, without having seen what has become of it.
        racks[0] = Some(cluster.node(0));
        nodes[0] = racks[0].as_ref().unwrap().node(0);
        assert_eq!(names(&nodes[0]), ["door", "ledger", "log", "more"]);
        write(&nodes[0], "last", 11);
        assert_eq!(read(&nodes[4], "last"), 11);
        assert_eq!(read(&nodes[0], "log"), 10);
        assert_eq!(read(&nodes[0], "more"), 9);
    }
}

/// A node keeps the table twice, and another between: what caches had of its first one is nothing
/// to anybody.
#[test]
fn a_table_that_comes_back_to_a_node_is_not_what_it_was() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("twice", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        write(&nodes[3], "old", 1);
        racks[0] = None;
        assert_eq!(names(&nodes[2]), ["old"], "{fabric}");
        racks[0] = Some(cluster.node(0));
        write(&nodes[3], "new", 2);
        nodes[3].remove_region("old").unwrap();
        racks[0] = None;
        eventually("the death is noticed", || !nodes[2].is_member(0));
        assert_eq!(names(&nodes[2]), ["new"], "{fabric}");
        write(&nodes[2], "old", 3);
        assert_eq!(read(&nodes[1], "old"), 3);
    }
}

/// Names come and go while the node that keeps them dies and comes back: what a thread was told is
/// so, and the books of memory are right in the end.
#[test]
fn what_was_created_stays_and_what_was_removed_is_gone() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("churn", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        write(&nodes[3], "first", 1);
        let before = nodes[3].metrics().memory.given;
        let stop = AtomicBool::new(false);
        let there: StdMutex<Vec<String>> = StdMutex::default();
        std::thread::scope(|scope| {
            for (thread, id) in [(0, 2), (1, 3), (2, 3)] {
                let (node, stop, there) = (&nodes[id], &stop, &there);
                scope.spawn(move || {
                    for nth in 0.. {
                        if stop.load(SeqCst) {
                            return;
                        }
                        let name = format!("{thread}.{nth}");
                        let spec = RegionSpec::new(&name, 64).on(3);
                        let region = node.create_region(&spec).unwrap();
                        assert!(region.is_new(), "{name}");
                        if nth % 3 == 0 {
                            there.lock().unwrap().push(name);
                        } else {
                            node.remove_region(&name).unwrap();
                        }
                        if nth > 150 {
                            return;
                        }
                    }
                });
            }
            for _ in 0..2 {
                std::thread::sleep(std::time::Duration::from_millis(100));
                racks[0] = None;
                eventually("the death is noticed", || !nodes[1].is_member(0));
                racks[0] = Some(cluster.node(0));
            }
            stop.store(true, SeqCst);
        });
        let mut expected = there.into_inner().unwrap();
        let kept = expected.len() as u64;
        expected.push("first".into());
        expected.sort();
        assert_eq!(names(&nodes[2]), expected, "{fabric}");
        eventually("what was removed is free", || {
            nodes[3].metrics().memory.given == before + 64 * kept
        });
    }
}

/// A rack of less nodes than copies says so, and its keeper does not leave.
#[test]
fn names_take_as_many_nodes_as_copies() {
    let few = "copies = 3\nlease = '5s'\npatience = '300ms'\n";
    let cluster = Cluster::new("few", "udp", 3, few);
    let first = cluster.node(0);
    let error = first.node(0).create_region(&RegionSpec::new("log", 64));
    let few = RegionError::FewMembers { copies: 3, live: 1 };
    assert_eq!(error.unwrap_err(), few);
    let _others: Vec<Rack> = [1, 2].map(|id| cluster.node(id)).into();
    eventually("there is a table", || {
        first
            .node(0)
            .create_region(&RegionSpec::new("log", 64))
            .is_ok()
    });
    let own = first.node(0).create_region(&RegionSpec::new(".names", 64));
    assert!(matches!(own, Err(RegionError::BadName { .. })));
    assert!(first.leave().is_err());
}
