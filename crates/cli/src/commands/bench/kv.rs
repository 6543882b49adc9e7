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
    #[arg(long, value_name = "N", default_value_t = 4)]
    nodes: usize,
    /// Use N keys with values of 128 bytes
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    keys: u64,
    /// Run each case for MS milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    duration: u64,
    /// Run two more cases and record their operations in FILE, for `rackmem history check`
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
