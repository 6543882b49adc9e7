//! `bench copies`: what copies cost. Reads and writes of lines with one and with three copies
//! beside memory without copies on the same path, coherent memory with copies beside that of one
//! node, durable copies beside bare syncs, the longest gap when a replica dies, etcd's three nodes,
//! and a server of Redis with a replica.
//!
//! Node 0 asks and keeps nothing; nodes 1 to 3 keep the copies, and node 1 is home of the memory
//! without. Cases take turns, operation by operation, so that the machine's moods meet all of them.

mod durable;
mod etcd;
mod homes;
mod kill;
mod paging;
mod redis;

use super::{BenchError, Progress, Result};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::stop;
use rackmem::{Fabric, Mode, Node, Rack, RegionSpec, Replicated};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over which fabrics.
    pub fabrics: Vec<Fabric>,
    /// Operations of each case.
    pub operations: usize,
    /// How long threads work before a replica dies, and after.
    pub phase: Duration,
    /// Whether homes with copies are measured, durable copies, the death of a replica, page
    /// faults, etcd and Redis.
    pub beside: bool,
    /// Whether page faults of a mapped region are measured, and nothing else.
    pub only_paging: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            fabrics: Fabric::ALL.map(|row| row.0).to_vec(),
            operations: 2000,
            phase: Duration::from_secs(2),
            beside: true,
            only_paging: false,
        }
    }
}

/// Bytes of a line: the shortest, and a page.
const LINES: [usize; 2] = [64, 4096];
/// The shortest block that memory without copies can have.
const MIN_BLOCK: usize = 256;
/// Places that operations go through in turn.
const PLACES: usize = 64;
const NODES: usize = 4;
/// Operations before any is counted.
const WARM_UP: usize = 100;

/// Runs it. What was left out, and why.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    if options.only_paging {
        paging::run(options, report, progress, &mut missing)?;
        return Ok(missing);
    }
    for &fabric in &options.fabrics {
        for mode in [Mode::HomeOnly, Mode::Switch] {
            for line in LINES {
                let path = format!("{}/{}", fabric.name(), mode.name());
                progress(&format!("{path}, lines of {line} bytes"));
                beside_none((fabric, mode, line), &path, options, report)?;
            }
        }
    }
    if options.beside {
        homes::run(options, report, progress)?;
        durable::run(options, report, progress)?;
        kill::run(options, report, progress)?;
        paging::run(options, report, progress, &mut missing)?;
        etcd::run(options, report, progress, &mut missing)?;
        redis::run(options, report, progress, &mut missing)?;
    }
    Ok(missing)
}

/// A rack of the bench's own.
fn rack(fabric: Fabric, mode: Mode, block: usize) -> Result<Rack> {
    let rack = Rack::builder(NODES).fabric(fabric).mode(mode);
    let rack = rack.block_size(block).cache(8 << 20).memory(64 << 20);
    Ok(rack.build()?)
}

/// A line's worth of bytes, as one value.
trait Line {
    fn read(&self) -> Result<()>;
    fn write(&self, number: u64) -> Result<()>;
}

struct Words<const N: usize>(Replicated<[u64; N]>);

impl<const N: usize> Line for Words<N> {
    fn read(&self) -> Result<()> {
        let words = self.0.read().map_err(rackmem::Error::from)?;
        std::hint::black_box(words);
        Ok(())
    }

    fn write(&self, number: u64) -> Result<()> {
        Ok(self.0.write([number; N]).map_err(rackmem::Error::from)?)
    }
}

/// The lines of a region.
fn lines(node: &Node, spec: &RegionSpec, line: usize) -> Result<Vec<Box<dyn Line>>> {
    let region = node.create_region(spec)?;
    let each = (0..PLACES).map(|nth| -> Result<Box<dyn Line>> {
        Ok(match line {
            64 => Box::new(Words::<8>(region.replicated(nth)?)),
            _ => Box::new(Words::<512>(region.replicated(nth)?)),
        })
    });
    each.collect()
}

