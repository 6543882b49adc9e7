//! All nodes of a rack want one lock all the time: a thread a node takes it, reads or writes the 4
//! KiB that it protects, lets go, gives its processor to others for a while, and again. Without
//! that while a machine with fewer processors than nodes measures for how long a thread is left
//! running.

use super::super::{Progress, Result};
use super::{DATA, Options};
use crate::histogram::Histogram;
use crate::locks::{AnyLock, LockKind};
use crate::report::Report;
use rackmem::diagnostics::Kind;
use rackmem::{Fabric, Node, Rack};
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What the thread of one node did.
struct Done {
    acquisitions: u64,
    times: Histogram,
    elapsed: Duration,
}

pub fn run(
    options: &Options,
    fabric: Fabric,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    for &nodes in &options.nodes {
        for &kind in &options.kinds {
            let rack = options.rack(fabric, nodes, kind)?;
            for &reads in &options.reads {
                options.go_on()?;
                let case = name(options, fabric, kind, nodes, reads);
                progress(&case);
                measure(options, &rack, &case, reads, report)?;
            }
        }
    }
    Ok(())
}

/// What a case is called.
pub fn name(options: &Options, fabric: Fabric, kind: LockKind, nodes: usize, reads: u8) -> String {
    let (of, kind) = (options.name(fabric), kind.name());
    format!("{of}/contended/{kind}/nodes-{nodes}/reads-{reads}")
}

fn measure(
    options: &Options,
    rack: &Rack,
    case: &str,
    reads: u8,
    report: &mut Report,
) -> Result<()> {
    let made = AnyLock::create(&rack.node(0), DATA)?;
    let nodes = rack.nodes();
    // Warm: every thread has been inside.
    for node in nodes {
        AnyLock::attach(node, made.addr())?
            .write()?
            .write(0, &[0; DATA])?;
    }
    let before = cost(rack);
    let (barrier, stop) = (Barrier::new(nodes.len() + 1), AtomicBool::new(false));
    let done = std::thread::scope(|scope| {
        let spawn = |(nth, node): (usize, &'_ Node)| {
            let node = node.clone();
            let (barrier, stop, addr) = (&barrier, &stop, made.addr());
            scope.spawn(move || {
                let lock = AnyLock::attach(&node, addr);
                barrier.wait();
                work(&lock?, options, reads, nth as u64, stop)
            })
        };
        let threads: Vec<_> = nodes.iter().enumerate().map(spawn).collect();
        barrier.wait();
        crate::stop::sleep(options.duration);
        stop.store(true, Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, crate::locks::Result<Done>>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads
            .into_iter()
            .map(join)
            .collect::<crate::locks::Result<Vec<Done>>>()
    })?;
    let after = cost(rack);
    let mut times = Histogram::new();
    done.iter().for_each(|done| times.merge(&done.times));
    let all: u64 = done.iter().map(|done| done.acquisitions).sum();
    let rate: f64 = done
        .iter()
        .map(|done| done.acquisitions as f64 / done.elapsed.as_secs_f64())
        .sum();
    let least = done.iter().map(|done| done.acquisitions).min().unwrap_or(0);
    let each = |count: u64| count as f64 / all.max(1) as f64;
    report.add(case, rate, "acquisitions/s")?;
    let us = |ns: f64| ns / 1e3;
    report.add(&format!("{case}/mean"), us(times.mean()), "us")?;
    for percent in [50.0, 99.0] {
        let time = us(times.percentile(percent) as f64);
        report.add(&format!("{case}/p{percent}"), time, "us")?;
    }
    let transactions = each(after.0 - before.0);
    report.add(
        &format!("{case}/transactions"),
        transactions,
        "per acquisition",
    )?;
    if after.1 > before.1 {
        let messages = each(after.1 - before.1);
        report.add(&format!("{case}/messages"), messages, "per acquisition")?;
    }
    let share = each(least) * nodes.len() as f64 * 100.0;
    report.add(&format!("{case}/least-share"), share, "% of fair")?;
    Ok(())
}

/// Coherence transactions so far, GCP's among them, and messages of the lock service.
pub fn cost(rack: &Rack) -> (u64, u64) {
    let metrics = rack.metrics();
    let granted: u64 = rack.nodes().iter().map(|n| n.lock_metrics().granted).sum();
    let packets = metrics.agent_packets();
    let service = |kind: &Kind| matches!(kind, Kind::GuestAsk | Kind::GuestTell);
    let messages = packets
        .0
        .iter()
        .filter(|row| service(&row.0))
        .map(|row| row.1)
        .sum();
    (metrics.events().misses() + granted, messages)
}

fn work(
    lock: &AnyLock,
    options: &Options,
    reads: u8,
    seed: u64,
    stop: &AtomicBool,
) -> crate::locks::Result<Done> {
    let think = options.think;
    let mut random = fastrand::Rng::with_seed(seed + 1);
    let mut bytes = [0; DATA];
    let mut times = Histogram::new();
    let mut acquisitions = 0;
    let began = Instant::now();
    while !stop.load(Relaxed) {
        let start = Instant::now();
        let took = if random.u8(0..100) < reads {
            let held = lock.read()?;
            held.read(0, &mut bytes)?;
            start.elapsed()
        } else {
            let mut held = lock.write()?;
            held.write(0, &bytes)?;
            start.elapsed()
        };
        times.record(took.as_nanos() as u64);
        acquisitions += 1;
        let left = Instant::now();
        while left.elapsed() < think {
            std::thread::yield_now();
        }
    }
    Ok(Done {
        acquisitions,
        times,
        elapsed: began.elapsed(),
    })
}
