//! Options of `rackmem bench hit`.

use super::{Measured, Progress};
use crate::size;
use clap::Args;
use rackmem_bench::run::hit;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct HitArgs {
    /// Use blocks of SIZE bytes
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size::parse)]
    block_size: u64,
    /// Run each case for MS milliseconds
    #[arg(long, value_name = "MS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    duration: u64,
    /// Take the median of N runs
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
}

pub fn run(args: &HitArgs, progress: Progress<'_>) -> Measured {
    let options = hit::Options {
        block_size: usize::try_from(args.block_size).unwrap_or(usize::MAX),
        duration: Duration::from_millis(args.duration),
        runs: args.runs.max(1),
    };
    hit::run(&options, progress)
}
