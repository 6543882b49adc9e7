//! Options of `rackmem bench miss`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::rack_args::{FabricArg, ModeArg};
use crate::size;
use clap::Args;
use rackmem_bench::report::Report;
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
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: Option<u32>,
    /// Let N threads compute meanwhile, as other programs of a busy machine do
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=256))]
    busy: u16,
    /// Let the thread that measures have no short turns of the processor, as others that wait have
    #[arg(long)]
    usual_turns: bool,
    #[command(flatten)]
    pub often: Often<1, 0>,
}

pub fn run(args: &MissArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    let suited = miss::Options::of(args.fabric.into());
    let options = miss::Options {
        mode: args.mode.into(),
        block_size: usize::try_from(args.block_size).unwrap_or(usize::MAX),
        rounds: args.rounds.map_or(suited.rounds, |rounds| rounds as usize),
        duration: args.often.duration,
        busy: args.busy.into(),
        usual_turns: args.usual_turns,
        ..suited
    };
    miss::run(&options, report, progress)
}
