//! TPC-C under two-phase locking (Concordia, §7.4): every thread is the terminal of a warehouse and
//! runs the five transactions, some of them with stocks and customers of other warehouses.
//!
//! Which locks a transaction takes, and in which order, is what `rackmem-txn` does.
//! A row's lock is a word in its block, so to lock is to have a copy or to own the block, in every
//! system by its own protocol. Nothing pins a block: who tries to lock a row takes its block away,
//! and the holder fetches it back to unlock.

mod acting;
mod database;
mod locks;
mod mix;
mod told;

pub use acting::Acting;
pub use database::{Index, Table, What};
pub use locks::Locks;
pub use mix::Kind;
pub use told::{Taken, taken};

use super::accesses::SWITCH_SETS;
use super::accessing::{self, AccessFigures, Sizes};
use super::keys::PAPER_CACHE;
use super::layout::Layout;
use super::program::Program;
use super::{Experiment, Outcome, Platform, System, Thread, Workload};
use crate::world::Random;
use acting::Counted;
use database::Database;
use rackmem_proto::wire::RequesterId;

/// Transactions of each thread before the measurement, and those that are measured.
const WARM_UP: u64 = 40;
const MEASURED: u64 = 200;

/// How transactions are drawn, and how large the database is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Transactions {
    /// Percent of new orders, with all their lines, and of payments that are of other warehouses:
    /// the paper's distribution ratio.
    pub remote: u8,
    /// How long a transaction waits for a lock before it is aborted, in nanoseconds, and twice as
    /// long each time it begins again, six times; 0: not at all, as the paper's engine.
    pub patience: u64,
    /// Rows of a warehouse, caches, the switch and the migration's period are the paper's divided
    /// by this.
    pub scale: u32,
}

impl Transactions {
    /// How long a transaction of `rackmem-txn` waits for a lock at first.
    pub const PATIENT: u64 = 2_000_000;
    /// What it does with a row beside looking at it, in nanoseconds: an assumption.
    pub const WORK: u64 = acting::WORK;

    /// Blocks that a node's cache holds.
    pub fn cache(&self) -> u32 {
        PAPER_CACHE / self.scale
    }
}

impl Workload<Transactions> {
    /// A warehouse for every thread.
    fn database(&self) -> Database {
        let warehouses = u32::from(self.nodes) * u32::from(self.threads);
        Database::new(warehouses.max(1), self.program.scale)
    }

    /// Blocks of the database.
    pub fn blocks(&self) -> u32 {
        self.database().blocks()
    }
}

/// What is measured of transactions.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TransactionFigures {
    /// Of whole transactions; those hit that need nothing of other nodes.
    pub of: AccessFigures,
    /// Tries that have not committed.
    pub aborts: u64,
    /// Tries that have.
    pub commits: u64,
    /// Locks that were taken.
    pub locks: u64,
    /// Accesses to blocks, and of these, those that were not here.
    pub accesses: u64,
    /// See above.
    pub misses: u64,
}

impl Outcome<TransactionFigures> {
    /// Of all tries, those that were aborted, from 0 to 1.
    pub fn abort_ratio(&self) -> f64 {
        let tries = self.of.aborts + self.of.commits;
        self.of.aborts as f64 / tries.max(1) as f64
    }

    /// Of all accesses, those whose block was here, from 0 to 1.
    pub fn here(&self) -> f64 {
        1.0 - self.of.misses as f64 / self.of.accesses.max(1) as f64
    }
}

impl Experiment<Transactions> {
    /// A system under a workload, with its own costs, long enough for figures to settle.
    pub fn transactions(system: System, workload: Workload<Transactions>, seed: u64) -> Self {
        let threads = u64::from(workload.nodes) * u64::from(workload.threads);
        Experiment {
            platform: system.platform(),
            workload,
            warm_up: WARM_UP * threads,
            measured: MEASURED * threads,
            seed,
        }
    }
}

impl Program for Transactions {
    type Thread = Acting;
    type Figures = TransactionFigures;
    const COUNTS_ENDING: bool = false;

    fn layout(platform: &Platform, workload: &Workload<Self>) -> Layout {
        let program = workload.program;
        let sizes = Sizes {
            blocks: (0, workload.blocks()),
            cache: program.cache(),
            sets: (SWITCH_SETS / program.scale) as usize,
            scale: program.scale,
        };
        accessing::layout(platform, workload.nodes, sizes)
    }

    fn shared(workload: &Workload<Self>, _: &Layout) -> Locks {
        Locks::new(workload.database().locks())
    }

    fn thread(
        platform: &Platform,
        workload: &Workload<Self>,
        id: RequesterId,
        random: Random,
    ) -> Acting {
        // As `rackmem-txn` has it: warehouses go round the nodes.
        let w = u32::from(id.slot) * u32::from(workload.nodes) + u32::from(id.node);
        Acting::new(platform.costs, workload, (w, random))
    }

    fn figures<'t>(nodes: impl Iterator<Item = &'t [Thread<Acting>]>) -> (TransactionFigures, f64) {
        let counted: Vec<Counted> = nodes
            .flatten()
            .map(|thread| thread.program.counted)
            .collect();
        let sum = |of: fn(&Counted) -> u64| counted.iter().map(of).sum();
        let (of, fairness) = accessing::figures(counted.iter().map(|it| it.tally));
        let figures = TransactionFigures {
            of,
            aborts: sum(|it| it.aborts),
            commits: sum(|it| it.parts),
            locks: sum(|it| it.locks),
            accesses: sum(|it| it.accesses),
            misses: sum(|it| it.misses),
        };
        (figures, fairness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::simulate;

    /// Threads of a rack that are in the middle of something in the end.
    fn unfinished(patience: u64) -> u64 {
        let workload = Workload {
            nodes: 2,
            threads: 1,
            reads: 0,
            program: Transactions {
                remote: 50,
                patience,
                scale: 512,
            },
        };
        let experiment = Experiment::transactions(System::Switch, workload, 1);
        simulate(&experiment).unfinished
    }

    /// A run does not go on for ever, and `everything_ends` of `tests/tpcc.rs` fails.
    #[test]
    fn a_lock_that_is_never_left_ends_the_run_and_is_seen() {
        acting::KEEPS_LOCKS.set(true);
        let kept = [0, Transactions::PATIENT].map(unfinished);
        acting::KEEPS_LOCKS.set(false);
        assert!(kept.iter().all(|count| *count > 0), "{kept:?}");
        assert_eq!(unfinished(0), 0);
    }
}
