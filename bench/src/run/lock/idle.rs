//! Unused locks at their home, each taken once by another node, 64 bytes of what it
//! protects written, and let go of.

use super::super::Result;
use super::{DATA, Options, add_time};
use crate::histogram::Histogram;
use crate::locks::{AnyLock, LockKind};
use crate::report::Report;
use rackmem::{Fabric, Rack};
use std::time::Instant;

pub fn run(
    options: &Options,
    rack: &Rack,
    fabric: Fabric,
    kind: LockKind,
    report: &mut Report,
) -> Result<()> {
    let (home, node) = (rack.node(0), rack.node(1));
    let locks = (0..(options.rounds / 5).max(1))
        .map(|_| AnyLock::attach(&node, AnyLock::create(&home, DATA)?.addr()));
    let locks = locks.collect::<crate::locks::Result<Vec<_>>>()?;
    let transactions = || node.metrics().events.misses() + node.lock_metrics().granted;
    let before = transactions();
    let mut times = Histogram::new();
    for lock in &locks {
        let began = Instant::now();
        lock.write()?.write(0, &[1; 64])?;
        times.record(began.elapsed().as_nanos() as u64);
    }
    let case = format!("{}/idle/{}", options.name(fabric), kind.name());
    add_time(report, &case, times.percentile(50.0) as f64, fabric)?;
    let each = (transactions() - before) as f64 / locks.len() as f64;
    report.add(&format!("{case}/transactions"), each, "per acquisition")?;
    Ok(())
}
