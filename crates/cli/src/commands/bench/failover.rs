//! Options of `rackmem bench failover`.

use super::often::Often;
use super::{BenchError, BenchResult, Progress};
use clap::Args;
use rackmem_bench::report::Report;
use rackmem_bench::run::failover;
use rackmem_bench::run::failover_sim;
use rackmem_bench::timeline::Timeline;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct FailoverArgs {
    /// Run N nodes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=32))]
    nodes: u64,
    /// Declare a member dead after MS milliseconds without a heartbeat
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    lease_ms: u64,
    /// Make PERCENT of operations touch data that all nodes share
    #[arg(long, value_name = "PERCENT", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    sharing: u8,
    /// Make PERCENT of operations reads
    #[arg(long, value_name = "PERCENT", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: u8,
    /// Run MS complete, MS without the victim, MS complete again
    #[arg(long, value_name = "MS", num_args = 3, default_values_t = [2000, 3000, 4000])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3_600_000), conflicts_with = "duration")]
    phases: Vec<u64>,
    #[command(flatten)]
    pub often: Often<1, 0>,
    /// Simulate the switch's death in virtual time: network time only
    #[arg(long, conflicts_with_all = ["lease_ms", "sharing", "reads", "phases", "runs", "duration"])]
    pub sim: bool,
    /// With --sim: seed the world
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sim")]
    seed: u64,
}

/// Simulates it; the plot.
pub fn simulate(args: &FailoverArgs, report: &mut Report) -> Result<String, BenchError> {
    let options = failover_sim::Options {
        nodes: args.nodes as u16,
        seed: args.seed,
    };
    failover_sim::run(&options, report)
}

pub fn run(
    args: &FailoverArgs,
    report: &mut Report,
    timelines: &mut Vec<Timeline>,
    progress: Progress<'_>,
) -> BenchResult {
    let told = |at: usize| Duration::from_millis(args.phases.get(at).copied().unwrap_or(2000));
    let phase = |at: usize| args.often.duration.unwrap_or_else(|| told(at));
    let options = failover::Options {
        nodes: args.nodes as usize,
        lease: Duration::from_millis(args.lease_ms),
        sharing: args.sharing,
        reads: args.reads,
        phases: [phase(0), phase(1), phase(2)],
    };
    failover::run(&options, report, timelines, progress)
}
