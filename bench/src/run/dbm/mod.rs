//! `bench dbm`: a hash or a tree database in the rack's memory, all of it under one lock, which all
//! threads of all nodes want; of every kind of lock, beside the C library's in one process.

mod lock;
mod site;
mod told;
mod tpcc;

pub use lock::OneLock;
pub use rackmem_dbm::{Kind, MAX_VALUE};
pub use told::DbmReport;

use super::{BenchError, Progress, Result};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::stop;
use crate::system::System;
use rackmem::Fabric;
use rackmem_dbm::DbmError;
use site::{Site, key};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How the database's pages are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// By calls.
    Calls,
    /// As loads and stores of mapped memory.
    Mapped,
}

impl Way {
    /// Both, with the names used in commands and reports.
    pub const ALL: [(Way, &'static str); 2] = [(Way::Calls, "calls"), (Way::Mapped, "mapped")];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Way::Calls => "calls",
            Way::Mapped => "mapped",
        }
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which databases.
    pub kinds: Vec<Kind>,
    /// Under which locks.
    pub locks: Vec<OneLock>,
    /// How nodes use the pages.
    pub ways: Vec<Way>,
    /// Over which fabric.
    pub fabric: Fabric,
    /// With a switch, or with home agents only.
    pub mode: System,
    /// Nodes of a rack, one rack after the other.
    pub nodes: Vec<usize>,
    /// Threads of each node.
    pub threads: usize,
    /// Percent of operations that write.
    pub writes: Vec<u8>,
    /// Records, and bytes of their values.
    pub records: u32,
    /// See there.
    pub value: usize,
    /// Warehouses of TPC-C databases that are measured as well.
    pub warehouses: Vec<u32>,
    /// Time of a case.
    pub duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kinds: Kind::ALL.map(|row| row.0).into(),
            locks: OneLock::all().collect(),
            ways: vec![Way::Calls],
            fabric: Fabric::Inline,
            mode: System::Switch,
            nodes: vec![1, 2, 4],
            threads: 1,
            writes: vec![5, 50, 100],
            records: 10_000,
            value: 100,
            warehouses: Vec::new(),
            duration: Duration::from_millis(300),
        }
    }
}

/// A database in a rack.
#[derive(Clone, Copy)]
struct Point {
    kind: Kind,
    way: Way,
    nodes: usize,
    lock: OneLock,
}

impl Options {
    /// What a case is called, beside its share of writes and its lock.
    fn group(&self, point: &Point) -> String {
        let (fabric, mode) = (self.fabric.name(), self.mode.name());
        let (way, kind) = (point.way.name(), point.kind.name());
        format!("{fabric}/{mode}/{way}/{kind}")
    }

    fn case(&self, point: &Point, writes: u8) -> String {
        let (group, lock) = (self.group(point), point.lock.name());
        let (nodes, threads) = (point.nodes, self.threads);
        format!("{group}/{lock}/nodes-{nodes}/threads-{threads}/writes-{writes}")
    }

    fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for &way in &self.ways {
            for &kind in &self.kinds {
                for &nodes in &self.nodes {
                    for &lock in &self.locks {
                        points.push(Point {
                            kind,
                            way,
                            nodes,
                            lock,
                        });
                    }
                }
            }
        }
        points
    }
}

impl From<DbmError> for BenchError {
    fn from(error: DbmError) -> Self {
        match error {
            DbmError::Rack(
                error @ rackmem::Error::Region(rackmem::RegionError::NoPaging { .. }),
            ) => BenchError::Missing(error.to_string()),
            DbmError::Rack(error) => BenchError::Rack(error),
            error => BenchError::Broken(error.to_string()),
        }
    }
}

