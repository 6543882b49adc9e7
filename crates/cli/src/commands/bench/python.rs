//! Options of `rackmem bench python`.

use super::often::Often;
use super::{BenchResult, Progress};
use clap::{Args, ValueEnum};
use rackmem::Fabric;
use rackmem_bench::report::Report;
use rackmem_bench::run::python;
use std::path::PathBuf;

/// How packets travel between processes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Between {
    /// UDP over loopback
    Udp,
    /// Shared memory
    Shm,
}

#[derive(Debug, Args)]
pub struct PythonArgs {
    /// Run FILE, a Python with NumPy and the package
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
    /// Choose how packets travel between processes; several: each
    #[arg(long, value_enum, value_delimiter = ',', default_value = "shm,udp")]
    fabric: Vec<Between>,
    #[command(flatten)]
    pub often: Often<3, 300>,
}

pub fn run(args: &PythonArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    let fabrics = args.fabric.iter().map(|fabric| match fabric {
        Between::Udp => Fabric::Udp,
        Between::Shm => Fabric::Shm,
    });
    let options = python::Options {
        python: args.python.clone(),
        fabrics: fabrics.collect(),
        duration: args.often.time(),
    };
    python::run(&options, report, progress)
}
