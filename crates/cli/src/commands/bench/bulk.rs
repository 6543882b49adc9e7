//! Options of `rackmem bench bulk`.

use super::{Measured, Progress};
use crate::rack_args::{FabricArg, ModeArg};
use crate::size;
use clap::Args;
use rackmem::Fabric;
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
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::parse)]
    size: u64,
    /// Use blocks of SIZE bytes
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size::parse)]
    block_size: u64,
    /// Cache SIZE bytes at each node
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::parse)]
    cache: u64,
    /// Take the median of N runs
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
