//! Options of `rackmem bench loss`.

use super::{Measured, Progress, history_file};
use crate::rack_args::ModeArg;
use clap::Args;
use rackmem_bench::run::loss;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct LossArgs {
    /// Which protocol keeps the memory coherent
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Nodes
    #[arg(long, value_name = "N", default_value_t = 4)]
    nodes: usize,
    /// Percent of operations that read
    #[arg(long, value_name = "PERCENT", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: u8,
    /// Milliseconds of one run
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    duration: u64,
    /// Runs of which the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// Also keep what clients did and were told, for `rackmem history check`
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
