//! All of it: several nodes and threads, and what is noticed when an engine is broken.

use crate::access::{get, update};
use crate::schema::Takings;
use crate::{
    Access, Condition, Counts, Done, Engine, Layout, Limit, LockFailure, Locks, Objects, OneLock,
    OnlyLock, Plan, Remote, Report, Scale, Unwatched, check, drive, load,
};
use rackmem::diagnostics::Faults;
use rackmem::{Fabric, Rack};
use rackmem_sim::serial;

mod delegated;
mod dying;
mod history;
mod killed;
mod model;
pub(crate) use dying::Dying;

/// What an engine can be made to leave out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Defect {
    /// Cells that are going to be changed are not locked.
    WritesUnlocked,
    /// What was read under a lock that was left to get it to write is not compared.
    UpgradesUnchecked,
    /// What a transaction has read is not looked at again when it commits.
    CommitsUnchecked,
    /// Cells are written without a log.
    Unlogged,
    /// An owner does what it is asked once more when the question comes again.
    ActsTwice,
}

/// Small, and crowded: the same rows are wanted often.
fn small() -> Scale {
    Scale {
        items: 60,
        customers: 30,
        room: 2_000,
        ..Scale::of(3)
    }
}

fn plan(transactions: u64) -> Plan {
    Plan {
        threads: 2,
        limit: Limit::Transactions(transactions),
        remote: Remote::Share(40),
        seed: 7,
        deeds: transactions as usize * 12,
    }
}

/// What is known of a run: its conditions, and whether its history has an order.
fn judged<E: Engine>(engine: &E, transactions: u64) -> (Done, Report, bool) {
    load(engine, 7, &Unwatched).unwrap();
    let done = drive(engine, &plan(transactions), &Unwatched).unwrap();
    let report = check(engine, &done.tally.counts()).unwrap();
    let is_serial = is_serial(&done);
    (done, report, is_serial)
}

fn is_serial(done: &Done) -> bool {
    have_order(&done.tally.deeds)
}

fn have_order(deeds: &[crate::Deed]) -> bool {
    let deed = |deed: &crate::Deed| serial::Deed {
        invoke: deed.invoke,
        returned: deed.returned,
        reads: deed.footprint.reads.clone(),
        writes: deed.footprint.writes.clone(),
    };
    let deeds: Vec<serial::Deed<u64>> = deeds.iter().map(deed).collect();
    serial::check(&deeds).is_ok()
}

fn holds<E: Engine>(engine: &E, transactions: u64) -> Done {
    let (done, report, is_serial) = judged(engine, transactions);
    assert!(report.holds(), "{report:?}");
    assert!(is_serial, "{} has no serial order", E::NAME);
    assert!(!done.tally.deeds.is_empty());
    done
}

fn layout(rack: &Rack) -> Layout {
    Layout::new(small(), rack.nodes().len()).unwrap()
}

fn locks(rack: &Rack) -> Locks {
    Locks::new(rack.nodes(), layout(rack)).unwrap()
}

fn objects(rack: &Rack) -> Objects {
    Objects::new(rack.nodes(), layout(rack)).unwrap()
}

#[test]
fn a_loaded_database_is_consistent() {
    let rack = Rack::local(2).unwrap();
    let engine = locks(&rack);
    load(&engine, 3, &Unwatched).unwrap();
    let report = check(&engine, &Counts::default()).unwrap();
    assert!(report.holds(), "{report:?}");
}

#[test]
fn locks_keep_the_database_consistent() {
    let rack = Rack::local(3).unwrap();
    let done = holds(&locks(&rack), 400);
    let row = done.tally.of(crate::transactions::Kind::NewOrder);
    assert!(row.committed > 0 && row.rolled_back > 0, "{row:?}");
    assert!(done.tally.delivered > 0 && done.tpm_c() > 0.0);
}

#[test]
fn objects_keep_the_database_consistent() {
    let rack = Rack::local(3).unwrap();
    holds(&objects(&rack), 400);
}

#[test]
fn one_lock_keeps_the_database_consistent() {
    let rack = Rack::local(3).unwrap();
    let done = holds(&OneLock::new(rack.nodes(), layout(&rack)).unwrap(), 400);
    let row = done.tally.of(crate::transactions::Kind::NewOrder);
    assert!(row.committed > 0 && row.rolled_back > 0, "{row:?}");
    assert_eq!(row.aborts, [0; 3]);
}

/// Each of two nodes as a process has it: what is known of the other is what is in the memory of
/// the rack.
fn holds_apart<E: Engine>(engines: &[E; 2]) {
    let mut counts = Counts::default();
    std::thread::scope(|scope| {
        let loading = |engine| scope.spawn(move || load(engine, 7, &Unwatched).unwrap());
        let loaded = engines.each_ref().map(loading);
        loaded.into_iter().for_each(|thread| thread.join().unwrap());
        let driving = |engine| scope.spawn(move || drive(engine, &plan(150), &Unwatched).unwrap());
        for thread in engines.each_ref().map(driving) {
            let done = thread.join().unwrap().tally.counts();
            counts.orders += done.orders;
            counts.payments += done.payments;
            counts.delivered += done.delivered;
        }
    });
    let report = check(&engines[0], &counts).unwrap();
    assert!(counts.orders > 0 && report.holds(), "{report:?}");
}

