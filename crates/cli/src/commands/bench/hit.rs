//! Options of `rackmem bench hit`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::size;
use clap::Args;
use rackmem_bench::report::Report;
use rackmem_bench::run::hit;

#[derive(Debug, Args)]
pub struct HitArgs {
    /// Use blocks of SIZE bytes
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size::parse)]
    block_size: u64,
    #[command(flatten)]
    pub often: Often<3, 300>,
}

pub fn run(args: &HitArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    let options = hit::Options {
        block_size: usize::try_from(args.block_size).unwrap_or(usize::MAX),
        duration: args.often.time(),
    };
    hit::run(&options, report, progress)
}
