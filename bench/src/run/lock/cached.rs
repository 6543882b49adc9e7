//! An uncontended lock at its last node: whatever the fabric, no packet is sent,
//! but for the lock service.

use super::super::{Progress, Result};
use super::Options;
use crate::locks::{self, AnyLock};
use crate::report::Report;
use rackmem::Rack;
use rackmem::locked::{Mutex, RwLock};
use rackmem_fabric::Whole;
use std::hint::black_box;
use std::time::Instant;

/// The mean time of one call, in nanoseconds: the best of five runs,
/// because whatever disturbs only adds to it.
fn time(count: usize, mut act: impl FnMut()) -> f64 {
    let each = (count / 5).max(1);
    let run = |_| {
        let began = Instant::now();
        (0..each).for_each(|_| act());
        began.elapsed().as_nanos() as f64 / each as f64
    };
    (0..5).map(run).fold(f64::INFINITY, f64::min)
}

/// Taken, eight bytes changed or read, let go of.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    progress("locks that are here");
    let plain = std::sync::Mutex::new(0u64);
    let took = time(options.local, || {
        let mut held = black_box(&plain).lock().whole();
        *held += 1;
    });
    report.add("plain/std-mutex", took, "ns")?;
    typed(options, report)?;
    for &kind in &options.kinds {
        options.go_on()?;
        let rack = options
            .mode
            .builder(2)
            .guests(locks::guests(kind))
            .build()?;
        let made = AnyLock::create(&rack.node(0), 8)?;
        let lock = AnyLock::attach(&rack.node(1), made.addr())?;
        let mut ended = Ok(());
        // The two errors are of different types, and making one of the other takes as long as half
        // of the lock.
        let mut note = |result: crate::locks::Result<rackmem::Result<()>>| match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => ended = Err(error.into()),
            Err(error) => ended = Err(error),
        };
        let count = options.local / 5;
        let mut n = 0u64;
        let write = time(count, || {
            let mut act = || {
                n += 1;
                Ok(black_box(&lock).write()?.write(0, &n.to_le_bytes()))
            };
            note(act());
        });
        let mut bytes = [0; 8];
        let read = time(count, || {
            let mut act = || Ok(black_box(&lock).read()?.read(0, black_box(&mut bytes)));
            note(act());
        });
        ended?;
        for (what, took) in [("write", write), ("read", read)] {
            let case = format!("cached/{}/{what}", kind.name());
            report.add_against(&case, took, "ns", "plain/std-mutex")?;
        }
    }
    Ok(())
}

/// The typed handles of GCP.
fn typed(options: &Options, report: &mut Report) -> Result<()> {
    let rack = Rack::local(2)?;
    let (home, node) = (rack.node(0), rack.node(1));
    let mutex: Mutex<u64> = Mutex::attach(&node, Mutex::create(&home, 0u64)?.addr())?;
    mutex.lock()?.set(0);
    let lock: RwLock<u64> = RwLock::attach(&node, RwLock::create(&home, 0u64)?.addr())?;
    drop(lock.read()?);
    let before = node.lock_metrics();
    let took = time(options.local, || {
        if let Ok(mut held) = black_box(&mutex).lock() {
            held.update(|n| n + 1);
        }
    });
    report.add_against("cached/mutex", took, "ns", "plain/std-mutex")?;
    let took = time(options.local, || {
        let read = black_box(&lock).read();
        black_box(read.map_or(0, |held| black_box(held.get())));
    });
    report.add_against("cached/read", took, "ns", "plain/std-mutex")?;
    let transactions = node.lock_metrics().requests - before.requests;
    report.add("cached/transactions", transactions as f64, "in all")?;
    Ok(())
}
