//! Options of `rackmem bench lock`.

use super::lock_sim::SimArgs;
use super::often::Often;
use crate::rack_args::{FabricArg, ModeArg};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rackmem_bench::locks::LockKind;
use rackmem_bench::run::lock::{Options, Part};
use std::time::Duration;

/// Nodes that a rack has at most.
const MAX_NODES: i64 = 32;

const ABOUT: &str = "\
Locks that are coherence (gcp), and others over the same coherent memory:
  gcp       lock and data in one coherence transaction; used by rackmem::locked
  mcs       a queue of threads, each spinning on its own word; no shared mode
  central   one word, readers preferred, like pthread_rwlock
  per-node  a reader indicator at each node; writers take all of them
  cohort    C-RW-WP: writers preferred, batched by node
  service   a lock manager at the home, by messages

Parts:
  cached     taken again at the same node: no packet (but for the service)
  idle       unused at its home, taken by another node
  hand-over  from the release at one node to the waiting node's entry
  counted    coherence transactions per hand-off: total, and on the critical path
  contended  all nodes take it all the time and read or write 4 KiB inside; `least share` is the
             slowest node's share of the acquisitions, in percent of a fair one
  store      a hash table with a lock over each bucket's 4 KiB, YCSB A, B and C (Soul paper, Fig. 7)
  peers      locks of redis-server and etcd over TCP, where installed

Waiters of gcp and service sleep after 50 us; waiters that poll a word spin for 1 ms.";

#[derive(Debug, Args)]
#[command(after_help = ABOUT)]
pub struct LockArgs {
    /// Choose how packets travel; several run one after the other
    #[arg(long, value_enum, value_delimiter = ',', default_value = "inline,udp")]
    fabric: Vec<FabricArg>,
    /// Keep directories (of locks and blocks) at the switch or at homes
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Measure these locks [all]
    #[arg(long, value_delimiter = ',', value_parser = kind())]
    kinds: Vec<LockKind>,
    /// Measure these parts [all]
    #[arg(long, value_delimiter = ',', value_parser = part())]
    parts: Vec<Part>,
    /// Let N nodes contend
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,2,4,8"
    )]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=MAX_NODES))]
    nodes: Vec<u16>,
    /// Make PERCENT of contended acquisitions shared (reads)
    #[arg(
        long,
        value_name = "PERCENT",
        value_delimiter = ',',
        default_value = "0,50,95,100"
    )]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: Vec<u8>,
    #[command(flatten)]
    pub often: Often<1, 100>,
    /// Yield for US microseconds between two contended acquisitions of a thread
    #[arg(long, value_name = "US", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    think: u64,
    /// Measure N hand-offs, and N/5 acquisitions of idle remote locks
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(10..=20_000))]
    rounds: u32,
    #[command(flatten)]
    pub sim: SimArgs,
}

/// A parser of the names in a table.
fn kind() -> impl TypedValueParser<Value = LockKind> {
    let names = PossibleValuesParser::new(LockKind::ALL.map(|row| row.1));
    names.try_map(|name| name.parse::<LockKind>())
}

fn part() -> impl TypedValueParser<Value = Part> {
    let by_name = |name: String| Part::ALL.iter().find(|row| row.1 == name).map(|row| row.0);
    PossibleValuesParser::new(Part::ALL.map(|row| row.1))
        .try_map(move |name| by_name(name).ok_or("no such part"))
}

impl LockArgs {
    /// What to measure.
    pub fn options(&self) -> Options {
        let mut options = Options {
            fabrics: self.fabric.iter().map(|&fabric| fabric.into()).collect(),
            mode: self.mode.into(),
            nodes: self.nodes.iter().map(|&nodes| nodes.into()).collect(),
            reads: self.reads.clone(),
            duration: self.often.time(),
            think: Duration::from_micros(self.think),
            rounds: self.rounds as usize,
            ..Options::default()
        };
        if !self.kinds.is_empty() {
            options.kinds.clone_from(&self.kinds);
        }
        if !self.parts.is_empty() {
            options.parts.clone_from(&self.parts);
        }
        options
    }
}
