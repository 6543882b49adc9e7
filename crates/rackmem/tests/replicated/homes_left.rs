//! Members leave until too few keep the memory: who leaves then waits for nobody, and says whether
//! anything is lost by that.

use crate::homes::{BLOCK, MORE, get, put, spec};
use crate::members::{Cluster, NETWORKS};
use rackmem::{LeaveError, Rack, RegionSpec, Replicated, Shared, Survives};
use std::sync::{Barrier, mpsc};
use std::time::Duration;

const NODES: usize = 3;

/// All are told to end at the same time. They have more and more copies of memory that others keep,
/// so the last ones bring theirs home while the first ones go.
#[test]
fn all_members_leave_at_once() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("together", fabric, NODES, MORE);
        let (racks, nodes) = cluster.nodes(NODES);
        let spec = spec("pages", 200, Survives::Writes);
        let region = nodes[0].create_region(&spec).unwrap();
        for block in 0..200 {
            put(&region, block, block as u64);
        }
        for (node, reads) in [(1, 20), (2, 200)] {
            let region = nodes[node].open_region(&spec).unwrap();
            for block in 0..reads {
                assert_eq!(get(&region, block), block as u64);
            }
        }
        drop(region);
        let together = Barrier::new(NODES);
        std::thread::scope(|scope| {
            for rack in racks.into_iter().flatten() {
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    let left = rack.leave_memory_behind();
                    // Who waited for the others would be told after all of its patience.
                    assert!(left.is_ok(), "{fabric}: {left:?}");
                });
            }
        });
    }
}

/// One after the other is started anew, the next as soon as the last one is a member. With the
/// usual `replace_after` too: who has come back has forgotten, and nobody waits for that.
#[test]
fn members_are_started_anew_one_after_the_other() {
    for fabric in NETWORKS {
        let more = "lease = '1500ms'\npatience = '60s'\n";
        let cluster = Cluster::new("rolling", fabric, NODES, more);
        let (mut racks, nodes) = cluster.nodes(NODES);
        let spec = spec("pages", 200, Survives::Writes);
        let region = nodes[0].create_region(&spec).unwrap();
        let lines = RegionSpec::new("lines", 64 * 200).copies(NODES as u8);
        let line: Replicated<u64> = nodes[0]
            .create_region(&lines)
            .unwrap()
            .replicated(7)
            .unwrap();
        line.write(7).unwrap();
        for block in 0..200 {
            put(&region, block, block as u64);
        }
        for turn in 0..2 * NODES {
            let node = turn % NODES;
            racks[node].take().unwrap().leave_memory_behind().unwrap();
            racks[node] = Some(cluster.node(node));
        }
        let last = racks[0].as_ref().unwrap().node(0);
        let region = last.open_region(&spec).unwrap();
        for block in 0..200 {
            assert_eq!(get(&region, block), block as u64, "{fabric}");
        }
        let line: Replicated<u64> = last.open_region(&lines).unwrap().replicated(7).unwrap();
        assert_eq!(line.read().unwrap(), 7, "{fabric}");
    }
}

/// What others have cached of memory that nobody uses any more is nothing to wait for: they stay,
/// and it would be for all of the patience, which is longer than this test waits.
#[test]
fn who_leaves_waits_for_no_copies_of_freed_memory() {
    for fabric in NETWORKS {
        let more = "lease = '1500ms'\npatience = '1000s'\n";
        let cluster = Cluster::new("freed", fabric, NODES, more);
        let (mut racks, nodes) = cluster.nodes(NODES);
        let addr = nodes[1].alloc_bytes_on(2, 1 << 16).unwrap();
        let there: Shared<u64> = nodes[1].attach(addr).unwrap();
        let here: Shared<u64> = nodes[0].attach(addr).unwrap();
        there.write(7).unwrap();
        assert_eq!(here.read().unwrap(), 7);
        nodes[1].free_bytes(addr, 1 << 16).unwrap();
        let (rack, (done, left)) = (racks[2].take().unwrap(), mpsc::channel());
        std::thread::spawn(move || done.send(rack.leave_memory_behind()));
        let left = left.recv_timeout(Duration::from_secs(60));
        assert!(matches!(left, Ok(Ok(()))), "{fabric}: {left:?}");
    }
}

/// Programs end their threads before they leave. What those still do waits for no majority that has
/// gone, as it would for all of the patience; who stays after all is no different from before.
#[test]
fn who_has_begun_to_leave_waits_for_no_majority() {
    for fabric in NETWORKS {
        let more = "lease = '1500ms'\npatience = '1000s'\n";
        let cluster = Cluster::new("begun", fabric, NODES, more);
        let (mut racks, nodes) = cluster.nodes(NODES);
        let lines = RegionSpec::new("lines", 64).copies(NODES as u8);
        let line = |node: usize| -> Replicated<u64> {
            let region = nodes[node].create_region(&lines).unwrap();
            region.replicated(0).unwrap()
        };
        let (mine, of_another) = (line(2), line(1));
        let last = racks[2].take().unwrap();
        last.begin_to_leave();
        last.stay();
        mine.write(7).unwrap();
        last.begin_to_leave();
        assert_eq!(of_another.read().unwrap(), 7, "{fabric}");
        assert_eq!(mine.read().unwrap(), 7, "{fabric}");
        for rack in &mut racks[..2] {
            rack.take().unwrap().leave_memory_behind().unwrap();
        }
        let (done, written) = mpsc::channel();
        std::thread::spawn(move || done.send(mine.write(8)));
        let written = written.recv_timeout(Duration::from_secs(60));
        assert!(matches!(written, Ok(Err(_))), "{fabric}: {written:?}");
    }
}

/// The others have left, or died, and the last one has written what they do not have. It says so.
#[test]
fn the_last_member_says_what_is_lost() {
    for fabric in NETWORKS {
        for (how, go) in [
            (
                "left",
                (|rack| rack.leave_memory_behind().unwrap()) as fn(Rack),
            ),
            ("died", drop),
        ] {
            let cluster = Cluster::new(how, fabric, NODES, MORE);
            let (mut racks, nodes) = cluster.nodes(NODES);
            let spec = spec("pages", 4, Survives::Rest);
            nodes[0].create_region(&spec).unwrap();
            let region = nodes[2].open_region(&spec).unwrap();
            assert_eq!(get(&region, 0), 0);
            put(&region, 1, 7);
            for rack in &mut racks[..2] {
                go(rack.take().unwrap());
            }
            let left = racks[2].take().unwrap().leave_memory_behind();
            let lost = region.addr() + BLOCK as u64;
            assert!(
                matches!(left, Err(LeaveError::Deserted { node: 2, addr }) if addr == lost),
                "{fabric}, {how}: {left:?}"
            );
        }
    }
}