/// Runs it. After each case all pages of its database are looked at.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for point in options.points() {
        progress(&format!("loading {}", options.case(&point, 0)));
        let site = Site::load(options, &point)?;
        for &writes in &options.writes {
            if stop::requested() {
                return Err(BenchError::Stopped);
            }
            let case = options.case(&point, writes);
            progress(&case);
            let done = measure(options, &site, writes)?;
            done.add(&case, options.case(&pthread(&point), writes), report)?;
            site.check(options.records)?;
        }
    }
    tpcc::run(options, report, progress)
}

fn pthread(point: &Point) -> Point {
    let lock = OneLock::Pthread;
    Point { lock, ..*point }
}

/// What threads have done.
struct Done {
    operations: Vec<u64>,
    rate: f64,
    times: Histogram,
    transactions: u64,
}

impl Done {
    fn add(&self, case: &str, baseline: String, report: &mut Report) -> Result<()> {
        if case != baseline && report.case(&baseline).is_some() {
            report.add_against(case, self.rate, "ops/s", &baseline)?;
        } else {
            report.add(case, self.rate, "ops/s")?;
        }
        for percent in [50.0, 99.0] {
            let time = self.times.percentile(percent) as f64 / 1e3;
            report.add(&format!("{case}/p{percent}"), time, "us")?;
        }
        let all = self.operations.iter().sum::<u64>().max(1) as f64;
        let transactions = self.transactions as f64 / all;
        let case_of = |what: &str| format!("{case}/{what}");
        report.add(&case_of("transactions"), transactions, "per operation")?;
        let least = self.operations.iter().min().copied().unwrap_or(0) as f64;
        let share = least / all * self.operations.len() as f64 * 100.0;
        report.add(&case_of("least-share"), share, "% of fair")?;
        Ok(())
    }
}

fn measure(options: &Options, site: &Site, writes: u8) -> Result<Done> {
    let threads = site.nodes() * options.threads;
    let (barrier, over) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let before = site.transactions();
    let told = std::thread::scope(|scope| {
        let work = |nth: usize| {
            let (barrier, over) = (&barrier, &over);
            scope.spawn(move || {
                barrier.wait();
                let done = work(options, site, nth, writes, over);
                // One that has failed ends the others.
                over.fetch_or(done.is_err(), Relaxed);
                done
            })
        };
        let all: Vec<_> = (0..threads).map(work).collect();
        barrier.wait();
        stop::sleep(options.duration);
        over.store(true, Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Worked>>| {
            let told = thread.join();
            told.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let told = all.into_iter().map(join);
        told.collect::<Result<Vec<Worked>>>()
    })?;
    let mut times = Histogram::new();
    told.iter().for_each(|one| times.merge(&one.times));
    let rate = |one: &Worked| one.times.count() as f64 / one.elapsed.as_secs_f64();
    Ok(Done {
        operations: told.iter().map(|one| one.times.count()).collect(),
        rate: told.iter().map(rate).sum(),
        times,
        transactions: site.transactions() - before,
    })
}

/// What one thread has done.
struct Worked {
    times: Histogram,
    elapsed: Duration,
}

/// Reads a record, or gives it another value of the same length, whichever is drawn.
fn work(
    options: &Options,
    site: &Site,
    nth: usize,
    writes: u8,
    over: &AtomicBool,
) -> Result<Worked> {
    let database = site.database(nth / options.threads);
    let mut random = fastrand::Rng::with_seed(nth as u64 + 1);
    let mut value = vec![0; options.value];
    let mut times = Histogram::new();
    let began = Instant::now();
    while !over.load(Relaxed) {
        let key = key(random.u32(0..options.records));
        let start = Instant::now();
        let was_there = if random.u8(0..100) < writes {
            value.fill(random.u8(..));
            database.set(&key, &value)?
        } else {
            database.get(&key)?.is_some()
        };
        times.record(start.elapsed().as_nanos() as u64);
        if !was_there {
            return Err(BenchError::Broken("a record is not there".into()));
        }
    }
    Ok(Worked {
        times,
        elapsed: began.elapsed(),
    })
}
