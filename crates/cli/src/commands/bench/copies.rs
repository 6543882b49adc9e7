//! Options of `rackmem bench copies`.

use super::Progress;
use super::often::Often;
use crate::rack_args::FabricArg;
use clap::Args;
use rackmem_bench::report::Report;
use rackmem_bench::run::{BenchError, copies};

#[derive(Debug, Args)]
pub struct CopiesArgs {
    /// Choose how packets travel [all three]
    #[arg(long, value_enum)]
    fabric: Option<FabricArg>,
    /// Do N operations of each case
    #[arg(long, value_name = "N", default_value = "2000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    operations: u32,
    /// Leave out durable copies, the death of a replica, page faults, and etcd
    #[arg(long)]
    only_paths: bool,
    /// Measure page faults of a mapped region beside reads and writes of lines, nothing else
    #[arg(long, conflicts_with = "only_paths")]
    paging: bool,
    #[command(flatten)]
    pub often: Often<1, 0>,
}

/// What was left out, and why.
pub fn run(
    args: &CopiesArgs,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<Vec<String>, BenchError> {
    let usual = copies::Options::default();
    let options = copies::Options {
        fabrics: args
            .fabric
            .map_or(usual.fabrics, |fabric| vec![fabric.into()]),
        operations: args.operations as usize,
        phase: args.often.duration.unwrap_or(usual.phase),
        beside: !args.only_paths,
        only_paging: args.paging,
    };
    copies::run(&options, report, progress)
}
