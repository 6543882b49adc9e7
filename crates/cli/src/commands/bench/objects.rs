//! Options of `rackmem bench objects`.

use super::objects_sim::SimArgs;
use super::often::Often;
use super::{BenchResult, Progress};
use crate::size;
use clap::Args;
use rackmem_bench::report::Report;
use rackmem_bench::run::objects;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct ObjectsArgs {
    /// Read objects of SIZE bytes, up to 65520; several: each size
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        default_value = "64,128,1K,8K,65520"
    )]
    #[arg(value_parser = object)]
    size: Vec<usize>,
    #[command(flatten)]
    pub often: Often<3, 300>,
    #[command(flatten)]
    pub sim: SimArgs,
    /// Be the home of the rack that this file describes, for another process
    #[arg(long, value_name = "FILE", hide = true)]
    home: Option<PathBuf>,
}

impl ObjectsArgs {
    /// The rack whose home this process is, for a bench that another one runs; bytes of an object.
    pub fn home(&self) -> Option<(&Path, usize)> {
        Some((self.home.as_deref()?, *self.size.first()?))
    }
}

/// Bytes of an object: whole words.
fn object(text: &str) -> Result<usize, String> {
    let bytes = size::parse(text)?;
    let fits = (8..=rackmem::object::MAX_OBJECT as u64).contains(&bytes);
    match usize::try_from(bytes) {
        Ok(bytes) if fits && bytes.is_multiple_of(8) => Ok(bytes),
        _ => Err("objects have 8 to 65520 bytes, a multiple of 8".to_owned()),
    }
}

pub fn run(args: &ObjectsArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    let options = objects::Options {
        sizes: args.size.clone(),
        duration: args.often.time(),
    };
    objects::run(&options, report, progress)
}
