//! Racks that know more locks than any socket holds packets.

use crate::deaths::Cluster;
use crate::until;
use rackmem::locked::RwLockArray;
use rackmem::membership::Role;
use rackmem::{Node, Rack};
use rackmem_proto::wire::Kind;
use std::time::Duration;

/// Locks of one home: a packet for each would fill its switch's receive queue twenty times over.
const LOCKS: usize = 20_000;
/// How many of them are wanted afterwards.
const WANTED: usize = 500;
const PAGE: usize = 64;
const LONG: Duration = Duration::from_secs(60);

fn array(node: &Node, addr: u64) -> RwLockArray {
    RwLockArray::attach(node, addr, LOCKS, PAGE).unwrap()
}

/// Adds one to the first word of a page; what that was.
fn count(locks: &RwLockArray, index: usize) -> u64 {
    let held = locks.write_within(index, LONG).unwrap();
    let mut held = held.expect("the lock comes");
    let mut page = held.view_mut(8);
    let old = page.u64(0);
    page.set_u64(0, old + 1);
    old
}

fn placements(switch: &Rack) -> u64 {
    let received = switch.switch().unwrap().received();
    received
        .0
        .iter()
        .filter(|row| row.0 == Kind::Place)
        .map(|row| row.1)
        .sum()
}

#[test]
fn a_fresh_switch_is_asked_for_the_locks_that_are_wanted_and_no_others() {
    for fabric in ["udp", "shm"] {
        let cluster = Cluster::new("crowd", fabric);
        let (switch, racks) = cluster.start();
        let nodes: Vec<Node> = (0..3).map(|id| racks[id].node(id)).collect();
        let addr = nodes[0]
            .alloc_bytes_on(1, LOCKS * RwLockArray::STRIDE)
            .unwrap();
        let (here, there) = (array(&nodes[0], addr), array(&nodes[2], addr));
        (0..LOCKS).for_each(|index| assert_eq!(count(&here, index), 0));
        assert!(
            placements(&switch) >= LOCKS as u64,
            "every lock was wanted once"
        );
        let rebuilt = || nodes[0].metrics().rebuilds.done;
        let before = rebuilt();
        cluster.kill(Role::Switch, switch);
        until(|| rebuilt() > before);
        let between = rebuilt();
        let fresh = Rack::serve_switch(&cluster.config).unwrap();
        until(|| rebuilt() > between);
        let step = LOCKS / WANTED;
        for index in (0..LOCKS).step_by(step) {
            assert_eq!(count(&there, index), 1, "lock {index} over {fabric}");
        }
        let asked = placements(&fresh);
        // One each; some more where answers take their time.
        assert!(asked >= WANTED as u64, "{asked}");
        assert!(asked < LOCKS as u64 / 2, "{asked} for {WANTED} locks");
    }
}
