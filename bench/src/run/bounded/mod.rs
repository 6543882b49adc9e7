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
    /// How old what is read may be, where that is measured.
    pub bound: Duration,
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
    for nodes in &options.nodes {
        progress(&format!("items of {nodes} nodes"));
        for fabric in [Fabric::Inline, Fabric::Udp] {
            items::run(options, (*nodes, fabric), report)?;
        }
    }
    progress("how old what is read is");
    arenas::visible(options, report)?;
    progress("memory that waits");
    arenas::waiting(options, report)
}

fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{}m", bytes >> 20),
        bytes => format!("{}k", bytes >> 10),
    }
}
