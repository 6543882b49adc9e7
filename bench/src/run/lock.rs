//! `bench lock`: what it costs to take a lock that is here, one that is idle elsewhere, and one that another node lets go of;
//! and how many coherence transactions that is.

use super::{Progress, Result, begin};
use crate::histogram::Histogram;
use crate::report::Report;
use rackmem::locked::{LockMetrics, Mutex, RwLock};
use rackmem::{Fabric, Mode, Node, Rack};
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Instant;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over which fabrics.
    pub fabrics: Vec<Fabric>,
    /// With the directory at the switch, or at homes.
    pub mode: Mode,
    /// Locks that are taken for the first time, and hand-overs.
    pub rounds: usize,
    /// Acquisitions of a lock that is here.
    pub local: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            fabrics: vec![Fabric::Inline, Fabric::Udp],
            mode: Mode::Switch,
            rounds: 2000,
            local: 5_000_000,
        }
    }
}

/// What locks protect here.
type Data = [u64; 8];

/// Runs it. Node 0 is home of all locks; nodes 1 and 2 use them.
pub fn run(options: &Options, progress: Progress<'_>) -> Result<Report> {
    let mut report = begin("lock")?;
    local(options, &mut report, progress)?;
    for &fabric in &options.fabrics {
        let rack = Rack::builder(3).fabric(fabric).mode(options.mode).build()?;
        progress(&format!("{fabric:?}: locks that are idle elsewhere"));
        uncontended(options, &rack, fabric, &mut report)?;
        progress(&format!("{fabric:?}: hand-overs"));
        hand_over(options, &rack, fabric, &mut report)?;
    }
    Ok(report)
}

fn name(options: &Options, fabric: Fabric) -> String {
    format!("{}/{}", fabric.name(), options.mode.name())
}

/// The mean time of one call, in nanoseconds: the best of five runs, because whatever disturbs only adds to it.
fn time(count: usize, mut act: impl FnMut()) -> f64 {
    let each = (count / 5).max(1);
    let run = |_| {
        let began = Instant::now();
        (0..each).for_each(|_| act());
        began.elapsed().as_nanos() as f64 / each as f64
    };
    (0..5).map(run).fold(f64::INFINITY, f64::min)
}

/// A lock that is here: whatever the fabric, no packet is sent.
fn local(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    progress("locks that are here");
    let plain = std::sync::Mutex::new(0u64);
    let took = time(options.local, || {
        let mut held = black_box(&plain)
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *held += 1;
    });
    report.add("plain/std-mutex", took, "ns")?;
    let rack = Rack::local(2)?;
    let (home, node) = (rack.node(0), rack.node(1));
    let mutex: Mutex<u64> = Mutex::attach(&node, Mutex::create(&home, 0u64)?.addr())?;
    mutex.lock()?.set(0);
    let before = node.lock_metrics();
    let took = time(options.local, || {
        if let Ok(mut held) = black_box(&mutex).lock() {
            held.update(|n| n + 1);
        }
    });
    report.add_against("cached/mutex", took, "ns", "plain/std-mutex")?;
    let lock: RwLock<u64> = RwLock::attach(&node, RwLock::create(&home, 0u64)?.addr())?;
    drop(lock.read()?);
    let took = time(options.local, || {
        black_box(
            black_box(&lock)
                .read()
                .map_or(0, |held| black_box(held.get())),
        );
    });
    report.add_against("cached/read", took, "ns", "plain/std-mutex")?;
    // The first reader's is one.
    let transactions = node.lock_metrics().requests - before.requests - 1;
    report.add("cached/transactions", transactions as f64, "in all")?;
    Ok(())
}

/// Locks that their home has and nobody uses, each taken once.
fn uncontended(options: &Options, rack: &Rack, fabric: Fabric, report: &mut Report) -> Result<()> {
    let (home, node) = (rack.node(0), rack.node(1));
    let locks = (0..options.rounds)
        .map(|_| Mutex::<Data>::attach(&node, Mutex::<Data>::create(&home, [0; 8])?.addr()));
    let locks = locks.collect::<rackmem::Result<Vec<_>>>()?;
    let before = node.lock_metrics();
    let mut times = Histogram::new();
    for lock in &locks {
        let began = Instant::now();
        drop(lock.lock()?);
        times.record(began.elapsed().as_nanos() as u64);
    }
    let case = format!("{}/uncontended", name(options, fabric));
    add(report, &case, &times, fabric)?;
    let all = node.lock_metrics();
    let each = (all.requests - before.requests) as f64 / locks.len() as f64;
    report.add(&format!("{case}/transactions"), each, "per acquisition")?;
    Ok(())
}

/// Two nodes in strict turn: each waits in the queue while the other is inside. From the release to the next one inside.
fn hand_over(options: &Options, rack: &Rack, fabric: Fabric, report: &mut Report) -> Result<()> {
    let made = Mutex::<Data>::create(&rack.node(0), [0; 8])?;
    let nodes = [rack.node(1), rack.node(2)];
    let lock = |node: &Node| Mutex::<Data>::attach(node, made.addr());
    let locks = [lock(&nodes[0])?, lock(&nodes[1])?];
    let began = Instant::now();
    let released = AtomicU64::new(0);
    let sum = |nodes: &[Node; 2]| nodes.each_ref().map(Node::lock_metrics);
    drop(locks[1].lock()?);
    let before = sum(&nodes);
    let turns = options.rounds / 2;
    let play = |lock: &Mutex<Data>| -> rackmem::Result<Histogram> {
        let mut times = Histogram::new();
        for turn in 0..turns {
            let mut held = lock.lock()?;
            let at = released.load(Acquire);
            if at > 0 {
                times.record((began.elapsed().as_nanos() as u64).saturating_sub(at));
            }
            held.update(|value| value.map(|word| word + 1));
            // The other one waits, unless it has had all its turns.
            let mut left = usize::from(turn + 1 < turns) * 10_000_000;
            while left > 0 && lock.waiting().nodes == 0 {
                std::thread::yield_now();
                left -= 1;
            }
            released.store(began.elapsed().as_nanos() as u64, Release);
        }
        Ok(times)
    };
    let played = std::thread::scope(|scope| {
        let other = scope.spawn(|| play(&locks[1]));
        let mine = play(&locks[0]);
        let theirs = other
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        [mine, theirs]
    });
    let mut times = Histogram::new();
    for played in played {
        times.merge(&played?);
    }
    let case = format!("{}/hand-over", name(options, fabric));
    add(report, &case, &times, fabric)?;
    let after = sum(&nodes);
    let count = |of: fn(&LockMetrics) -> u64| {
        let difference = |at: usize| of(&after[at]) - of(&before[at]);
        (difference(0) + difference(1)) as f64 / (2 * turns) as f64
    };
    let (requests, releases) = (count(|m| m.requests), count(|m| m.releases));
    report.add(&format!("{case}/requests"), requests, "per hand-over")?;
    report.add(&format!("{case}/releases"), releases, "per hand-over")?;
    Ok(())
}

fn add(report: &mut Report, case: &str, times: &Histogram, fabric: Fabric) -> Result<()> {
    let p50 = times.percentile(50.0) as f64;
    match fabric {
        Fabric::Inline => report.add(case, p50, "ns")?,
        Fabric::Shm | Fabric::Udp => report.add(case, p50 / 1e3, "us")?,
    }
    Ok(())
}
