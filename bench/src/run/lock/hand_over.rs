//! Two nodes in strict turn: each waits while the other is inside, and who has left asks again when
//! the other is inside: not every lock is fair. Timed from just before the holder lets go to when
//! the other node's thread is inside, and to when it has written all that the lock protects.

use super::super::Result;
use super::{DATA, Options, add_time};
use crate::histogram::Histogram;
use crate::locks::{AnyLock, LockKind};
use crate::report::Report;
use rackmem::{Fabric, Node, Rack};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

/// How long one waits for the other to do its part.
const PATIENCE: Duration = Duration::from_secs(2);
/// On a network, how long a holder goes on when the other waits:
/// its request may still be under way to a manager.
const SETTLE: Duration = Duration::from_micros(100);

/// What one node has seen.
#[derive(Default)]
struct Times {
    inside: Histogram,
    data: Histogram,
}

pub fn run(
    options: &Options,
    rack: &Rack,
    fabric: Fabric,
    kind: LockKind,
    report: &mut Report,
) -> Result<()> {
    let made = AnyLock::create(&rack.node(0), DATA)?;
    let nodes = [rack.node(1), rack.node(2)];
    let attach = |node: &Node| AnyLock::attach(node, made.addr());
    let locks = [attach(&nodes[0])?, attach(&nodes[1])?];
    let began = Instant::now();
    let now = || began.elapsed().as_nanos() as u64;
    let released = AtomicU64::new(0);
    // How often each has been inside.
    let entered = [AtomicUsize::new(0), AtomicUsize::new(0)];
    // Each has been inside: what follows is steady.
    for _ in 0..3 {
        locks.iter().try_for_each(|lock| {
            Ok::<_, crate::locks::Error>(lock.write()?.write(0, &[0; DATA])?)
        })?;
    }
    let sum = || {
        let of = |node: &Node| node.metrics().events.misses() + node.lock_metrics().granted;
        nodes.iter().map(of).sum::<u64>()
    };
    let before = sum();
    let turns = (options.rounds / 2).max(2);
    let play = |me: usize| -> crate::locks::Result<Times> {
        let (lock, other) = (&locks[me], &locks[1 - me]);
        let waits = || match kind {
            LockKind::Gcp => lock.waiting().nodes > 0,
            _ => other.waiting().threads > 0,
        };
        let mut times = Times::default();
        for turn in 0..turns {
            let mut held = lock.write()?;
            let (inside, at) = (now(), released.load(Acquire));
            entered[me].store(turn + 1, Release);
            held.write(0, &[turn as u8; DATA])?;
            if at > 0 {
                times.inside.record(inside.saturating_sub(at));
                times.data.record(now().saturating_sub(at));
            }
            let others = entered[1 - me].load(Acquire);
            // The other one waits, unless it has had all its turns.
            until(|| others == turns || waits());
            if fabric != Fabric::Inline && kind == LockKind::Service {
                let settled = Instant::now() + SETTLE;
                while Instant::now() < settled {
                    std::thread::yield_now();
                }
            }
            released.store(now(), Release);
            drop(held);
            until(|| others == turns || entered[1 - me].load(Acquire) > others);
        }
        Ok(times)
    };
    let played = std::thread::scope(|scope| {
        let other = scope.spawn(|| play(1));
        let mine = play(0);
        let theirs = other.join();
        [
            mine,
            theirs.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        ]
    });
    let mut times = Times::default();
    for played in played {
        let played = played?;
        times.inside.merge(&played.inside);
        times.data.merge(&played.data);
    }
    let case = format!("{}/hand-over/{}", options.name(fabric), kind.name());
    let mut add = |name: &str, ns: u64| add_time(report, name, ns as f64, fabric);
    add(&case, times.inside.percentile(50.0))?;
    add(&format!("{case}/data"), times.data.percentile(50.0))?;
    add(&format!("{case}/data-p99"), times.data.percentile(99.0))?;
    let each = (sum() - before) as f64 / (2 * turns) as f64;
    report.add(&format!("{case}/transactions"), each, "per hand-over")?;
    Ok(())
}

/// Gives the processor away until something is so.
fn until(what: impl Fn() -> bool) {
    let mut began = None;
    while !what() {
        std::thread::yield_now();
        if began.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return;
        }
    }
}
