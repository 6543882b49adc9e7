//! Options of `rackmem bench miss`.

use super::{Measured, Progress};
use crate::rack_args::{FabricArg, ModeArg};
use crate::size;
use clap::Args;
use rackmem_bench::run::miss;

#[derive(Debug, Args)]
pub struct MissArgs {
    /// Choose how packets travel
    #[arg(long, value_enum, default_value = "inline")]
    fabric: FabricArg,
    /// Choose the coherence protocol
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Use blocks of SIZE bytes
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size::parse)]
    block_size: u64,
    /// Visit all blocks N times [by fabric]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
}

pub fn run(args: &MissArgs, progress: Progress<'_>) -> Measured {
    let suited = miss::Options::of(args.fabric.into());
    let options = miss::Options {
        mode: args.mode.into(),
        block_size: usize::try_from(args.block_size).unwrap_or(usize::MAX),
        rounds: args.rounds.unwrap_or(suited.rounds).max(1),
        ..suited
    };
    miss::run(&options, progress)
}
