//! Options of `rackmem bench mapped`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::rack_args::{FabricArg, ModeArg};
use crate::size;
use clap::Args;
use rackmem_bench::report::Report;
use rackmem_bench::run::mapped;

#[derive(Debug, Args)]
pub struct MappedArgs {
    /// Choose how packets travel between nodes that share; several: each
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "inline,shm,udp"
    )]
    fabric: Vec<FabricArg>,
    /// Choose the coherence protocol
    #[arg(long, value_enum, default_value = "home-only")]
    mode: ModeArg,
    /// Read SIZE bytes from end to end, from 1M to 8G
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = scan)]
    scan: u64,
    #[command(flatten)]
    pub often: Often<3, 300>,
}

fn scan(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text)?;
    match (1 << 20..=8 << 30).contains(&bytes) {
        true => Ok(bytes),
        false => Err("1M to 8G are read".to_owned()),
    }
}

pub fn run(args: &MappedArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    let options = mapped::Options {
        fabrics: args.fabric.iter().map(|fabric| (*fabric).into()).collect(),
        mode: args.mode.into(),
        scan: args.scan,
        duration: args.often.time(),
    };
    mapped::run(&options, report, progress)
}
