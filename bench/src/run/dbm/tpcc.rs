//! TPC-C's transactions, each of which holds the one lock alone from its beginning to its end, as
//! the Soul paper runs them on Kyoto Cabinet (Fig. 8).

use super::lock::Taken;
use super::site::{lock, transactions};
use super::{OneLock, Options};
use crate::report::Report;
use crate::run::{BenchError, Progress, Result};
use crate::{locks, stop};
use rackmem::Rack;
use rackmem_dbm::Lock;
use rackmem_txn::transactions::Kind;
use rackmem_txn::{
    Done, Engine, Layout, Limit, LockFailure, MAX_ROOM, OnlyLock, Plan, Remote, Scale, TxnError,
    Unwatched, Watch, check, drive, load,
};

/// A small database: what decides here is what moves, not how much there is.
const ITEMS: u32 = 1_000;
const CUSTOMERS: u32 = 100;
/// Orders that a district has room for, and more of them for each second of a run.
const ROOM: u32 = 2_000;
const ROOM_A_SECOND: u32 = 8_000;
const SEED: u64 = 1;

type Locked = std::result::Result<(), LockFailure>;

/// The lock as each node has it.
struct Everywhere(Vec<Taken>);

impl OnlyLock for Everywhere {
    fn alone(&self, node: usize, section: &mut dyn FnMut()) -> Locked {
        let lock = self.0.get(node).ok_or("a node has no lock")?;
        lock.exclusive(section)
    }
}

/// Ends when the user wants it.
struct Stopped;

impl Watch for Stopped {
    fn stop(&self) -> bool {
        stop::requested()
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

/// What a case is called.
pub(super) fn case(options: &Options, lock: OneLock, warehouses: u32, nodes: usize) -> String {
    let (fabric, mode) = (options.fabric.name(), options.mode.name());
    let (lock, threads) = (lock.name(), options.threads);
    format!("{fabric}/{mode}/tpc-c/{lock}/warehouses-{warehouses}/nodes-{nodes}/threads-{threads}")
}

/// All locks, nodes and warehouses. The specification's conditions hold after each case.
pub(super) fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for &warehouses in &options.warehouses {
        for &nodes in &options.nodes {
            for &lock in &options.locks {
                if stop::requested() {
                    return Err(BenchError::Stopped);
                }
                let name = case(options, lock, warehouses, nodes);
                progress(&name);
                let baseline = case(options, OneLock::Pthread, warehouses, nodes);
                let (rate, each) = measure(options, lock, warehouses, nodes)?;
                match lock != OneLock::Pthread && report.case(&baseline).is_some() {
                    true => report.add_against(&name, rate, "ops/s", &baseline)?,
                    false => report.add(&name, rate, "ops/s")?,
                }
                report.add(&format!("{name}/transactions"), each, "per operation")?;
            }
        }
    }
    Ok(())
}

/// TPC-C's transactions a second, and the coherence transactions of one.
fn measure(options: &Options, which: OneLock, warehouses: u32, nodes: usize) -> Result<(f64, f64)> {
    let seconds = options.duration.as_secs_f64().ceil() as u32;
    let scale = Scale {
        items: ITEMS,
        customers: CUSTOMERS,
        room: seconds
            .saturating_mul(ROOM_A_SECOND)
            .saturating_add(ROOM)
            .min(MAX_ROOM),
        ..Scale::of(warehouses)
    };
    let layout = Layout::new(scale, nodes)?;
    let most = layout.parts().iter().map(|part| part.bytes).max();
    let bytes = most.unwrap_or(0);
    let rack = options.mode.builder(nodes).fabric(options.fabric);
    // Room for the lock and for what regions need beside their bytes.
    let rack = rack.memory((bytes + (32 << 20)).max(64 << 20));
    let rack = rack.guests(locks::guests(which.of_rack())).build()?;
    let lock = Everywhere(lock(which, &rack)?);
    let engine = rackmem_txn::OneLock::under(lock, rack.nodes(), layout)?;
    load(&engine, SEED, &Unwatched)?;
    let plan = Plan {
        threads: options.threads,
        limit: Limit::Time(options.duration),
        remote: Remote::Specification,
        seed: SEED,
        deeds: 0,
    };
    let before = transactions(&rack);
    let done = drive(&engine, &plan, &Stopped)?;
    let moved = (transactions(&rack) - before) as f64;
    if stop::requested() {
        return Err(BenchError::Stopped);
    }
    is_whole(&engine, &done, &rack)?;
    let all = Kind::ALL.iter().map(|row| done.tally.of(row.0).committed);
    let all = all.sum::<u64>() as f64;
    Ok((all / done.time.as_secs_f64(), moved / all.max(1.0)))
}

fn is_whole<E: Engine>(engine: &E, done: &Done, rack: &Rack) -> Result<()> {
    let report = check(engine, &done.tally.counts())?;
    match report.holds() {
        true => Ok(()),
        false => Err(BenchError::Broken(format!(
            "conditions of TPC-C do not hold on {} nodes: {report:?}",
            rack.nodes().len()
        ))),
    }
}
