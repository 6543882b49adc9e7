//! The points of all figures, each simulated once, on all cores.

use super::super::Progress;
use super::{Outcome, Workload};
use crate::stop;
use rackmem_sim::model::{self, Accesses, Experiment, System, simulate};
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// What the simulator itself did, which depends on the machine.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Speed {
    /// Runs.
    pub runs: usize,
    /// Packets that were delivered.
    pub packets: u64,
    /// Things that happened in virtual time.
    pub occurrences: u64,
    /// Processor time of all runs together.
    pub core_seconds: f64,
    /// Seconds on the wall.
    pub seconds: f64,
}

impl Speed {
    /// That of these runs, which took so much processor time and began then.
    pub(super) fn of<'o, F: 'o>(
        outcomes: impl Iterator<Item = &'o model::Outcome<F>>,
        core_seconds: f64,
        began: Instant,
    ) -> Speed {
        let seconds = began.elapsed().as_secs_f64();
        let none = Speed {
            core_seconds,
            seconds,
            ..Speed::default()
        };
        outcomes.fold(none, |sum, outcome| Speed {
            runs: sum.runs + 1,
            packets: sum.packets + outcome.traffic.received,
            occurrences: sum.occurrences + outcome.occurrences,
            ..sum
        })
    }
}

/// All points.
pub struct Points {
    rows: Vec<(System, Workload, Outcome)>,
    speed: Speed,
}

impl Points {
    /// Simulates what is wanted.
    pub fn simulate(
        wanted: impl Iterator<Item = (System, Workload)>,
        seed: u64,
        progress: Progress<'_>,
    ) -> Self {
        let mut experiments: Vec<Experiment<Accesses>> = Vec::new();
        for (system, workload) in wanted {
            let known = |e: &&Experiment<_>| (e.platform.system, e.workload) == (system, workload);
            if experiments.iter().find(known).is_none() {
                experiments.push(Experiment::<Accesses>::new(system, workload, seed));
            }
        }
        let began = Instant::now();
        let name = |e: &Experiment<_>| super::name(e.platform.system, &e.workload);
        let (outcomes, core_seconds) = all(&experiments, simulate, name, progress);
        let rows: Vec<_> = (experiments.iter().zip(outcomes))
            .filter_map(|(e, outcome)| Some((e.platform.system, e.workload, outcome?)))
            .collect();
        let speed = Speed::of(rows.iter().map(|row| &row.2), core_seconds, began);
        Points { rows, speed }
    }

    /// A point.
    pub fn get(&self, system: System, workload: &Workload) -> Option<&Outcome> {
        let found = self
            .rows
            .iter()
            .find(|row| (row.0, &row.1) == (system, workload));
        found.map(|row| &row.2)
    }

    /// All points in the order in which they were wanted.
    pub fn iter(&self) -> impl Iterator<Item = (System, &Workload, &Outcome)> {
        self.rows.iter().map(|row| (row.0, &row.1, &row.2))
    }

    /// What it took.
    pub fn speed(&self) -> Speed {
        self.speed
    }
}

/// Runs experiments on every core; outcomes in the order of the experiments,
/// and the time it took each together. Those that the user did not wait for have none.
pub(super) fn all<E: Sync, O: Send>(
    experiments: &[E],
    simulate: fn(&E) -> O,
    name: impl Fn(&E) -> String,
    progress: Progress<'_>,
) -> (Vec<Option<O>>, f64) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let mut outcomes: Vec<Option<O>> = experiments.iter().map(|_| None).collect();
    let mut seconds = 0.0;
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::sync_channel(experiments.len().max(1));
        for _ in 0..cores {
            let (tell, next) = (tell.clone(), &next);
            scope.spawn(move || {
                while !stop::requested() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(experiment) = experiments.get(index) else {
                        return;
                    };
                    let began = processor_seconds();
                    let outcome = simulate(experiment);
                    let _ = tell.send((index, outcome, processor_seconds() - began));
                }
            });
        }
        drop(tell);
        for (done, (index, outcome, took)) in told.iter().enumerate() {
            let of = experiments.len();
            progress(&format!("{}/{of} {}", done + 1, name(&experiments[index])));
            outcomes[index] = Some(outcome);
            seconds += took;
        }
    });
    (outcomes, seconds)
}

/// Processor time of this thread so far: other programs do not count.
fn processor_seconds() -> f64 {
    // SAFETY: all bytes zero is a value of this plain structure of two integers.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a structure of our own; the clock is every thread's.
    let told = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if told == 0 {
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    } else {
        0.0
    }
}
