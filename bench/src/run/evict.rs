//! `bench evict`: a working set of more than the cache, where blocks leave when their room is
//! needed, and where they leave before.

use super::{Progress, Result};
use crate::report::Report;
use crate::stop;
use crate::system::System;
use crate::timing::median_of;
use rackmem::{Fabric, Node, Rack};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over which fabric.
    pub fabric: Fabric,
    /// With a switch, or with home agents only.
    pub mode: System,
    /// Bytes of a block.
    pub block_size: usize,
    /// Blocks that the cache has room for.
    pub cache: usize,
    /// Percent of the cache that the working set is.
    pub sets: Vec<u32>,
    /// How long each case runs, of each rack.
    pub duration: Duration,
}

/// In which order blocks are used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Scan,
    Random,
}

/// What is done to them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Reads,
    Writes,
}

/// Turns that each rack has, one after the other's.
const TURNS: usize = 8;

/// Threads' operations between two looks at the clock.
const STEPS: u64 = 16;

/// A node that uses blocks of another one.
struct Side {
    rack: Rack,
    base: u64,
    at: u64,
    random: fastrand::Rng,
    /// Microseconds an operation, by turns.
    turns: Vec<f64>,
}

impl Side {
    fn new(options: &Options, blocks: u64, ahead: bool) -> Result<Self> {
        let rack = options.mode.builder(2).fabric(options.fabric);
        let rack = rack
            .block_size(options.block_size)
            .cache(options.cache * options.block_size)
            .evict_ahead(ahead)
            .build()?;
        let bytes = blocks as usize * options.block_size;
        let base = rack.node(0).alloc_bytes(bytes)?;
        Ok(Side {
            rack,
            base,
            at: 0,
            random: fastrand::Rng::with_seed(1),
            turns: Vec::new(),
        })
    }

    fn step(&mut self, node: &Node, (order, work): (Order, Work), blocks: u64) -> Result<()> {
        let nth = match order {
            Order::Scan => self.at % blocks,
            Order::Random => self.random.u64(..blocks),
        };
        self.at += 1;
        let addr = self.base + nth * node.block_size() as u64;
        match work {
            Work::Reads => drop(node.load(addr)?),
            // By the block: `fetch_add` might go to its home.
            Work::Writes => drop(node.fetch_update(addr, |old| Some(old + 1))?),
        }
        Ok(())
    }

    fn turn(&mut self, time: Duration, case: (Order, Work), blocks: u64) -> Result<()> {
        let node = self.rack.node(1);
        let (began, mut steps) = (Instant::now(), 0);
        while steps == 0 || began.elapsed() < time && !stop::requested() {
            (0..STEPS).try_for_each(|_| self.step(&node, case, blocks))?;
            steps += STEPS;
        }
        self.turns
            .push(began.elapsed().as_secs_f64() * 1e6 / steps as f64);
        Ok(())
    }
}

/// Runs it. Node 0 is home of all blocks and takes no other part.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for &percent in &options.sets {
        let blocks = (options.cache as u64 * u64::from(percent) / 100).max(1);
        for (order, order_name) in [(Order::Scan, "scan"), (Order::Random, "random")] {
            for (work, work_name) in [(Work::Reads, "reads"), (Work::Writes, "writes")] {
                let (fabric, mode) = (options.fabric.name(), options.mode.name());
                let case = format!("{fabric}/{mode}/set-{percent}%/{order_name}/{work_name}");
                progress(&case);
                compare(options, report, (&case, (order, work)), blocks)?;
            }
        }
    }
    Ok(())
}

/// Two racks by turns, so that what else the machine does is the same for both.
fn compare(
    options: &Options,
    report: &mut Report,
    (case, how): (&str, (Order, Work)),
    blocks: u64,
) -> Result<()> {
    let mut sides = [
        Side::new(options, blocks, false)?,
        Side::new(options, blocks, true)?,
    ];
    for side in &mut sides {
        // Caches fill, and what is known of sets settles.
        let node = side.rack.node(1);
        (0..4 * blocks).try_for_each(|_| side.step(&node, how, blocks))?;
    }
    let before = sides.each_ref().map(events);
    for turn in 0..TURNS {
        // Each is the first one as often as the other.
        for nth in [turn % 2, (turn + 1) % 2] {
            sides[nth].turn(options.duration / TURNS as u32, how, blocks)?;
        }
    }
    let baseline = format!("{case}/when-needed");
    for ((side, before), name) in sides.iter().zip(before).zip(["when-needed", "ahead"]) {
        let mut turns = side.turns.iter().copied();
        let time = median_of(side.turns.len(), || turns.next().unwrap_or(f64::NAN));
        let case = format!("{case}/{name}");
        match name {
            "ahead" => report.add_against(&case, time.value, "us", &baseline)?,
            _ => report.add(&case, time.value, "us")?,
        }
        report.add(&format!("{case}/best"), time.least, "us")?;
        let did = events(side) - before;
        let all = did.evicted_ahead + did.evicted_in_the_way;
        let share = did.evicted_ahead as f64 / all.max(1) as f64;
        let misses = did.misses().max(1) as f64;
        report.add(&format!("{case}/ahead-of-need"), share, "of 1")?;
        report.add(&format!("{case}/evictions"), all as f64 / misses, "a miss")?;
    }
    Ok(())
}

fn events(side: &Side) -> rackmem::diagnostics::EventCounts {
    side.rack.node(1).metrics().events
}
