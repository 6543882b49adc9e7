//! Options of `rackmem bench dbm`.

use super::often::Often;
use crate::failure::{Failure, Result};
use crate::rack_args::{FabricArg, ModeArg};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use rackmem_bench::run::dbm::{Kind, MAX_VALUE, OneLock, Options, Way};

/// Nodes that a rack has at most.
const MAX_NODES: i64 = 32;
/// Threads of a node that may want a compared lock at one time.
const MAX_THREADS: i64 = 8;
/// Warehouses of a database at most: each takes some 30 MiB.
const MAX_WAREHOUSES: i64 = 64;
/// Records at most.
const MAX_RECORDS: i64 = 10_000_000;
/// Bytes of all values at most: a database has four times as much memory.
const MAX_BYTES: usize = 4 << 30;

const ABOUT: &str = "\
A hash or a tree of records is in node 0's memory, and one lock protects all of it: every operation of every
thread wants that lock. So this is what a lock costs when all want it, and when the data moves as well: the
next thread's node fetches the pages that the last one has written.

  pthread   pthread_rwlock of this process, which has all nodes: nothing of it travels, so it is no lock of a
            rack but a measure; the pages still move between nodes
  gcp       the rack's own lock: it is coherence, and stays at the node that used it last
  others    see `rackmem bench lock --help`

A read is a get, a write gives a record another value of the same length; keys are drawn evenly. After every
case all pages are looked at, and a lock that let two in is found out. In the tables, what is right of
`ops/s` is of the largest rack: median and 99th percentile of an operation with its wait, coherence
transactions per operation (of pages, of a lock's words, of GCP), and the share of the thread that had the
lock least often, in percent of a fair one.

Examples:
  rackmem bench dbm                                   both databases, every lock, racks of 1, 2 and 4 nodes
  rackmem bench dbm --database tree --lock gcp,pthread
  rackmem bench dbm --writes 0,100 --nodes 2 --threads 4 --fabric udp
  rackmem bench dbm --memory mapped                   pages as loads and stores, instead of by calls
  rackmem bench dbm --warehouses 1,10                 TPC-C as well, as the paper has it; all of it writes
  rackmem --json bench dbm > dbm.json                 one object; `ratio` is to pthread's";

/// How pages are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WayArg {
    /// By calls: what fails is an error
    Calls,
    /// As loads and stores on mapped memory: what fails is a signal
    Mapped,
}

#[derive(Debug, Args)]
#[command(after_help = ABOUT)]
pub struct DbmArgs {
    /// Measure these databases [both]
    #[arg(long, value_delimiter = ',', value_parser = kind())]
    database: Vec<Kind>,
    /// Measure these locks [all]
    #[arg(long, value_delimiter = ',', value_parser = lock())]
    lock: Vec<OneLock>,
    /// Choose how nodes use the pages; several: each
    #[arg(long, value_enum, value_delimiter = ',', default_value = "calls")]
    memory: Vec<WayArg>,
    /// Choose how packets travel
    #[arg(long, value_enum, default_value = "inline")]
    fabric: FabricArg,
    /// Keep directories (of locks and blocks) at the switch or at homes
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Measure racks of N nodes
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=MAX_NODES))]
    nodes: Vec<u16>,
    /// Run N threads at each node
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    threads: u16,
    /// Let PERCENT of operations write
    #[arg(
        long,
        value_name = "PERCENT",
        value_delimiter = ',',
        default_value = "5,50,100"
    )]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    writes: Vec<u8>,
    /// Load N records
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_RECORDS))]
    records: u32,
    /// Give them values of N bytes
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=MAX_VALUE as i64))]
    value: u16,
    /// Run TPC-C as well, on N warehouses, each transaction alone under the lock
    #[arg(long, value_name = "N", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_WAREHOUSES))]
    warehouses: Vec<u32>,
    #[command(flatten)]
    pub often: Often<1, 300>,
}

fn kind() -> impl TypedValueParser<Value = Kind> {
    let by_name = |name: String| Kind::ALL.iter().find(|row| row.1 == name).map(|row| row.0);
    PossibleValuesParser::new(Kind::ALL.map(|row| row.1))
        .try_map(move |name| by_name(name).ok_or("no such database"))
}

fn lock() -> impl TypedValueParser<Value = OneLock> {
    PossibleValuesParser::new(OneLock::all().map(OneLock::name))
        .try_map(|name| name.parse::<OneLock>())
}

impl DbmArgs {
    /// What to measure.
    pub fn options(&self) -> Result<Options> {
        let (records, value) = (self.records as usize, usize::from(self.value));
        if records.saturating_mul(value) > MAX_BYTES {
            return Err(Failure::new(
                format!("{records} values of {value} bytes are more than 4 GiB"),
                "give fewer --records, or a smaller --value",
            ));
        }
        let way = |way: &WayArg| match way {
            WayArg::Calls => Way::Calls,
            WayArg::Mapped => Way::Mapped,
        };
        let mut options = Options {
            ways: self.memory.iter().map(way).collect(),
            fabric: self.fabric.into(),
            mode: self.mode.into(),
            nodes: self.nodes.iter().map(|&nodes| nodes.into()).collect(),
            threads: self.threads.into(),
            writes: self.writes.clone(),
            records: self.records,
            value,
            warehouses: self.warehouses.clone(),
            duration: self.often.time(),
            ..Options::default()
        };
        if !self.database.is_empty() {
            options.kinds.clone_from(&self.database);
        }
        if !self.lock.is_empty() {
            options.locks.clone_from(&self.lock);
        }
        Ok(options)
    }
}
