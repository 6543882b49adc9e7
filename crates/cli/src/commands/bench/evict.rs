//! Options of `rackmem bench evict`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::rack_args::{FabricArg, ModeArg};
use clap::Args;
use rackmem_bench::report::Report;
use rackmem_bench::run::evict;

#[derive(Debug, Args)]
pub struct EvictArgs {
    /// Choose how packets travel
    #[arg(long, value_enum, default_value = "udp")]
    fabric: FabricArg,
    /// Choose the coherence protocol
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Use working sets of N percent of the cache, for each N
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [50, 115, 200])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    set: Vec<u32>,
    #[command(flatten)]
    pub often: Often<1, 1000>,
}

pub fn run(args: &EvictArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    let options = evict::Options {
        fabric: args.fabric.into(),
        mode: args.mode.into(),
        block_size: 4096,
        cache: 1024,
        sets: args.set.clone(),
        duration: args.often.time(),
    };
    evict::run(&options, report, progress)
}
