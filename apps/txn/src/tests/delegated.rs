//! Transactions by delegation: several nodes and threads, packets that are lost and doubled, and
//! owners that leave something out.

use super::{Defect, Noticed, holds, holds_apart, lost, noticed, small};
use crate::transactions::Kind;
use crate::{Delegated, Engine, Layout, TxnError, Unwatched, check, drive, load};
use rackmem::diagnostics::Faults;
use rackmem::{Fabric, Rack};

fn layout(nodes: usize) -> Layout {
    Layout::new(small(), nodes).unwrap()
}

fn rack(nodes: usize) -> Rack {
    let rack = Rack::builder(nodes).guests(Delegated::guests(layout(nodes)));
    rack.build().unwrap()
}

fn engine(rack: &Rack) -> Delegated {
    Delegated::new(rack.nodes(), layout(rack.nodes().len())).unwrap()
}

#[test]
fn delegation_keeps_the_database_consistent() {
    let rack = rack(3);
    let done = holds(&engine(&rack), 400);
    let row = done.tally.of(Kind::NewOrder);
    assert!(row.committed > 0 && row.rolled_back > 0, "{row:?}");
    assert!(done.tally.delivered > 0 && done.tpm_c() > 0.0);
    let metrics = rack.metrics();
    let asked: u64 = metrics.nodes.iter().map(|node| node.events.asked).sum();
    assert!(asked > 1_000, "{asked}");
}

/// All that these do is of another node: cells are read and written there, index by index.
#[test]
fn terminals_without_a_warehouse_at_their_node() {
    holds(&engine(&rack(5)), 100);
}

#[test]
fn each_node_as_a_process_has_it() {
    let rack = rack(2);
    holds_apart(&[0, 1].map(|node| Delegated::new(&[rack.node(node)], layout(2)).unwrap()));
}

#[test]
fn no_step_is_lost_between_reading_and_writing() {
    assert_eq!(lost(&engine(&rack(3)), 3), 0);
}

const LOSSY: Faults = Faults {
    loss: 0.01,
    duplication: 0.1,
    delay: 0.01,
    ..Faults::NONE
};

#[test]
fn delegation_holds_when_packets_are_lost_and_doubled() {
    let rack = Rack::builder(2).fabric(Fabric::Udp).faults(LOSSY);
    let rack = rack.guests(Delegated::guests(layout(2))).build().unwrap();
    holds(&engine(&rack), 100);
}

#[test]
fn an_owner_that_acts_twice_is_noticed() {
    let guests = Delegated::broken_guests(layout(2), Defect::ActsTwice);
    let rack = Rack::builder(2).fabric(Fabric::Udp).faults(LOSSY);
    let rack = rack.guests(guests).build().unwrap();
    assert_ne!(noticed(&engine(&rack)), Noticed::Not);
}

#[test]
fn an_owner_that_lets_everybody_in_is_noticed() {
    let guests = Delegated::broken_guests(layout(3), Defect::WritesUnlocked);
    let rack = Rack::builder(3).guests(guests).build().unwrap();
    assert_ne!(noticed(&engine(&rack)), Noticed::Not);
}

#[test]
fn a_rack_without_owners_is_refused() {
    let rack = Rack::local(2).unwrap();
    let refused = Delegated::new(rack.nodes(), layout(2));
    assert!(matches!(refused, Err(TxnError::NoOwner)), "{refused:?}");
}

/// Nothing is left behind: whoever comes later gets every lock.
#[test]
fn all_locks_are_left() {
    let rack = rack(3);
    let engine = engine(&rack);
    load(&engine, 7, &Unwatched).unwrap();
    let first = drive(&engine, &super::plan(100), &Unwatched).unwrap();
    assert_eq!(engine.locked(), 0);
    let report = check(&engine, &first.tally.counts()).unwrap();
    assert!(report.holds(), "{report:?}");
    assert_eq!(Delegated::NAME, "delegate");
}
