//! Options of `rackmem bench bounded`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::size;
use clap::Args;
use rackmem::Time;
use rackmem_bench::report::Report;
use rackmem_bench::run::bounded;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
pub struct BoundedArgs {
    /// Run instructions over SIZE bytes, from 4K to 1G; several: each size
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        default_value = "4K,256K,4M,64M"
    )]
    #[arg(value_parser = set)]
    sets: Vec<usize>,
    /// Share items between N nodes, from 2 to 8; several: each number
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "2,4,8",
        value_parser = nodes
    )]
    nodes: Vec<usize>,
    /// Read what is TIME old at most, from 5ms to a minute; several: each bound
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        default_value = "10ms,50ms",
        value_parser = bound
    )]
    bound: Vec<Duration>,
    #[command(flatten)]
    pub often: Often<3, 300>,
    /// Model PageRank on the paper's machine, beside its figures (Fig. 10)
    #[arg(long, conflicts_with_all = ["sets", "nodes", "bound", "runs", "duration"])]
    pub sim: bool,
    /// With --sim: reproduce this figure of the paper
    #[arg(long, value_name = "N", requires = "sim", value_parser = ["10"])]
    figure: Option<String>,
    /// Be the process that is stopped, of the rack that this file describes, for another one
    #[arg(long, value_name = "FILE", hide = true)]
    member: Option<PathBuf>,
    /// With --sim: count on an R-MAT graph of 2^N vertices
    #[arg(long, value_name = "N", default_value_t = 18, requires = "sim")]
    #[arg(value_parser = clap::value_parser!(u32).range(10..=22))]
    pub scale: u32,
}

impl BoundedArgs {
    /// The rack of which this process is a member, for a bench that another one runs.
    pub fn member(&self) -> Option<&Path> {
        self.member.as_deref()
    }
}

/// Bytes of whole pages.
fn set(text: &str) -> Result<usize, String> {
    let bytes = size::parse(text)?;
    match usize::try_from(bytes) {
        Ok(set) if (4096..=1 << 30).contains(&set) && set.is_multiple_of(4096) => Ok(set),
        _ => Err("sets have 4K to 1G, in whole pages of 4K".to_owned()),
    }
}

fn nodes(text: &str) -> Result<usize, String> {
    let nodes = text.parse().ok().filter(|nodes| (2..=8).contains(nodes));
    nodes.ok_or_else(|| "items are shared by 2 to 8 nodes".to_owned())
}

fn bound(text: &str) -> Result<Duration, String> {
    let Time(bound) = text.parse()?;
    let range = Duration::from_millis(5)..=Duration::from_secs(60);
    match range.contains(&bound) {
        true => Ok(bound),
        false => Err("a bound is from 5 ms to a minute".to_owned()),
    }
}

pub fn run(args: &BoundedArgs, report: &mut Report, progress: Progress<'_>) -> BenchResult {
    let options = bounded::Options {
        sets: args.sets.clone(),
        nodes: args.nodes.clone(),
        bounds: args.bound.clone(),
        duration: args.often.time(),
    };
    bounded::run(&options, report, progress)
}
