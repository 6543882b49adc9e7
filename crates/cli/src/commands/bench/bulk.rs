//! Options of `rackmem bench bulk`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::rack_args::{FabricArg, ModeArg};
use crate::size;
use clap::Args;
use rackmem::Fabric;
use rackmem_bench::machine;
use rackmem_bench::report::Report;
use rackmem_bench::run::bulk;

#[derive(Debug, Args)]
pub struct BulkArgs {
    /// Choose how packets travel [all three]
    #[arg(long, value_enum)]
    fabric: Option<FabricArg>,
    /// Choose the coherence protocol
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Use a slice of SIZE bytes
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = slice)]
    size: u64,
    /// Use blocks of SIZE bytes
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size::parse)]
    block_size: u64,
    /// Cache SIZE bytes at each node
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::parse)]
    cache: u64,
    #[command(flatten)]
    pub often: Often<3, 0>,
}

/// The bytes of a slice of words that this machine has room for, once for itself and once for the
/// copy that it is compared with.
fn slice(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text)?;
    if bytes < 8 || !bytes.is_multiple_of(8) {
        return Err("a slice has words of eight bytes, at least one".into());
    }
    match machine::available() {
        Some(room) if bytes > room / 2 => Err(format!(
            "a slice of {} and its copy do not fit the {} that this machine has free",
            size::show(bytes),
            size::show(room)
        )),
        _ => Ok(bytes),
    }
}

pub fn run(args: &BulkArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    let all = [Fabric::Inline, Fabric::Shm, Fabric::Udp];
    let bytes = |size| usize::try_from(size).unwrap_or(usize::MAX);
    let options = bulk::Options {
        fabrics: args
            .fabric
            .map_or(all.to_vec(), |fabric| vec![fabric.into()]),
        mode: args.mode.into(),
        block_size: bytes(args.block_size),
        size: bytes(args.size),
        cache: bytes(args.cache),
        duration: args.often.time(),
    };
    bulk::run(&options, report, progress)
}
