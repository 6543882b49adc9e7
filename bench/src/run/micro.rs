//! `bench micro`: the paper's micro benchmark (§7.2): 8-byte reads and writes with a sharing ratio,
//! a read ratio and a locality, by all nodes at once, in every mode.
//!
//! The paper's sizes, scaled to one machine by 1/256: a working set of 32 MiB,
//! of which 1 MiB is shared by all nodes and the rest private to each, and caches of 4 MiB. The
//! proportions decide, not the sizes.

use super::{Progress, Result};
use crate::recorded::{self, Done, HistoryFile, Words};
use crate::report::Report;
use crate::system::System;
use crate::timing;
use rackmem::{Fabric, Rack};
use rackmem_sim::history::Recorder;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over which fabric.
    pub fabric: Fabric,
    /// Which systems.
    pub modes: Vec<System>,
    /// How many nodes.
    pub nodes: usize,
    /// Threads of each node.
    pub threads: usize,
    /// Percent of operations on data that all nodes share.
    pub sharing: Vec<u8>,
    /// Percent of operations that read.
    pub reads: u8,
    /// Percent of operations on the block of the one before.
    pub locality: u8,
    /// Time of one case.
    pub duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            fabric: Fabric::Inline,
            modes: System::ALL.iter().map(|row| row.0).collect(),
            nodes: 4,
            threads: 1,
            sharing: vec![0, 20, 60, 100],
            reads: 50,
            locality: 0,
            duration: Duration::from_millis(500),
        }
    }
}

pub(super) const BLOCK: usize = 4096;
/// All private data of a node.
pub(super) const PRIVATE: usize = 4 << 20;
/// All shared data.
pub(super) const SHARED: usize = 1 << 20;
/// A node's cache.
pub(super) const CACHE: usize = 4 << 20;
/// Operations between two looks at the clock.
pub(super) const BATCH: u64 = 32;

/// Runs it. With a file, what all clients do and are told goes there; each then does
/// [`recorded::MAX_OPERATIONS`] at most in a case, and has its record to keep: compare such rates
/// with none but their like.
pub fn run(
    options: &Options,
    mut file: Option<&mut HistoryFile>,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    for &sharing in &options.sharing {
        let mut baseline: Option<String> = None;
        // The strongest baseline first, so that every mode is a ratio to the paper's
        // Concordia-base.
        let mut modes = options.modes.clone();
        modes.sort_by_key(|&mode| mode != System::HomeOnly);
        for mode in modes {
            let case = name(options, mode, sharing);
            progress(&case);
            let recorder = file.is_some().then(recorded::recorder);
            let (rate, home_packets) = measure(options, mode, sharing, &case, recorder.as_ref())?;
            if let (Some(file), Some(recorder)) = (file.as_mut(), recorder) {
                file.add(&recorder.into_history())?;
            }
            match &baseline {
                Some(baseline) => report.add_against(&case, rate, "ops/s", baseline)?,
                None => report.add(&case, rate, "ops/s")?,
            }
            report.add(
                &format!("{case}/home-agent-packets"),
                home_packets,
                "per op",
            )?;
            baseline.get_or_insert(case);
        }
    }
    Ok(())
}

fn name(options: &Options, mode: System, sharing: u8) -> String {
    let fabric = options.fabric.name();
    let Options {
        nodes,
        threads,
        reads,
        locality,
        ..
    } = options;
    let mode = mode.name();
    format!(
        "{fabric}/{mode}/nodes-{nodes}/threads-{threads}/sharing-{sharing}/reads-{reads}/locality-{locality}"
    )
}

/// Operations a second of all nodes together, and packets at home agents an operation (the paper's
/// Fig. 10).
fn measure(
    options: &Options,
    system: System,
    sharing: u8,
    case: &str,
    recorder: Option<&Recorder>,
) -> Result<(f64, f64)> {
    let rack = system.builder(options.nodes).fabric(options.fabric);
    let rack = rack.block_size(BLOCK).cache(CACHE).build()?;
    let shared: Vec<u64> = (0..options.nodes)
        .map(|home| rack.node(home).alloc_bytes(SHARED / options.nodes))
        .collect::<rackmem::Result<_, rackmem::AllocError>>()?;
    let private: Vec<u64> = (0..options.nodes)
        .map(|id| rack.node(id).alloc_bytes(PRIVATE))
        .collect::<rackmem::Result<_, rackmem::AllocError>>()?;
    let errors = AtomicU64::new(0);
    let go = |duration, part: usize| {
        let threads = options.nodes * options.threads;
        timing::run(threads, duration, |thread| {
            let id = thread % options.nodes;
            let client = (part * threads + thread) as u32;
            let mut worker = Worker {
                words: match system {
                    System::Delegate => Words::delegated(rack.node(id), client, case, recorder),
                    _ => Words::new(rack.node(id), client, case, recorder),
                },
                shared: &shared,
                private: private[id],
                sharing,
                options,
                random: fastrand::Rng::with_seed(thread as u64 + 1),
                last: private[id],
            };
            let errors = &errors;
            move || {
                let mut done = 0;
                for _ in 0..BATCH {
                    match worker.step() {
                        Ok(Done::Yes) => done += 1,
                        Ok(Done::Full) => {}
                        Err(_) => drop(errors.fetch_add(1, Ordering::Relaxed)),
                    }
                }
                if done == 0 {
                    std::thread::yield_now();
                }
                done
            }
        })
    };
    // Warm caches, and entries where they will stay.
    go(options.duration / 2, 0);
    let before = at_home(&rack);
    let done = go(options.duration, 1);
    let packets = (at_home(&rack) - before) as f64 / done.operations().max(1) as f64;
    if errors.load(Ordering::Relaxed) > 0 {
        return Err(super::BenchError::Missing(format!(
            "{} operations failed",
            errors.load(Ordering::Relaxed)
        )));
    }
    Ok((done.per_second(), packets))
}

/// Packets that home agents have received: requests and unlocks they own,
/// data they provide or take back.
fn at_home(rack: &Rack) -> u64 {
    rack.metrics().nodes.iter().map(|node| node.at_home).sum()
}

pub(super) struct Worker<'a> {
    pub(super) words: Words<'a>,
    pub(super) shared: &'a [u64],
    pub(super) private: u64,
    pub(super) sharing: u8,
    pub(super) options: &'a Options,
    pub(super) random: fastrand::Rng,
    pub(super) last: u64,
}

impl Worker<'_> {
    fn percent(&mut self, percent: u8) -> bool {
        self.random.u8(..100) < percent
    }

    pub(super) fn step(&mut self) -> rackmem::Result<Done, rackmem::AccessError> {
        if !self.percent(self.options.locality) {
            self.last = if self.percent(self.sharing) {
                let part = self.shared[self.random.usize(..self.shared.len())];
                part + (self.random.usize(..SHARED / self.shared.len() / BLOCK) * BLOCK) as u64
            } else {
                self.private + (self.random.usize(..PRIVATE / BLOCK) * BLOCK) as u64
            };
        }
        let word = self.random.usize(..self.words.choice(BLOCK / 8));
        let addr = self.last + (word * 8) as u64;
        if self.percent(self.options.reads) {
            self.words.read(addr)
        } else {
            self.words.write(addr)
        }
    }
}
