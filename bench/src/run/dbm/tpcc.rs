//! TPC-C's transactions, each of which holds the one lock alone from its beginning to its end, as
//! the Soul paper runs them on Kyoto Cabinet (Fig. 8).

use super::lock::Taken;
use super::site::{lock, transactions};
use super::{OneLock, Options};
use crate::report::Report;
use crate::run::{BenchError, Progress, Result, tpcc};
use crate::{locks, stop};
use rackmem_dbm::Lock;
use rackmem_txn::{Layout, Limit, LockFailure, OnlyLock, Plan, Remote};

type Locked = std::result::Result<(), LockFailure>;

/// The lock as each node has it.
struct Everywhere(Vec<Taken>);

impl OnlyLock for Everywhere {
    fn alone(&self, node: usize, section: &mut dyn FnMut()) -> Locked {
        let lock = self.0.get(node).ok_or("a node has no lock")?;
        lock.exclusive(section)
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
    let layout = Layout::new(tpcc::scale(warehouses, options.duration), nodes)?;
    let rack = options.mode.builder(nodes).fabric(options.fabric);
    let rack = rack.memory(tpcc::memory(&layout));
    let rack = rack.guests(locks::guests(which.of_rack())).build()?;
    let lock = Everywhere(lock(which, &rack)?);
    let engine = rackmem_txn::OneLock::under(lock, rack.nodes(), layout)?;
    let plan = Plan {
        threads: options.threads,
        limit: Limit::Time(options.duration),
        remote: Remote::Specification,
        seed: tpcc::SEED,
        deeds: 0,
    };
    let (done, moved) = tpcc::play(&engine, &plan, || transactions(&rack))?;
    let all = tpcc::committed(&done) as f64;
    let rate = all / done.time.as_secs_f64();
    Ok((rate, moved as f64 / all.max(1.0)))
}
