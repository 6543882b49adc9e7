//! The table with a lock a bucket, under every kind.

use rackmem::Fabric;
use rackmem_bench::locks::LockKind;
use rackmem_bench::report::Report;
use rackmem_bench::run::lock::{LockReport, Options, Part, run};
use std::time::Duration;

#[test]
fn a_table_of_buckets_works_under_every_lock() {
    let options = Options {
        parts: vec![Part::Store],
        fabrics: vec![Fabric::Inline],
        nodes: vec![2],
        duration: Duration::from_millis(10),
        ..Options::default()
    };
    let mut report = Report::new("lock");
    run(&options, &mut report, &mut |_| {}).unwrap();
    let rate = |kind: &str, reads: u8| {
        let case = format!("inline/switch/store/{kind}/nodes-2/reads-{reads}");
        report.case(&case).map(|case| case.value)
    };
    for (_, kind) in LockKind::ALL {
        for reads in [50, 95, 100] {
            assert!(rate(kind, reads) > Some(0.0), "{kind}, {reads}% reads");
        }
    }
    let told = LockReport::new(&options, report, Vec::new());
    assert_eq!(told.tables().len(), 1);
}