#[test]
fn nodes_of_several_processes_have_one_database() {
    let rack = Rack::local(2).unwrap();
    holds_apart(&[0, 1].map(|node| Locks::new(&[rack.node(node)], layout(&rack)).unwrap()));
    let rack = Rack::local(2).unwrap();
    holds_apart(&[0, 1].map(|node| Objects::new(&[rack.node(node)], layout(&rack)).unwrap()));
}

/// UDP that loses, doubles and delays packets.
fn lossy() -> Rack {
    let faults = Faults {
        loss: 0.01,
        duplication: 0.01,
        delay: 0.01,
        ..Faults::NONE
    };
    let rack = Rack::builder(2).fabric(Fabric::Udp).faults(faults);
    rack.build().unwrap()
}

#[test]
fn locks_hold_when_packets_are_lost() {
    holds(&locks(&lossy()), 60);
}

#[test]
fn objects_hold_when_packets_are_lost() {
    holds(&objects(&lossy()), 60);
}

/// How a broken engine is found out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Noticed {
    /// A terminal finds what cannot be.
    Run,
    /// The history has no order.
    History,
    /// A condition does not hold, or a table cannot be read.
    Conditions,
    /// It is not.
    Not,
}

fn noticed<E: Engine>(engine: &E) -> Noticed {
    load(engine, 7, &Unwatched).unwrap();
    let Ok(done) = drive(engine, &plan(400), &Unwatched) else {
        return Noticed::Run;
    };
    if !is_serial(&done) {
        return Noticed::History;
    }
    match check(engine, &done.tally.counts()) {
        Ok(report) if report.holds() => Noticed::Not,
        _ => Noticed::Conditions,
    }
}

#[test]
fn locks_that_are_not_taken_are_noticed() {
    let rack = Rack::local(3).unwrap();
    let mut engine = locks(&rack);
    engine.defect = Some(Defect::WritesUnlocked);
    assert_ne!(noticed(&engine), Noticed::Not);
}

/// Excludes nobody.
#[derive(Debug)]
struct NoLock;

impl OnlyLock for NoLock {
    fn alone(&self, _: usize, section: &mut dyn FnMut()) -> Result<(), LockFailure> {
        section();
        Ok(())
    }
}

#[test]
fn one_lock_that_does_not_exclude_is_noticed() {
    let rack = Rack::local(3).unwrap();
    let engine = OneLock::under(NoLock, rack.nodes(), layout(&rack)).unwrap();
    assert_ne!(noticed(&engine), Noticed::Not);
}

/// Threads that read a number and then add one to it; by how much it is too low in the end.
fn lost<E: Engine>(engine: &E, nodes: usize) -> i64 {
    const EACH: i64 = 150;
    let cell = engine.layout().takings(1);
    let add = |access: &mut dyn Access| {
        let before: Takings = get(access, cell)?;
        std::thread::yield_now();
        update(access, cell, |it: &mut Takings| it.ytd = before.ytd + 1)
    };
    std::thread::scope(|scope| {
        for node in (0..nodes).chain(0..nodes) {
            let add = &add;
            let once = move || engine.transact(node, &mut |access| add(access)).unwrap();
            scope.spawn(move || (0..EACH).for_each(|_| drop(once())));
        }
    });
    let sum = engine.transact(0, &mut |access| get::<Takings>(access, cell));
    2 * nodes as i64 * EACH - sum.unwrap().value.unwrap().ytd
}

#[test]
fn no_step_is_lost_between_reading_and_writing() {
    let rack = Rack::local(3).unwrap();
    assert_eq!(lost(&locks(&rack), 3), 0);
    let rack = Rack::local(3).unwrap();
    assert_eq!(lost(&objects(&rack), 3), 0);
}

#[test]
fn what_changes_between_two_locks_is_noticed() {
    let rack = Rack::local(3).unwrap();
    let mut engine = locks(&rack);
    engine.defect = Some(Defect::UpgradesUnchecked);
    assert!(lost(&engine, 3) > 0);
}

#[test]
fn a_commit_that_does_not_look_is_noticed() {
    let rack = Rack::local(3).unwrap();
    let mut engine = objects(&rack);
    engine.defect = Some(Defect::CommitsUnchecked);
    assert_ne!(noticed(&engine), Noticed::Not);
}

#[test]
fn a_changed_row_is_noticed() {
    let rack = Rack::local(1).unwrap();
    let engine = locks(&rack);
    load(&engine, 3, &Unwatched).unwrap();
    let cell = engine.layout().takings(2).unwrap();
    engine.poke(0, cell, &7_i64.to_le_bytes()).unwrap();
    let report = check(&engine, &Counts::default()).unwrap();
    for condition in [Condition::WarehouseYtd, Condition::WarehouseHistory] {
        assert_eq!(report.of(condition).broken, 1);
    }
}
