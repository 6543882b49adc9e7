//! TPC-C under two-phase locking, by what keeps memory coherent and by how often a transaction
//! wants something of another warehouse (Concordia's Fig. 15).

use super::{BenchError, Progress, Result};
use crate::report::Report;
use crate::stop;
use crate::system::System;
use rackmem::Fabric;
use rackmem_txn::transactions::Kind;
use rackmem_txn::{
    Cause, Done, Engine, Layout, Limit, Locks, MAX_ROOM, Plan, Remote, Scale, TxnError, Unwatched,
    Watch, check, drive, load,
};
use std::time::Duration;

/// A small database: what decides here is what moves, not how much there is.
const ITEMS: u32 = 1_000;
const CUSTOMERS: u32 = 100;
/// Orders that a district has room for, and more of them for each second of a run.
const ROOM: u32 = 2_000;
const ROOM_A_SECOND: u32 = 8_000;
/// Rows and orders are drawn by this.
pub(super) const SEED: u64 = 1;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// What keeps memory coherent.
    pub systems: Vec<System>,
    /// Percent of orders and payments that are of another warehouse.
    pub remote: Vec<u32>,
    /// Over which fabric.
    pub fabric: Fabric,
    /// Nodes.
    pub nodes: usize,
    /// Threads of a node, each with a warehouse.
    pub threads: usize,
    /// Time of a case.
    pub duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            systems: vec![System::Directory, System::HomeOnly, System::Switch],
            remote: vec![0, 50, 100],
            fabric: Fabric::Inline,
            nodes: 4,
            threads: 1,
            duration: Duration::from_millis(300),
        }
    }
}

impl From<TxnError> for BenchError {
    fn from(error: TxnError) -> Self {
        match error {
            TxnError::Rack(error) => BenchError::Rack(error),
            error => BenchError::Broken(error.to_string()),
        }
    }
}

/// A database with room for what a run of this time may order.
pub(super) fn scale(warehouses: u32, duration: Duration) -> Scale {
    let seconds = duration.as_secs_f64().ceil() as u32;
    let more = seconds.saturating_mul(ROOM_A_SECOND);
    Scale {
        items: ITEMS,
        customers: CUSTOMERS,
        room: more.saturating_add(ROOM).min(MAX_ROOM),
        ..Scale::of(warehouses)
    }
}

/// Bytes that each node needs.
pub(super) fn memory(layout: &Layout) -> u64 {
    let most = layout.parts().iter().map(|part| part.bytes).max();
    // Room for locks and for what regions need beside their bytes.
    (most.unwrap_or(0) + (32 << 20)).max(64 << 20)
}

/// Ends when the user wants it.
struct Stopped;

impl Watch for Stopped {
    fn stop(&self) -> bool {
        stop::requested()
    }
}

/// Loads a database, runs the five transactions, and sees that the specification's conditions hold.
/// Also by how much a count has risen while they ran.
pub(super) fn play<E: Engine>(
    engine: &E,
    plan: &Plan,
    count: impl Fn() -> u64,
) -> Result<(Done, u64)> {
    load(engine, SEED, &Unwatched)?;
    let before = count();
    let done = drive(engine, plan, &Stopped)?;
    let risen = count() - before;
    if stop::requested() {
        return Err(BenchError::Stopped);
    }
    let report = check(engine, &done.tally.counts())?;
    match report.holds() {
        true => Ok((done, risen)),
        false => Err(BenchError::Broken(format!(
            "conditions of TPC-C do not hold: {report:?}"
        ))),
    }
}

/// Transactions that have committed.
pub(super) fn committed(done: &Done) -> u64 {
    let all = Kind::ALL.iter().map(|row| done.tally.of(row.0).committed);
    all.sum()
}

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for &remote in &options.remote {
        for &system in &options.systems {
            if stop::requested() {
                return Err(BenchError::Stopped);
            }
            let (fabric, name) = (options.fabric.name(), system.name());
            let case = format!("{fabric}/{name}/tpc-c/locks/remote-{remote}");
            progress(&case);
            let done = measure(options, system, remote)?;
            let all = committed(&done);
            let rate = all as f64 / done.time.as_secs_f64();
            report.add(&case, rate, "ops/s")?;
            let aborts = |cause: Cause| -> u64 {
                let of = |row: &(Kind, u32, &str)| done.tally.of(row.0).aborts[cause as usize];
                Kind::ALL.iter().map(of).sum()
            };
            let aborts: u64 = Cause::ALL.into_iter().map(aborts).sum();
            let percent = 100.0 * aborts as f64 / (all + aborts).max(1) as f64;
            report.add(&format!("{case}/aborts"), percent, "% of runs")?;
        }
    }
    Ok(())
}

fn measure(options: &Options, system: System, remote: u32) -> Result<Done> {
    let warehouses = (options.nodes * options.threads) as u32;
    let layout = Layout::new(scale(warehouses, options.duration), options.nodes)?;
    let rack = system.builder(options.nodes).fabric(options.fabric);
    let rack = rack.memory(memory(&layout)).build()?;
    let engine = Locks::new(rack.nodes(), layout)?;
    let plan = Plan {
        threads: options.threads,
        limit: Limit::Time(options.duration),
        remote: Remote::Share(remote),
        seed: SEED,
        deeds: 0,
    };
    play(&engine, &plan, || 0).map(|told| told.0)
}
