//! Options of `rackmem bench kv`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::programs;
use crate::rack_args::nodes;
use clap::{Args, ValueEnum};
use rackmem_bench::recorded::HistoryFile;
use rackmem_bench::report::Report;
use rackmem_bench::run::kv;
use std::path::PathBuf;

/// What the store is measured beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Versus {
    /// redis-server on this machine, with the same client and keys
    Redis,
    /// No comparison
    Nothing,
}

#[derive(Debug, Args)]
pub struct KvArgs {
    /// Compare with Redis or nothing [redis, where installed]
    #[arg(long, value_enum)]
    vs: Option<Versus>,
    /// Run N nodes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = nodes)]
    nodes: usize,
    /// Use N keys with values of 128 bytes
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    keys: u64,
    #[command(flatten)]
    pub often: Often<1, 1000>,
    /// Run two more cases and record their operations in FILE, for `rackmem history check`
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
}

pub fn run(
    args: &KvArgs,
    round: usize,
    file: Option<&mut HistoryFile>,
    report: &mut Report,
    progress: Progress<'_>,
) -> BenchResult {
    let redis = match args.vs {
        Some(versus) => versus == Versus::Redis,
        None => programs::find("redis-server").is_some(),
    };
    let options = kv::Options {
        nodes: args.nodes,
        keys: args.keys,
        duration: args.often.time(),
        redis,
    };
    kv::run(&options, round, file, report, progress)
}
