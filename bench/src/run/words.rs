//! `bench words`: one word that threads of several nodes add to.

use super::{BenchError, Progress, Result};
use crate::delegated;
use crate::histogram::Histogram;
use crate::report::Report;
use crate::system::System;
use crate::timing;
use rackmem::{AccessError, Fabric, Node};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over which fabric.
    pub fabric: Fabric,
    /// With a switch, or with home agents only.
    pub mode: System,
    /// Nodes that add to it, beside its home.
    pub nodes: usize,
    /// How long each case runs.
    pub duration: Duration,
    /// How long threads sleep between two additions, beside what the system adds to that.
    pub pauses: Vec<Duration>,
}

/// How a word is added to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The block comes, whoever has it.
    Block,
    /// As `fetch_add` does it: the block comes, or the home adds.
    Word,
    /// A service at the home adds, which has words of its own (Grappa-style).
    Guest,
}

impl Way {
    const ALL: [(Way, &'static str); 3] = [
        (Way::Block, "fetch-update"),
        (Way::Word, "fetch-add"),
        (Way::Guest, "delegate"),
    ];

    fn add(self, node: &Node, addr: u64) -> std::result::Result<u64, AccessError> {
        match self {
            Way::Block => node.fetch_update(addr, |old| Some(old + 1)),
            Way::Word => node.fetch_add(addr, 1),
            Way::Guest => delegated::fetch_add(node, addr, 1),
        }
    }
}

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for &pause in &options.pauses {
        let mut baseline: Option<String> = None;
        for (way, name) in Way::ALL {
            let (fabric, mode) = (options.fabric.name(), options.mode.name());
            let (nodes, pause_us) = (options.nodes, pause.as_micros());
            let case = format!("{fabric}/{mode}/nodes-{nodes}/pause-{pause_us}us/{name}");
            progress(&case);
            let (times, rate) = measure(options, way, pause)?;
            let mean = times.mean() / 1e3;
            match &baseline {
                Some(baseline) => report.add_against(&case, mean, "us", baseline)?,
                None => report.add(&case, mean, "us")?,
            }
            for (name, percent) in [("p50", 50.0), ("p99", 99.0)] {
                let time = times.percentile(percent) as f64 / 1e3;
                report.add(&format!("{case}/{name}"), time, "us")?;
            }
            report.add(&format!("{case}/rate"), rate, "ops/s")?;
            baseline.get_or_insert(case);
        }
    }
    Ok(())
}

/// How long additions take, and how many there are a second.
fn measure(options: &Options, way: Way, pause: Duration) -> Result<(Histogram, f64)> {
    let system = match way {
        Way::Guest => System::Delegate,
        Way::Block | Way::Word => options.mode,
    };
    let rack = system.builder(1 + options.nodes).fabric(options.fabric);
    let rack = rack.build()?;
    let addr = rack.node(0).alloc_bytes(rack.node(0).block_size())?;
    let (errors, all) = (AtomicU64::new(0), Mutex::new(Histogram::new()));
    let done = timing::run(options.nodes, options.duration, |thread| {
        let (errors, all) = (&errors, &all);
        let node = rack.node(1 + thread);
        let mut own = Histogram::new();
        move || {
            for _ in 0..32 {
                let began = Instant::now();
                match way.add(&node, addr) {
                    Ok(_) => own.record(began.elapsed().as_nanos() as u64),
                    Err(_) => drop(errors.fetch_add(1, Relaxed)),
                }
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
            let times = std::mem::replace(&mut own, Histogram::new());
            all.lock()
                .unwrap_or_else(|all| all.into_inner())
                .merge(&times);
            32
        }
    });
    let failed = errors.load(Relaxed);
    let sum = match way {
        Way::Guest => done.operations(),
        Way::Block | Way::Word => rack.node(0).load(addr)?,
    };
    if failed > 0 || sum != done.operations() {
        let operations = done.operations();
        return Err(BenchError::Missing(format!(
            "a sum: {operations} additions, of which {failed} failed, came to {sum}"
        )));
    }
    let times = all.into_inner().unwrap_or_else(|all| all.into_inner());
    Ok((times, done.per_second()))
}
