//! `bench dataplane`: what a packet costs in the switch program, in Rust and in the kernel, and
//! what the way through it takes.
//!
//! The program alone is run without a network (a test run), beside an empty one. Round trips go
//! between hosts in network namespaces, through the switch in the kernel and in user space, beside
//! XDP programs that only echo or forward, with the same sockets in the same run. Last come writes
//! to blocks of which another host's node has a copy.

mod live;
mod part;
mod program;
pub(super) mod reads;
mod upgrades;

pub use part::play;

use super::{BenchError, Progress, Result, missing};
use crate::report::Report;
use rackmem_hosts::Hosts;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Packets through the program alone.
    pub packets: u32,
    /// Round trips of each kind.
    pub rounds: u32,
    /// Every case is measured again and again for so long, at least once: the median counts.
    pub duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            packets: 20_000,
            rounds: 5_000,
            duration: Duration::ZERO,
        }
    }
}

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    Hosts::probe().map_err(missing)?;
    progress("the program alone");
    program::run(report, options)?;
    live::run(report, options, progress)?;
    upgrades::run(options.duration, report, progress)
}
