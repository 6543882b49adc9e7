//! `bench dataplane`: what a packet costs in the switch program, in Rust and in the kernel, and
//! what the way through it takes.
//!
//! The program alone is run without a network (a test run), beside an empty one. Round trips go
//! between hosts in network namespaces, through the switch in the kernel and in user space, beside
//! XDP programs that only echo or forward, with the same sockets in the same run.

mod live;
mod part;
mod program;

pub use part::play;

use super::{BenchError, Progress, Result, begin};
use crate::report::Report;
use rackmem_hosts::Hosts;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Packets through the program alone.
    pub packets: u32,
    /// Round trips of each kind.
    pub rounds: u32,
    /// Runs of which the median counts.
    pub runs: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            packets: 20_000,
            rounds: 5_000,
            runs: 3,
        }
    }
}

/// Runs it.
pub fn run(options: &Options, progress: Progress<'_>) -> Result<Report> {
    Hosts::probe().map_err(missing)?;
    let mut report = begin("dataplane")?;
    progress("the program alone");
    program::run(&mut report, options)?;
    live::run(&mut report, options, progress)?;
    Ok(report)
}

fn missing(error: impl std::fmt::Display) -> BenchError {
    BenchError::Missing(error.to_string())
}
