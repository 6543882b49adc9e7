//! Every lock protects a whole database, on several nodes with several threads, by calls and
//! mapped; and TPC-C on all that keeps memory coherent.

use rackmem_bench::report::Report;
use rackmem_bench::run::BenchError;
use rackmem_bench::run::dbm::{DbmReport, Kind, OneLock, Options, Way, run};
use rackmem_bench::run::tpcc;
use std::time::Duration;

#[test]
fn all_locks_keep_a_database_whole_and_are_in_the_tables() {
    let options = Options {
        nodes: vec![2],
        threads: 2,
        writes: vec![50],
        records: 600,
        duration: Duration::from_millis(20),
        ..Options::default()
    };
    let mut report = Report::new("dbm");
    run(&options, &mut report, &mut |_| {}).unwrap();
    for kind in ["hash", "tree"] {
        for lock in OneLock::all() {
            let lock = lock.name();
            let case = format!("inline/switch/calls/{kind}/{lock}/nodes-2/threads-2/writes-50");
            let case = report.case(&case).unwrap();
            assert!(case.value > 0.0, "{lock}");
            let is_compared = case.baseline.is_some();
            assert_eq!(is_compared, lock != "pthread", "{lock}");
        }
    }
    let tables = DbmReport::new(&options, report).tables();
    assert_eq!(tables.len(), 2);
}

#[test]
fn transactions_hold_the_lock_alone() {
    let options = Options {
        kinds: Vec::new(),
        locks: vec![OneLock::Pthread, "cohort".parse().unwrap()],
        nodes: vec![2],
        warehouses: vec![2],
        duration: Duration::from_millis(50),
        ..Options::default()
    };
    let mut report = Report::new("dbm");
    // Conditions that do not hold are an error.
    run(&options, &mut report, &mut |_| {}).unwrap();
    let case = "inline/switch/tpc-c/cohort/warehouses-2/nodes-2/threads-1";
    assert!(report.case(case).unwrap().value > 0.0);
    assert_eq!(DbmReport::new(&options, report).tables().len(), 1);
}

#[test]
fn mapped_memory_is_no_other_database() {
    let options = Options {
        kinds: vec![Kind::Tree],
        locks: vec![OneLock::Pthread],
        ways: vec![Way::Mapped],
        nodes: vec![2],
        writes: vec![50],
        records: 600,
        duration: Duration::from_millis(20),
        ..Options::default()
    };
    match run(&options, &mut Report::new("dbm"), &mut |_| {}) {
        // This system does not let a process handle its page faults.
        Err(BenchError::Missing(why)) => eprintln!("left out: {why}"),
        told => told.unwrap(),
    }
}

#[test]
fn tpc_c_runs_on_all_that_keeps_memory_coherent() {
    let options = tpcc::Options {
        remote: vec![100],
        nodes: 2,
        duration: Duration::from_millis(50),
        ..tpcc::Options::default()
    };
    let mut report = Report::new("tpcc");
    // Conditions that do not hold are an error.
    tpcc::run(&options, &mut report, &mut |_| {}).unwrap();
    for system in ["directory", "home-only", "switch"] {
        let case = format!("inline/{system}/tpc-c/locks/remote-100");
        assert!(report.case(&case).unwrap().value > 0.0, "{system}");
    }
}
