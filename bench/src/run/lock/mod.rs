//! `bench lock`: what a lock costs that is here, idle elsewhere, handed over, or wanted by all; of
//! every kind that `AnyLock` knows, beside the locks of real servers; and how many coherence
//! transactions each takes.

mod cached;
mod contended;
mod counted;
mod hand_over;
mod idle;
pub mod peers;
mod store;
mod told;

pub use told::LockReport;

use super::{BenchError, Progress, Result};
use crate::locks::{self, LockKind};
use crate::report::Report;
use crate::stop;
use crate::system::System;
use rackmem::{Fabric, Rack};
use std::time::Duration;

/// Bytes that locks protect here: a block.
const DATA: usize = 4096;

/// A part of the bench.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A lock that is here.
    Cached,
    /// Locks that are idle elsewhere.
    Idle,
    /// Two nodes in strict turn.
    HandOver,
    /// The same, counted.
    Counted,
    /// All nodes at once.
    Contended,
    /// A hash table with a lock a bucket.
    Store,
    /// Redis and etcd.
    Peers,
}

impl Part {
    /// All of them, with the names used in commands.
    pub const ALL: [(Part, &'static str); 7] = [
        (Part::Cached, "cached"),
        (Part::Idle, "idle"),
        (Part::HandOver, "hand-over"),
        (Part::Counted, "counted"),
        (Part::Contended, "contended"),
        (Part::Store, "store"),
        (Part::Peers, "peers"),
    ];
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which parts.
    pub parts: Vec<Part>,
    /// Over which fabrics.
    pub fabrics: Vec<Fabric>,
    /// With directories at the switch, or at homes.
    pub mode: System,
    /// Which locks.
    pub kinds: Vec<LockKind>,
    /// Nodes that contend, one rack after the other.
    pub nodes: Vec<usize>,
    /// Percent of acquisitions that read.
    pub reads: Vec<u8>,
    /// Time of one case of contention, and of the table.
    pub duration: Duration,
    /// Time between two acquisitions of a thread that contends, given to others.
    pub think: Duration,
    /// Hand-overs, and a fifth as many locks that are idle elsewhere.
    pub rounds: usize,
    /// Acquisitions of a lock that is here.
    pub local: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            parts: Part::ALL.map(|row| row.0).into(),
            fabrics: vec![Fabric::Inline, Fabric::Udp],
            mode: System::Switch,
            kinds: LockKind::ALL.map(|row| row.0).into(),
            nodes: vec![1, 2, 4, 8],
            reads: vec![0, 50, 95, 100],
            duration: Duration::from_millis(100),
            think: Duration::from_micros(20),
            rounds: 1000,
            local: 2_000_000,
        }
    }
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    fn go_on(&self) -> Result<()> {
        match stop::requested() {
            true => Err(BenchError::Stopped),
            false => Ok(()),
        }
    }

    fn rack(&self, fabric: Fabric, nodes: usize, kind: LockKind) -> Result<Rack> {
        let rack = self.mode.builder(nodes).fabric(fabric);
        Ok(rack.guests(locks::guests(kind)).build()?)
    }

    /// How cases of a fabric begin.
    fn name(&self, fabric: Fabric) -> String {
        format!("{}/{}", fabric.name(), self.mode.name())
    }
}

/// Runs it. Node 0 is home of all locks; where nodes do not contend, nodes 1 and 2 use them.
/// What was left out, and why.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<Vec<String>> {
    if options.wants(Part::Cached) {
        cached::run(options, report, progress)?;
    }
    if options.wants(Part::Counted) {
        counted::run(options, report, progress)?;
    }
    for &fabric in &options.fabrics {
        for &kind in &options.kinds {
            options.go_on()?;
            let rack = options.rack(fabric, 3, kind)?;
            let what = format!("{}, {}", fabric.name(), kind.name());
            if options.wants(Part::Idle) {
                progress(&format!("{what}: locks that are idle elsewhere"));
                idle::run(options, &rack, fabric, kind, report)?;
            }
            if options.wants(Part::HandOver) {
                progress(&format!("{what}: hand-overs"));
                hand_over::run(options, &rack, fabric, kind, report)?;
            }
        }
        if options.wants(Part::Contended) {
            contended::run(options, fabric, report, progress)?;
        }
        if options.wants(Part::Store) {
            store::run(options, fabric, report, progress)?;
        }
    }
    match options.wants(Part::Peers) {
        true => peers::run(options, report, progress),
        false => Ok(Vec::new()),
    }
}

/// Adds a time in nanoseconds, in a unit that suits the fabric.
fn add_time(report: &mut Report, case: &str, ns: f64, fabric: Fabric) -> Result<()> {
    match fabric {
        Fabric::Inline => report.add(case, ns, "ns")?,
        Fabric::Shm | Fabric::Udp => report.add(case, ns / 1e3, "us")?,
    }
    Ok(())
}
