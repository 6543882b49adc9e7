//! Options of `rackmem bench loss`.

use super::{Measured, Progress, history_file};
use crate::rack_args::ModeArg;
use clap::Args;
use rackmem_bench::run::loss;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct LossArgs {
    /// Choose the coherence protocol
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Run N nodes
    #[arg(long, value_name = "N", default_value_t = 4)]
    nodes: usize,
    /// Make PERCENT of operations reads
    #[arg(long, value_name = "PERCENT", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: u8,
    /// Run each case for MS milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    duration: u64,
    /// Take the median of N runs
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// Record every operation in FILE, for `rackmem history check`
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

pub fn run(args: &LossArgs, progress: Progress<'_>) -> Measured {
    let options = loss::Options {
        mode: args.mode.into(),
        nodes: args.nodes,
        reads: args.reads,
        duration: Duration::from_millis(args.duration),
        runs: args.runs,
    };
    let mut file = history_file(args.history.as_deref())?;
    loss::run(&options, file.as_mut(), progress)
}
