//! Nodes that are killed while terminals run, and what is seen of it.

use super::histories::Histories;
use super::play::Watcher;
use super::{DuringArg, TxnArgs};
use crate::crew::Crew;
use crate::halt::{Halt, Played, wrong};
use crate::stop::Stop;
use fastrand::Rng;
use rackmem_txn::{Counts, Watch};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The part of a run in which nodes are killed: the others are to go on before it ends.
const PART: (f64, f64) = (0.1, 0.6);

/// What deaths have come to.
#[derive(Clone, Default)]
pub struct Survived {
    /// Which node was killed when, in seconds of the run.
    pub killed: Vec<(usize, f64)>,
    /// Which have died while the database was loaded.
    pub lost: Vec<usize>,
    /// The longest time in which a node that lives has finished no transaction.
    pub gap: Duration,
    /// What all terminals have done, dead ones as well, by their logs.
    pub counted: Option<Counts>,
}

/// Has all nodes run, and kills as many as are to be killed at moments by chance, fewer than have a
/// majority of the copies; what those say that live.
pub fn run(
    crew: &mut Crew,
    args: &TxnArgs,
    histories: Option<&Histories>,
    stop: &Stop,
) -> Played<(Vec<Value>, Survived)> {
    let began = Instant::now();
    let into = histories.map(|it| format!(" {}", it.folder().display()));
    crew.tell_all(&format!("run{}", into.unwrap_or_default()))?;
    let mut random = Rng::new();
    let mut survived = Survived::default();
    for at in moments(&mut random, args) {
        if !stop.sleep(at.saturating_sub(began.elapsed())) {
            return Err(Halt::Stopped);
        }
        let living = crew.living();
        let node = living[random.usize(..living.len())];
        crew.kill(node);
        let when = began.elapsed().as_secs_f64();
        survived.killed.push((node, when));
    }
    Ok((crew.answers(stop)?, survived))
}

fn moments(random: &mut Rng, args: &TxnArgs) -> Vec<Duration> {
    let (from, to) = PART;
    let mut any = || from + random.f64() * (to - from);
    let seconds = args.seconds as f64;
    let moments = (0..args.kill_during(DuringArg::Running)).map(|_| any() * seconds);
    let mut moments: Vec<Duration> = moments.map(Duration::from_secs_f64).collect();
    moments.sort();
    moments
}

/// What logs count is what terminals know of, and what dead ones knew.
pub fn compare(told: Counts, counted: Counts, has_killed: bool) -> Played<()> {
    let columns = [
        ("orders", told.orders, counted.orders),
        ("payments", told.payments, counted.payments),
        ("deliveries", told.delivered, counted.delivered),
    ];
    for (what, told, counted) in columns {
        if counted < told || counted > told && !has_killed {
            let why = format!("terminals know of {told} {what}, and the logs count {counted}");
            return Err(wrong(why));
        }
    }
    Ok(())
}

/// Measures the longest time in which no terminal of a node has finished anything.
pub struct Gap<'w> {
    watcher: &'w Watcher<'w>,
    began: Instant,
    last: AtomicU64,
    longest: AtomicU64,
}

impl<'w> Gap<'w> {
    /// From now on.
    pub fn new(watcher: &'w Watcher<'w>) -> Self {
        Gap {
            watcher,
            began: Instant::now(),
            last: AtomicU64::new(0),
            longest: AtomicU64::new(0),
        }
    }

    /// The longest so far.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest.load(Relaxed))
    }
}

impl Watch for Gap<'_> {
    fn ran(&self) {
        let now = self.began.elapsed().as_nanos() as u64;
        let last = self.last.swap(now, Relaxed);
        self.longest.fetch_max(now.saturating_sub(last), Relaxed);
        self.watcher.ran();
    }

    fn stop(&self) -> bool {
        self.watcher.stop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_count_what_is_known() {
        let some = |orders| Counts {
            orders,
            payments: 4,
            delivered: 1,
        };
        assert!(compare(some(3), some(3), false).is_ok());
        assert!(compare(some(3), some(5), true).is_ok());
        assert!(compare(some(3), some(5), false).is_err());
        assert!(compare(some(3), some(2), true).is_err());
    }
}