/// A block of memory without copies, which the asking node has never in its cache when it asks.
struct Plain {
    node: Node,
    addr: u64,
    bytes: Vec<u8>,
}

impl Plain {
    fn read(&mut self) -> Result<()> {
        self.node.read(self.addr, &mut self.bytes)?;
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.node.write(self.addr, &self.bytes)?;
        Ok(())
    }

    fn leave(&self) -> Result<()> {
        self.node.evict(self.addr)?;
        Ok(())
    }
}

fn timed(times: &mut Histogram, counted: bool, act: impl FnOnce() -> Result<()>) -> Result<()> {
    let began = Instant::now();
    act()?;
    if counted {
        times.record(began.elapsed().as_nanos() as u64);
    }
    Ok(())
}

/// One and three copies, beside none.
fn beside_none(
    (fabric, mode, line): (Fabric, Mode, usize),
    path: &str,
    options: &Options,
    report: &mut Report,
) -> Result<()> {
    let block = line.max(MIN_BLOCK);
    let rack = rack(fabric, mode, block)?;
    let node = rack.node(0);
    let base = rack.node(1).alloc_bytes(PLACES * block)?;
    let spec = |name: &str, copies| {
        let spec = RegionSpec::new(name, PLACES * line).copies(copies);
        spec.line(line as u32).on(1)
    };
    let one = lines(&node, &spec("one", 1), line)?;
    let three = lines(&node, &spec("three", 3).two_rounds(), line)?;
    // Through a switch that chooses stamps writes take one round.
    let at_once = match mode {
        Mode::Switch => lines(&node, &spec("at-once", 3), line)?,
        Mode::HomeOnly => Vec::new(),
    };
    let mut times: [Histogram; 7] = std::array::from_fn(|_| Histogram::new());
    let [
        none_reads,
        none_writes,
        one_reads,
        one_writes,
        reads,
        writes,
        writes_at_once,
    ] = &mut times;
    for nth in 0..WARM_UP + options.operations {
        if stop::requested() {
            return Err(BenchError::Stopped);
        }
        let (at, counted, number) = (nth % PLACES, nth >= WARM_UP, nth as u64);
        let mut plain = Plain {
            node: node.clone(),
            addr: base + (at * block) as u64,
            bytes: vec![nth as u8; line],
        };
        timed(none_writes, counted, || plain.write())?;
        plain.leave()?;
        timed(one_writes, counted, || one[at].write(number))?;
        timed(writes, counted, || three[at].write(number))?;
        if let Some(line) = at_once.get(at) {
            timed(writes_at_once, counted, || line.write(number))?;
        }
        timed(none_reads, counted, || plain.read())?;
        plain.leave()?;
        timed(one_reads, counted, || one[at].read())?;
        timed(reads, counted, || three[at].read())?;
    }
    for (what, [none, one, three]) in [
        ("read", [none_reads, one_reads, reads]),
        ("write", [none_writes, one_writes, writes]),
    ] {
        let case = |copies: &str| format!("{path}/{copies}/{what}/{line}");
        add(report, &case("none"), none, None)?;
        for (copies, times) in [("copies-1", one), ("copies-3", three)] {
            add(report, &case(copies), times, Some(&case("none")))?;
        }
    }
    if !at_once.is_empty() {
        let case = format!("{path}/copies-3/write-one-round/{line}");
        let none = format!("{path}/none/write/{line}");
        add(report, &case, writes_at_once, Some(&none))?;
    }
    Ok(())
}

/// The median, and the 99th percentile beside the baseline's.
fn add(report: &mut Report, case: &str, times: &Histogram, baseline: Option<&str>) -> Result<()> {
    for (end, percent) in [("", 50.0), ("/p99", 99.0)] {
        let (case, value) = (
            format!("{case}{end}"),
            times.percentile(percent) as f64 / 1e3,
        );
        match baseline {
            Some(baseline) => {
                report.add_against(&case, value, "us", &format!("{baseline}{end}"))?;
            }
            None => report.add(&case, value, "us")?,
        }
    }
    Ok(())
}
