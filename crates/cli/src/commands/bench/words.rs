//! Options of `rackmem bench words`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::rack_args::{FabricArg, ModeArg};
use clap::Args;
use rackmem_bench::report::Report;
use rackmem_bench::run::words;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct WordsArgs {
    /// Choose how packets travel
    #[arg(long, value_enum, default_value = "inline")]
    fabric: FabricArg,
    /// Choose the coherence protocol
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Have N nodes add to the word, a thread each
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    nodes: u16,
    /// Let threads sleep for N µs between two additions, for each N
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [0, 20, 100])]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pause_us: Vec<u64>,
    #[command(flatten)]
    pub often: Often<1, 1000>,
}

pub fn run(args: &WordsArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    let options = words::Options {
        fabric: args.fabric.into(),
        mode: args.mode.into(),
        nodes: args.nodes.into(),
        duration: args.often.time(),
        pauses: args
            .pause_us
            .iter()
            .copied()
            .map(Duration::from_micros)
            .collect(),
    };
    words::run(&options, report, progress)
}
