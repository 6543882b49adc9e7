//! Options of `rackmem bench dropin`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::commands::run::drop_in;
use clap::Args;
use rackmem_bench::report::Report;
use rackmem_bench::run::BenchError;
use rackmem_bench::run::dropin::{Options, run as measure};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct DropInArgs {
    /// Put FILE in front of the program's libraries
    #[arg(long, value_name = "FILE", default_value = drop_in::NAME)]
    library: PathBuf,
    /// Let N processes write at a time; several: each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2")]
    processes: Vec<usize>,
    #[command(flatten)]
    pub often: Often<3, 1000>,
}

pub fn run(args: &DropInArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    let library = drop_in::find(&args.library);
    let library = library.map_err(|failure| BenchError::Missing(failure.to_string()))?;
    let options = Options {
        library,
        processes: args.processes.clone(),
        duration: args.often.time(),
    };
    measure(&options, report, progress)
}
