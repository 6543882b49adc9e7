//! `bench bounded`: memory that is old by a bounded time, and the instructions that it takes (BI
//! §2, §5; its Figs. 2, 7, 8 and 9).
//!
//! On one host all caches are coherent. So instructions, hits and what quiescing costs a reader are
//! measured on real ones, and how old what is read is, and how much memory waits, with a cache of
//! its own for each node (`emulated`), which compares nothing in speed.

mod arenas;
mod hits;
mod instructions;
mod items;
mod messages;
pub mod stopped;
mod visible;
mod waiting;

use super::{Progress, Result};
use crate::report::Report;
use rackmem::Fabric;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes that instructions go over.
    pub sets: Vec<usize>,
    /// Nodes that share items.
    pub nodes: Vec<usize>,
    /// How old what is read may be, where that is measured: in none,
    /// only instructions and hits are.
    pub bounds: Vec<Duration>,
    /// Time of one case.
    pub duration: Duration,
}

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for bytes in &options.sets {
        progress(&format!("instructions, {}", size(*bytes)));
        instructions::ops(options, *bytes, report)?;
    }
    progress("hits");
    hits::run(options, report)?;
    for bytes in &options.sets {
        progress(&format!("quiescing, {}", size(*bytes)));
        instructions::periodic(options, *bytes, report)?;
    }
    for bound in options.bounds.iter().copied() {
        for nodes in &options.nodes {
            progress(&format!("items of {nodes} nodes, {}", time(bound)));
            for fabric in [Fabric::Inline, Fabric::Udp] {
                items::run(options, (*nodes, fabric, bound), report)?;
            }
        }
        progress(&format!("how old what is read is, {}", time(bound)));
        visible::arenas(options, bound, report)?;
        for fabric in [Fabric::Inline, Fabric::Udp] {
            visible::items(options, (bound, fabric), report)?;
        }
        progress(&format!("memory that waits, {}", time(bound)));
        waiting::memory(options, bound, report)?;
    }
    let Some(longest) = options.bounds.iter().max().copied() else {
        return Ok(());
    };
    progress("a reader that is stopped");
    waiting::thread(options, longest, report)?;
    stopped::run(options, report)
}

/// A time, as cases are named by it.
fn time(time: Duration) -> String {
    match time.as_micros() {
        us if us.is_multiple_of(1000) => format!("{}ms", us / 1000),
        us => format!("{us}us"),
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{}m", bytes >> 20),
        bytes => format!("{}k", bytes >> 10),
    }
}
