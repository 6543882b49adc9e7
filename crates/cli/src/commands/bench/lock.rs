//! Options of `rackmem bench lock`.

use super::Progress;
use super::lock_sim::SimArgs;
use crate::failure::Result;
use crate::rack_args::{FabricArg, ModeArg};
use crate::stop::Stop;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rackmem_bench::locks::LockKind;
use rackmem_bench::run::lock::{LockReport, Options, Part};
use rackmem_bench::run::{BenchError, lock};
use std::time::Duration;

/// Nodes that a rack has at most.
const MAX_NODES: i64 = 32;

const ABOUT: &str = "\
Locks that are coherence (gcp), and others over the same coherent memory:
  gcp       the lock and what it protects in one coherence transaction; what rackmem::locked is
  mcs       a queue of threads that spin on words of their own; readers are alone, too
  central   one word for all, readers first, as pthread_rwlock
  per-node  an indicator of readers at each node; writers take all of them
  cohort    C-RW-WP: writers first, who stay at a node for a while
  service   a manager at the lock's home that is asked by messages

Parts:
  cached     taken again where it is: no packet but the service's
  idle       at its home and unused, taken by another node
  hand-over  from just before its holder lets go to the next node inside, which waits already
  counted    coherence transactions of a hand-over: in all, and those that the next one waits for
  contended  every node wants it all the time, and reads or writes 4 KiB inside; `least share` is the
             slowest node's part of the acquisitions, 100% where all have the same
  peers      locks of redis-server and etcd, where they are installed, over TCP

Threads that wait for gcp's lock and for the service sleep after 50 us, as they must where others need the
processor; those that wait for a word spin for a millisecond.";

#[derive(Debug, Args)]
#[command(after_help = ABOUT)]
pub struct LockArgs {
    /// How packets move, one after the other
    #[arg(long, value_enum, value_delimiter = ',', default_value = "inline,udp")]
    fabric: Vec<FabricArg>,
    /// With directories, of locks and of blocks, at the switch, or at homes
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Which locks; all unless told
    #[arg(long, value_delimiter = ',', value_parser = kind())]
    kinds: Vec<LockKind>,
    /// Which parts; all unless told
    #[arg(long, value_delimiter = ',', value_parser = part())]
    parts: Vec<Part>,
    /// Nodes that contend
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,2,4,8"
    )]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=MAX_NODES))]
    nodes: Vec<u16>,
    /// Percent of acquisitions that read, where nodes contend
    #[arg(
        long,
        value_name = "PERCENT",
        value_delimiter = ',',
        default_value = "0,50,95,100"
    )]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: Vec<u8>,
    /// Milliseconds of one case of contention
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    duration: u64,
    /// Microseconds between two acquisitions of a thread that contends,
    /// in which it gives its processor to others
    #[arg(long, value_name = "US", default_value_t = 20)]
    think: u64,
    /// Hand-overs; a fifth as many locks are taken that are idle elsewhere
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rounds: usize,
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

/// Runs it. Nothing when the user did not want to wait for its end.
pub fn run(args: &LockArgs, progress: Progress<'_>) -> Result<Option<LockReport>> {
    let stop = Stop::on_signals()?;
    let mut options = Options {
        fabrics: args.fabric.iter().map(|&fabric| fabric.into()).collect(),
        mode: args.mode.into(),
        nodes: args.nodes.iter().map(|&nodes| nodes.into()).collect(),
        reads: args.reads.clone(),
        duration: Duration::from_millis(args.duration),
        think: Duration::from_micros(args.think),
        rounds: args.rounds.clamp(10, 20_000),
        stop: stop.flag(),
        ..Options::default()
    };
    if !args.kinds.is_empty() {
        options.kinds.clone_from(&args.kinds);
    }
    if !args.parts.is_empty() {
        options.parts.clone_from(&args.parts);
    }
    match lock::run(&options, progress) {
        Ok(report) => Ok(Some(report)),
        Err(BenchError::Stopped) => Ok(None),
        Err(error) => Err(super::explain(error)),
    }
}
