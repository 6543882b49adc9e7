//! `bench mapped`: plain loads and stores on the rack's memory, beside memory of the process and
//! beside the same by calls.

mod alone;
mod faults;
mod shared;

use super::{BenchError, Progress, Result};
use crate::report::Report;
use crate::system::System;
use rackmem::{CoherentPages, Fabric, Node, Rack, Region, RegionError, RegionSpec};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over which fabrics nodes share.
    pub fabrics: Vec<Fabric>,
    /// With a switch, or with home agents only.
    pub mode: System,
    /// Bytes that are read from end to end.
    pub scan: u64,
    /// The time of a case.
    pub duration: Duration,
}

/// Bytes of a page, and of a block.
const PAGE: usize = 4096;
const WORDS: usize = PAGE / 8;

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    alone::hits(options, report, progress)?;
    faults::run(options, report, progress)?;
    alone::scan(options, report, progress)?;
    for fabric in &options.fabrics {
        shared::first_pass(options, *fabric, report, progress)?;
        shared::misses(options, *fabric, report, progress)?;
        shared::turns(options, *fabric, report, progress)?;
        shared::one_page(options, *fabric, report, progress)?;
        shared::mix(options, *fabric, report, progress)?;
    }
    Ok(())
}

/// Words, wherever they are.
trait Words: Sync {
    fn load(&self, at: usize) -> Option<u64>;
    fn store(&self, at: usize, value: u64) -> Option<()>;
    fn add(&self, at: usize) -> Option<u64>;
}

/// Of this process.
struct Plain(Vec<AtomicU64>);

impl Plain {
    fn new(words: usize) -> Plain {
        // Written, so that all of it is there.
        Plain((0..words as u64).map(AtomicU64::new).collect())
    }
}

impl Words for Plain {
    #[inline(always)]
    fn load(&self, at: usize) -> Option<u64> {
        Some(self.0[at].load(Relaxed))
    }

    #[inline(always)]
    fn store(&self, at: usize, value: u64) -> Option<()> {
        self.0[at].store(value, Relaxed);
        Some(())
    }

    #[inline(always)]
    fn add(&self, at: usize) -> Option<u64> {
        Some(self.0[at].fetch_add(1, SeqCst))
    }
}

/// Of the rack, as memory of this process.
struct Mapped(CoherentPages);

impl Mapped {
    fn of(region: &Region) -> Result<Mapped> {
        let pages = region.map().map_err(|error| match error {
            RegionError::NoPaging { .. } => BenchError::Missing(error.to_string()),
            error => error.into(),
        });
        pages.map(Mapped)
    }
}

impl Words for Mapped {
    #[inline(always)]
    fn load(&self, at: usize) -> Option<u64> {
        Some(self.0.words()[at].load(Relaxed))
    }

    #[inline(always)]
    fn store(&self, at: usize, value: u64) -> Option<()> {
        self.0.words()[at].store(value, Relaxed);
        Some(())
    }

    #[inline(always)]
    fn add(&self, at: usize) -> Option<u64> {
        Some(self.0.words()[at].fetch_add(1, SeqCst))
    }
}

/// Words whose place is known, as a program has them that has asked for it once.
impl Words for &[AtomicU64] {
    #[inline(always)]
    fn load(&self, at: usize) -> Option<u64> {
        Some(self[at].load(Relaxed))
    }

    #[inline(always)]
    fn store(&self, at: usize, value: u64) -> Option<()> {
        self[at].store(value, Relaxed);
        Some(())
    }

    #[inline(always)]
    fn add(&self, at: usize) -> Option<u64> {
        Some(self[at].fetch_add(1, SeqCst))
    }
}

/// The same memory, by calls.
struct Called(Node, u64);

impl Words for Called {
    fn load(&self, at: usize) -> Option<u64> {
        self.0.load(self.1 + 8 * at as u64).ok()
    }

    fn store(&self, at: usize, value: u64) -> Option<()> {
        self.0.store(self.1 + 8 * at as u64, value).ok()
    }

    fn add(&self, at: usize) -> Option<u64> {
        let word = self.0.attach::<u64>(self.1 + 8 * at as u64).ok()?;
        word.fetch_add(1).ok()
    }
}

/// A rack of three nodes: node 0 is home of what nodes 1 and 2 use.
struct Site {
    // Dropped after what is of it.
    nodes: Vec<Node>,
    _rack: Rack,
}

impl Site {
    fn new(options: &Options, fabric: Fabric) -> Result<Site> {
        let bytes = usize::try_from(options.scan).unwrap_or(usize::MAX);
        let rack = options.mode.builder(3).fabric(fabric).block_size(PAGE);
        let rack = rack.cache(2 * bytes.max(32 << 20)).build()?;
        Ok(Site {
            nodes: (0..3).map(|node| rack.node(node)).collect(),
            _rack: rack,
        })
    }

    /// Memory of node 0, as nodes 1 and 2 have it.
    fn region(&self, name: &str, bytes: usize) -> Result<[Region; 2]> {
        let spec = RegionSpec::new(name, bytes);
        self.nodes[0].create_region(&spec)?;
        let of = |node: usize| self.nodes[node].open_region(&spec);
        Ok([of(1)?, of(2)?])
    }

    fn called(&self, node: usize, region: &Region) -> Called {
        Called(self.nodes[node].clone(), region.addr())
    }
}
