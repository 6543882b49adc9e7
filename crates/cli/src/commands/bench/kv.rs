//! Options of `rackmem bench kv`.

use super::{Measured, Progress, history_file};
use crate::programs;
use clap::{Args, ValueEnum};
use rackmem_bench::run::kv;
use std::path::PathBuf;
use std::time::Duration;

/// What the store is measured beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Versus {
    /// The redis-server of this machine, with the same client and keys
    Redis,
    /// Nothing
    Nothing,
}

#[derive(Debug, Args)]
pub struct KvArgs {
    /// What to measure beside it; redis where redis-server is installed
    #[arg(long, value_enum)]
    vs: Option<Versus>,
    /// Nodes of the rack
    #[arg(long, value_name = "N", default_value_t = 4)]
    nodes: usize,
    /// Keys; their values have 128 bytes
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    keys: u64,
    /// Milliseconds of one case
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    duration: u64,
    /// Measure two cases more, and record what their clients do and are told,
    /// for `rackmem history check`
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

pub fn run(args: &KvArgs, progress: Progress<'_>) -> Measured {
    let redis = match args.vs {
        Some(versus) => versus == Versus::Redis,
        None => programs::find("redis-server").is_some(),
    };
    let options = kv::Options {
        nodes: args.nodes,
        keys: args.keys,
        duration: Duration::from_millis(args.duration),
        redis,
    };
    let mut file = history_file(args.history.as_deref())?;
    kv::run(&options, file.as_mut(), progress)
}
