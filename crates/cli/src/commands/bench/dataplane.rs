//! Options of `rackmem bench dataplane`.

use super::often::Often;
use super::{BenchResult, Progress};
use clap::Args;
use rackmem_bench::report::Report;

#[derive(Debug, Args)]
pub struct DataplaneArgs {
    /// Pass N packets through the bare program per run
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    packets: u32,
    /// Measure N round trips of each kind per run
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(64..=1_000_000))]
    rounds: u32,
    #[command(flatten)]
    pub often: Often<3, 0>,
    /// What a process of the bench does in its namespace
    #[arg(long, value_name = "WORD", num_args = 1.., hide = true)]
    part: Vec<String>,
}

impl DataplaneArgs {
    /// Whether this process plays a part of a bench that another one runs.
    pub fn plays(&self) -> bool {
        !self.part.is_empty()
    }
}

/// Plays the part.
#[cfg(feature = "xdp")]
pub fn play(args: &DataplaneArgs) -> Result<(), super::BenchError> {
    rackmem_bench::run::dataplane::play(&args.part)
}

#[cfg(feature = "xdp")]
pub fn run(args: &DataplaneArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    use rackmem_bench::run::dataplane;
    let options = dataplane::Options {
        packets: args.packets,
        rounds: args.rounds,
        duration: args.often.time(),
    };
    dataplane::run(&options, report, progress)
}

#[cfg(not(feature = "xdp"))]
pub fn play(_: &DataplaneArgs) -> Result<(), super::BenchError> {
    Err(not_built())
}

#[cfg(not(feature = "xdp"))]
pub fn run(args: &DataplaneArgs, _: &mut Report, _: Progress<'_>) -> BenchResult {
    let _ = (args.packets, args.rounds, args.often.time());
    Err(not_built())
}

#[cfg(not(feature = "xdp"))]
fn not_built() -> super::BenchError {
    let why = "rackmem was built without the switch in the kernel (`--features xdp`)";
    super::BenchError::Missing(why.into())
}
