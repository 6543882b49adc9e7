//! Options of `rackmem bench bulk`.

use super::{Measured, Progress};
use crate::rack_args::{FabricArg, ModeArg};
use crate::size;
use clap::Args;
use rackmem::Fabric;
use rackmem_bench::run::bulk;

#[derive(Debug, Args)]
pub struct BulkArgs {
    /// How packets move; all three unless told
    #[arg(long, value_enum)]
    fabric: Option<FabricArg>,
    /// Which protocol keeps the memory coherent
    #[arg(long, value_enum, default_value = "switch")]
    mode: ModeArg,
    /// Bytes of the slice
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::parse)]
    size: u64,
    /// Bytes of a block
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size::parse)]
    block_size: u64,
    /// Bytes of blocks that a node's cache holds
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::parse)]
    cache: u64,
    /// Runs of which the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
}

pub fn run(args: &BulkArgs, progress: Progress<'_>) -> Measured {
    let all = [Fabric::Inline, Fabric::Shm, Fabric::Udp];
    let bytes = |size| usize::try_from(size).unwrap_or(usize::MAX);
    let options = bulk::Options {
        fabrics: args
            .fabric
            .map_or(all.to_vec(), |fabric| vec![fabric.into()]),
        mode: args.mode.into(),
        block_size: bytes(args.block_size),
        size: bytes(args.size).max(1),
        cache: bytes(args.cache),
        runs: args.runs.max(1),
    };
    bulk::run(&options, progress)
}
