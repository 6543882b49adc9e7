//! Regions that get more copies while they are used.

use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, LONG, MODES, eventually, history, rack};
use rackmem::{Node, RegionError, RegionSpec, Replicated};
use rackmem_sim::history::Recorder;

fn counting(node: &Node) -> usize {
    let groups = node.groups();
    let copies = groups.iter().flat_map(|group| &group.copies);
    copies.filter(|copy| copy.counts).count()
}

/// One copy becomes three, and three become five, under threads whose history is judged.
#[test]
fn one_copy_becomes_three_and_five_while_lines_are_used() {
    const OPERATIONS: usize = 150;
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let rack = rack(fabric, mode, 6);
        let one = history::spec().copies(1);
        rack.node(2).create_region(&one).unwrap();
        let recorder = Recorder::new(OPERATIONS);
        std::thread::scope(|scope| {
            for client in 0..4u32 {
                let (node, spec, recorder) = (rack.node(client as usize), &one, &recorder);
                let mut log = recorder.client(client);
                // The region is opened before it grows.
                let region = node.open_region(spec).unwrap();
                scope.spawn(move || history::work_on(&region, client, &mut log, OPERATIONS));
            }
            for copies in [3, 5] {
                rack.node(5).grow_region("history", copies).unwrap();
                let what = format!("{fabric:?} {mode:?}: {copies} copies count");
                eventually(&what, || counting(&rack.node(0)) == usize::from(copies));
            }
        });
        let recorded = recorder.into_history();
        assert_eq!(recorded.len(), 4 * OPERATIONS);
        history::judge(&format!("{fabric:?} {mode:?}"), &recorded);
        let group = rack.node(0).groups().remove(0);
        assert_eq!((group.wanted, group.needed), (5, 3));
        // Whoever opens it now asks for what it has.
        let error = rack.node(1).open_region(&one).unwrap_err();
        assert!(
            matches!(error, RegionError::OtherCopies { has: 5, .. }),
            "{error}"
        );
        rack.node(1).open_region(&one.copies(5)).unwrap();
        for (wrong, more) in [("history", 4), ("history", 5), ("other", 3), ("history", 7)] {
            let error = rack.node(0).grow_region(wrong, more).unwrap_err();
            let right = match (wrong, more) {
                (_, 4) => matches!(error, RegionError::BadCopies { copies: 4 }),
                (_, 5) => matches!(error, RegionError::OtherCopies { has: 5, .. }),
                (_, 7) => matches!(error, RegionError::FewMembers { live: 6, .. }),
                _ => matches!(error, RegionError::NotFound { .. }),
            };
            assert!(right, "{error}");
        }
    }
}

/// The node that had the only copy may die when there are three.
#[test]
fn what_had_one_copy_outlives_its_node() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("grow", fabric, 4, "patience = '60s'\nlease = '20s'\n");
        let (mut racks, nodes) = cluster.nodes(4);
        let spec = RegionSpec::new("ledger", 640).copies(1);
        let region = nodes[3].create_region(&spec).unwrap();
        for nth in 0..10 {
            let line: Replicated<u64> = region.replicated(nth).unwrap();
            line.write(nth as u64 + 7).unwrap();
        }
        let store = cluster.store();
        rackmem::membership::grow(&store, "ledger", 3, LONG).unwrap();
        eventually("three copies count", || counting(&nodes[1]) == 3);
        racks[3] = None;
        let spec = spec.copies(3);
        for nth in 0..10 {
            let region = nodes[1].open_region(&spec).unwrap();
            let line: Replicated<u64> = region.replicated(nth).unwrap();
            assert_eq!(line.read().unwrap(), nth as u64 + 7, "{fabric}");
        }
    }
}

/// The second copy dies before there is a third one: the first goes on alone, and others come.
#[test]
fn a_second_copy_that_dies_takes_nothing_along() {
    let more = "patience = '60s'\nlease = '1s'\nreplace_after = '200ms'\n";
    let cluster = Cluster::new("grow-back", "udp", 3, more);
    let (mut racks, nodes) = cluster.nodes(2);
    let spec = RegionSpec::new("ledger", 640).copies(1);
    let region = nodes[0].create_region(&spec).unwrap();
    let line: Replicated<u64> = region.replicated(3).unwrap();
    line.write(7).unwrap();
    // Three are asked for, of which there are two for now.
    let third = cluster.node(2);
    nodes[0].grow_region("ledger", 3).unwrap();
    drop(third);
    racks[1] = None;
    let (_second, _third) = (cluster.node(1), cluster.node(2));
    eventually("three copies count", || counting(&nodes[0]) == 3);
    assert_eq!(line.read().unwrap(), 7);
}
