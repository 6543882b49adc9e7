//! Options of `rackmem bench lock`.

use super::{Measured, Progress};
use crate::rack_args::{FabricArg, ModeArg};
use clap::Args;
use rackmem_bench::run::lock;

#[derive(Debug, Args)]
pub struct LockArgs {
    /// How packets move, one after the other
    #[arg(long, value_enum, value_delimiter = ',', default_value = "inline,udp")]
    fabric: Vec<FabricArg>,
    /// With the directory of locks at the switch, or at their homes
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Hand-overs, and locks that are taken for the first time
    #[arg(long, value_name = "N", default_value_t = 2000)]
    rounds: usize,
}

pub fn run(args: &LockArgs, progress: Progress<'_>) -> Measured {
    let options = lock::Options {
        fabrics: args.fabric.iter().map(|&fabric| fabric.into()).collect(),
        mode: args.mode.into(),
        rounds: args.rounds.clamp(2, 20_000),
        ..lock::Options::default()
    };
    lock::run(&options, progress)
}
