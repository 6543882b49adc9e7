//! Options of `rackmem bench dataplane`.

use super::{Measured, Progress};
use clap::Args;

#[derive(Debug, Args)]
pub struct DataplaneArgs {
    /// Pass N packets through the bare program per run
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    packets: u32,
    /// Measure N round trips of each kind per run
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    rounds: u32,
    /// Take the median of N runs
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
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
pub fn run(args: &DataplaneArgs, progress: Progress<'_>) -> Measured {
    use rackmem_bench::run::dataplane;
    let options = dataplane::Options {
        packets: args.packets.max(2),
        rounds: args.rounds.max(64),
        runs: args.runs.max(1),
    };
    dataplane::run(&options, progress)
}

#[cfg(not(feature = "xdp"))]
pub fn play(_: &DataplaneArgs) -> Result<(), super::BenchError> {
    Err(not_built())
}

#[cfg(not(feature = "xdp"))]
pub fn run(args: &DataplaneArgs, _: Progress<'_>) -> Measured {
    let _ = (args.packets, args.rounds, args.runs);
    Err(not_built())
}

#[cfg(not(feature = "xdp"))]
fn not_built() -> super::BenchError {
    let why = "rackmem was built without the switch in the kernel (`--features xdp`)";
    super::BenchError::Missing(why.into())
}
