//! Options of `rackmem bench loss`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::rack_args::{ModeArg, nodes};
use clap::Args;
use rackmem_bench::recorded::HistoryFile;
use rackmem_bench::report::Report;
use rackmem_bench::run::loss;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct LossArgs {
    /// Choose the coherence protocol
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Run N nodes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = nodes)]
    nodes: usize,
    /// Make PERCENT of operations reads
    #[arg(long, value_name = "PERCENT", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: u8,
    #[command(flatten)]
    pub often: Often<3, 1000>,
    /// Record every operation in FILE, for `rackmem history check`
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
}

pub fn run(
    args: &LossArgs,
    round: usize,
    file: Option<&mut HistoryFile>,
    report: &mut Report,
    progress: Progress<'_>,
) -> BenchResult {
    let options = loss::Options {
        mode: args.mode.into(),
        nodes: args.nodes,
        reads: args.reads,
        duration: args.often.time(),
    };
    loss::run(&options, round, file, report, progress)
}
