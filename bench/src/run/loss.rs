//! `bench loss`: what a bad network costs, beside a perfect one, over real UDP;
//! and that nobody notices more of it than the time: what all clients were told is recorded and
//! judged.

use super::{BenchError, Progress, Result};
use crate::recorded::{self, Done, HistoryFile, Words};
use crate::report::Report;
use crate::system::System;
use crate::timing;
use rackmem::Fabric;
use rackmem::diagnostics::{Faults, RackMetrics};
use rackmem_sim::linear::{Limits, Verdict, check};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which protocol.
    pub mode: System,
    /// Nodes, each with one application thread.
    pub nodes: usize,
    /// Percent of operations that read.
    pub reads: u8,
    /// Time of one case.
    pub duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: System::Switch,
            nodes: 4,
            reads: 50,
            duration: Duration::from_secs(1),
        }
    }
}

/// A row: its name, and the network.
type Weather = (&'static str, Option<Faults>);

const fn lossy(loss: f64) -> Option<Faults> {
    Some(Faults {
        loss,
        ..Faults::NONE
    })
}

/// The first is what the others are compared with.
const WEATHERS: [Weather; 7] = [
    ("perfect", None),
    ("faults-0", lossy(0.0)),
    ("loss-1", lossy(0.01)),
    ("loss-5", lossy(0.05)),
    (
        "duplication-5",
        Some(Faults {
            duplication: 0.05,
            ..Faults::NONE
        }),
    ),
    (
        "reordering-5",
        Some(Faults {
            delay: 0.05,
            delay_up_to: Duration::from_millis(1),
            ..Faults::NONE
        }),
    ),
    (
        "all-1",
        Some(Faults {
            loss: 0.01,
            duplication: 0.01,
            delay: 0.01,
            delay_up_to: Duration::from_millis(1),
            ..Faults::NONE
        }),
    ),
];

/// Blocks that all nodes read and write; there is room for them in every cache.
const BLOCKS: usize = 256;
const BLOCK: usize = 4096;
const CACHE: usize = 4 << 20;

/// What one run gave.
#[derive(Clone, Copy, Default)]
struct Run {
    per_second: f64,
    /// Packets that any end received, an operation.
    packets: f64,
    /// Packets that requesters sent again, an operation.
    again: f64,
}

/// Runs it for the time of number `round`. Histories go to a file, too, if one is given.
pub fn run(
    options: &Options,
    round: usize,
    mut file: Option<&mut HistoryFile>,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    let name = |row: usize| {
        let (mode, nodes, reads) = (options.mode.name(), options.nodes, options.reads);
        format!("udp/{mode}/nodes-{nodes}/reads-{reads}/{}", WEATHERS[row].0)
    };
    for (row, weather) in WEATHERS.iter().enumerate() {
        progress(weather.0);
        let run = once(options, weather, round, file.as_deref_mut())?;
        let case = name(row);
        match row {
            0 => report.add(&case, run.per_second, "ops/s")?,
            _ => report.add_against(&case, run.per_second, "ops/s", &name(0))?,
        }
        let again = format!("{case}/retransmissions");
        report.add(&again, run.again, "per op")?;
        let share = 100.0 * run.again / run.packets.max(f64::MIN_POSITIVE);
        report.add(&format!("{again}/share"), share, "% of packets")?;
    }
    Ok(())
}

fn once(
    options: &Options,
    (name, faults): &Weather,
    round: usize,
    file: Option<&mut HistoryFile>,
) -> Result<Run> {
    let rack = options
        .mode
        .builder(options.nodes)
        .fabric(Fabric::Udp)
        .block_size(BLOCK)
        .cache(CACHE);
    let rack = match faults {
        Some(faults) => rack.faults(*faults).build()?,
        None => rack.build()?,
    };
    let homes: Vec<u64> = (0..options.nodes)
        .map(|home| rack.node(home).alloc_bytes(BLOCKS / options.nodes * BLOCK))
        .collect::<rackmem::Result<_, rackmem::AllocError>>()?;
    let case = format!("{name}/{round}");
    let recorder = recorded::recorder();
    let failed = AtomicU64::new(0);
    let go = |duration, part: u32| {
        timing::run(options.nodes, duration, |thread| {
            let client = part * options.nodes as u32 + thread as u32;
            let mut words = Words::new(rack.node(thread), client, &case, Some(&recorder));
            let mut random = fastrand::Rng::with_seed(u64::from(client));
            let (homes, failed) = (&homes, &failed);
            move || {
                let home = homes[random.usize(..homes.len())];
                let block = random.usize(..BLOCKS / homes.len()) * BLOCK;
                let word = random.usize(..words.choice(BLOCK / 8)) * 8;
                let addr = home + (block + word) as u64;
                let done = match random.u8(..100) < options.reads {
                    true => words.read(addr),
                    false => words.write(addr),
                };
                match done {
                    Ok(Done::Yes) => 1,
                    Ok(Done::Full) => 0,
                    Err(_) => {
                        failed.fetch_add(1, Ordering::Relaxed);
                        0
                    }
                }
            }
        })
    };
    go(options.duration / 4, 0);
    let before = figures(&rack.metrics());
    let done = go(options.duration, 1);
    let after = figures(&rack.metrics());
    let failed = failed.into_inner();
    if failed > 0 {
        let what = format!("{failed} operations failed under {name}");
        return Err(BenchError::Missing(what));
    }
    let history = recorder.into_history();
    if let Some(file) = file {
        file.add(&history)?;
    }
    match check(&history, Limits::default()) {
        Verdict::Linearizable(_) => {}
        verdict => return Err(BenchError::NotLinearizable(format!("{name}: {verdict}"))),
    }
    let operations = done.operations().max(1) as f64;
    Ok(Run {
        per_second: done.per_second(),
        packets: (after.0 - before.0) as f64 / operations,
        again: (after.1 - before.1) as f64 / operations,
    })
}

/// Packets that arrived anywhere, and those that were sent again.
fn figures(metrics: &RackMetrics) -> (u64, u64) {
    let at_nodes: u64 = metrics.nodes.iter().map(|n| n.received.total()).sum();
    let at_switch = metrics.switch.as_ref().map_or(0, |s| s.received.total());
    let again = metrics.nodes.iter().map(|node| node.retransmissions).sum();
    (at_nodes + at_switch, again)
}
