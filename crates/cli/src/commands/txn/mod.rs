//! `rackmem txn`: TPC-C's transactions on a database in the memory of a rack.

mod copies;
mod histories;
mod kills;
mod loading;
mod outside;
mod play;
mod processes;
mod show;

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::rack_args::{FabricArg, RackArgs, node};
use crate::stop::Stop;
use clap::{Args, ValueEnum};
use rackmem_txn::{CUSTOMERS, ITEMS, MAX_ROOM, MAX_WAREHOUSES, ROOM, Remote, Scale, TxnError};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
A database of TPC-C is loaded into the memory of a rack's nodes: warehouses spread over them, records and
ordered indexes. Then terminals, --threads at each node, ask for one transaction after the other, in the
standard mix: 45% New-Order, 43% Payment, 4% each of Order-Status, Delivery and Stock-Level. At the end the
specification's conditions of consistency are checked on all rows; if one does not hold, the command fails.
There are no keying and think times, and no disk: figures are no TPC results. tpmC is new orders a minute.

Examples:
  rackmem txn                                       4 warehouses, 4 nodes, for 10 seconds
  rackmem txn --warehouses 32 --nodes 8 --threads 4 as Concordia's paper has it
  rackmem txn --remote 100                          each order and payment is of another warehouse
  rackmem txn --engine objects                      optimistic transactions instead of locks
  rackmem txn --engine delegate --fabric udp        each node does what is of its warehouses, for comparison
  rackmem txn --engine one-lock                     all of the database under one lock of the rack
  rackmem txn --mode directory --fabric udp         on a classic directory, for comparison
  rackmem txn --fabric udp --loss 0.01 --judge      packets are lost, and the history is judged
  rackmem txn --processes --nodes 2                 a process for each node, over UDP or --fabric shm
  rackmem txn --copies 3 --processes --kill 1 --judge --items 1000 --customers 100 --threads 2
                                                    a node dies, and the others have all that has committed
  rackmem txn --vs sqlite                           beside SQLite in memory, by one process of python3
  rackmem txn --items 1000 --customers 100          a small database: another benchmark
  rackmem --json txn                                one object for scripts";

/// Threads of a node at most.
const MAX_THREADS: u64 = 64;
/// Seconds of a run at most.
const MAX_SECONDS: u64 = 86_400;

/// What makes transactions of reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    /// Two-phase locking: cells in coherent memory, each under a reader-writer lock of the rack
    Locks,
    /// Optimistic: cells are objects, and a commit checks that what was read has not changed
    Objects,
    /// Delegation, a baseline: nothing is cached, and what is of another node is done by that node
    Delegate,
    /// One lock over all of the database, which each transaction holds alone: to see what it costs
    OneLock,
}

/// When nodes are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DuringArg {
    /// While the database is loaded: others load what they had begun
    Loading,
    /// While terminals run
    Running,
}

/// What a rack is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VsArg {
    /// SQLite in memory, by one connection of one process of python3
    Sqlite,
}

/// Options of `rackmem txn`.
#[derive(Debug, Args)]
pub struct TxnArgs {
    /// Load N warehouses
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_WAREHOUSES)))]
    warehouses: u32,
    /// Run N terminals at each node
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MAX_THREADS))]
    threads: u64,
    /// Run them for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS))]
    seconds: u64,
    /// Let this share of orders and payments be of other warehouses, not the specification's
    #[arg(long, value_name = "PERCENT")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=100))]
    remote: Option<u32>,
    /// Choose what makes transactions
    #[arg(long, value_enum, default_value = "locks")]
    engine: EngineArg,
    /// Draw other rows and orders for each N
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Judge as well whether the history is strictly serializable, of 200,000 transactions at most
    #[arg(long)]
    judge: bool,
    /// Run each node in a process of its own, over UDP or --fabric shm
    #[arg(long, conflicts_with_all = ["pcap", "trace"])]
    processes: bool,
    /// Keep N copies of the database, 3, 5 or 7: it outlives the death of fewer than half of them
    #[arg(long, value_name = "N")]
    copies: Option<u8>,
    /// Kill N nodes
    #[arg(long, value_name = "N", requires_all = ["copies", "processes"])]
    kill: Option<usize>,
    /// Kill them then
    #[arg(long, value_enum, default_value = "running", requires = "kill")]
    during: DuringArg,
    /// Run another database on the same mix afterwards
    #[arg(long, value_enum)]
    vs: Option<VsArg>,
    #[command(flatten)]
    scale: ScaleArgs,
    #[command(flatten)]
    rack: RackArgs,
    #[command(flatten)]
    member: MemberArgs,
}

/// This process as a node of a rack that another one has started.
#[derive(Debug, Args)]
struct MemberArgs {
    /// Run as one node of the rack of processes that this file describes
    #[arg(long, hide = true, value_name = "FILE", requires = "as_node")]
    member: Option<PathBuf>,
    /// Run as this node
    #[arg(long, hide = true, value_name = "N", requires = "member", value_parser = node)]
    as_node: Option<usize>,
}

/// How large the database is.
#[derive(Debug, Args)]
#[command(next_help_heading = "The database")]
struct ScaleArgs {
    /// Have N items; the specification has 100,000
    #[arg(long, value_name = "N", default_value_t = ITEMS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(ITEMS)))]
    items: u32,
    /// Have N customers in each district; the specification has 3,000
    #[arg(long, value_name = "N", default_value_t = CUSTOMERS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(CUSTOMERS)))]
    customers: u32,
    /// Have room for N more orders in each district, and as many payments
    #[arg(long, value_name = "N", default_value_t = ROOM)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ROOM)))]
    room: u32,
}

impl TxnArgs {
    fn scale(&self) -> Scale {
        Scale {
            warehouses: self.warehouses,
            items: self.scale.items,
            customers: self.scale.customers,
            room: self.scale.room,
        }
    }

    /// The rack in a few words.
    fn describe(&self) -> String {
        let mut rack = self.rack.clone();
        if !self.processes {
            return rack.describe();
        }
        if rack.fabric == FabricArg::Inline {
            rack.fabric = FabricArg::Udp;
        }
        format!("{}, a process for each", rack.describe())
    }

    /// How many nodes are killed then.
    fn kill_during(&self, part: DuringArg) -> usize {
        let kill = self.kill.filter(|_| self.during == part);
        kill.unwrap_or_default()
    }

    fn remote(&self) -> Remote {
        self.remote.map_or(Remote::Specification, Remote::Share)
    }
}

/// Loads, runs, checks, and tells.
pub fn run(args: &TxnArgs, json: bool) -> Result<Ended> {
    let stop = Stop::on_signals()?;
    play::Task { args, stop, json }.run()
}

/// A run that has no result.
fn failure(error: TxnError) -> Failure {
    match error {
        TxnError::Rack(error) => error.into(),
        error => Failure::new(error.to_string(), error.next_step()),
    }
}
