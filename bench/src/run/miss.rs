//! `bench miss`: what each kind of coherence event costs, beside the same hops as plain datagrams.

use super::{BenchError, Progress, Result, begin};
use crate::histogram::Histogram;
use crate::plain;
use crate::report::Report;
use rackmem::{Fabric, Mode, Node, Rack};
use std::time::Instant;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over which fabric.
    pub fabric: Fabric,
    /// With a switch, or with home agents only.
    pub mode: Mode,
    /// Bytes of a block.
    pub block_size: usize,
    /// Blocks in a round.
    pub blocks: usize,
    /// Rounds.
    pub rounds: usize,
}

impl Options {
    /// What suits a fabric: inline events are too short to be timed one by one, datagrams are not.
    pub fn of(fabric: Fabric) -> Self {
        let (blocks, rounds) = if fabric == Fabric::Inline { (200, 100) } else { (50, 20) };
        Options { fabric, mode: Mode::Switch, block_size: 4096, blocks, rounds }
    }
}

/// One step of a round: which node does what, and what kind of event that is.
struct Step {
    name: &'static str,
    node: usize,
    write: bool,
}

/// A round leaves every block `Modified` at node 2, so the first step is the same in each but the first.
const ROUND: [Step; 5] = [
    Step { name: "write-miss/from-modified", node: 1, write: true },
    Step { name: "read-miss/from-modified", node: 2, write: false },
    Step { name: "read-miss/from-shared", node: 3, write: false },
    Step { name: "write-shared/two-others", node: 3, write: true },
    Step { name: "write-miss/from-modified-again", node: 2, write: true },
];

/// Runs it. Node 0 is home of all blocks and takes no part.
pub fn run(options: &Options, progress: Progress<'_>) -> Result<Report> {
    let mut report = begin("miss")?;
    let prefix = match options.fabric {
        Fabric::Inline => "inline",
        Fabric::Udp => "udp",
    };
    let prefix = format!("{prefix}/{}", options.mode.name());
    if options.fabric == Fabric::Udp {
        progress("plain datagrams through the same hops");
        hops(&mut report, options)?;
    }
    let rack = Rack::builder(4).fabric(options.fabric).mode(options.mode).block_size(options.block_size).build()?;
    let base = rack.node(0).alloc_bytes(options.blocks * options.block_size)?;
    let nodes: Vec<Node> = rack.nodes().to_vec();
    let addrs: Vec<u64> = (0..options.blocks).map(|i| base + (i * options.block_size) as u64).collect();
    let mut times: Vec<Histogram> = ROUND.iter().map(|_| Histogram::new()).collect();
    let mut evictions = Histogram::new();
    for round in 0..options.rounds + 1 {
        progress(&format!("round {round} of {}", options.rounds));
        for (step, times) in ROUND.iter().zip(&mut times) {
            let node = &nodes[step.node];
            measure(&addrs, options.fabric, round > 0, times, |addr| match step.write {
                true => node.store(addr, 1),
                false => node.load(addr).map(|_| ()),
            })?;
        }
        // The home's own copy is out of the way, and so is every other: a miss that home's memory serves.
        measure(&addrs, options.fabric, round > 0, &mut evictions, |addr| nodes[2].evict(addr).map(|_| ()))?;
        let served = times.len();
        let _ = served;
    }
    let baseline = (options.fabric == Fabric::Udp).then_some("plain/client-forwarder-server-client");
    for (step, times) in ROUND.iter().zip(&times) {
        add(&mut report, &format!("{prefix}/{}", step.name), times, options.fabric, baseline)?;
    }
    add(&mut report, &format!("{prefix}/evict-modified"), &evictions, options.fabric, baseline)?;
    Ok(report)
}

/// Inline, a round's mean; over a network, each event.
fn measure(
    addrs: &[u64],
    fabric: Fabric,
    counts: bool,
    times: &mut Histogram,
    mut op: impl FnMut(u64) -> rackmem::Result<()>,
) -> Result<()> {
    let began = Instant::now();
    for &addr in addrs {
        let start = Instant::now();
        op(addr)?;
        if counts && fabric == Fabric::Udp {
            times.record(start.elapsed().as_nanos() as u64);
        }
    }
    if counts && fabric == Fabric::Inline {
        times.record(began.elapsed().as_nanos() as u64 / addrs.len() as u64);
    }
    Ok(())
}

fn add(report: &mut Report, name: &str, times: &Histogram, fabric: Fabric, baseline: Option<&str>) -> Result<()> {
    let p50 = times.percentile(50.0) as f64;
    let (value, unit) = if fabric == Fabric::Udp { (p50 / 1e3, "us") } else { (p50, "ns") };
    match baseline {
        Some(baseline) => report.add_against(name, value, unit, baseline)?,
        None => report.add(name, value, unit)?,
    }
    Ok(())
}

/// Client, forwarder, server, client: a request without a body one way, a block the other.
fn hops(report: &mut Report, options: &Options) -> Result<()> {
    let io = |error: plain::PlainError| BenchError::Missing(error.to_string());
    let chain = plain::Chain { request: 48, response: options.block_size + 48, count: options.blocks * options.rounds };
    let times = plain::blocking(&chain).map_err(io)?;
    report.add("plain/client-forwarder-server-client", times.percentile(50.0) as f64 / 1e3, "us")?;
    Ok(())
}
