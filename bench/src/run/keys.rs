//! A key-value store in coherent memory under Zipf's law (the Concordia paper's §7.3, Fig. 14), and
//! the same over delegation.
//!
//! Pairs of 136 bytes fill blocks of 4 KiB, which are spread over all nodes; a get reads a pair, a
//! put writes one, each at one moment. The paper's proportions at 1/2048: 32,768 keys, of which a
//! node's cache holds the paper's part. Delegation asks the home for one word of the pair.

use super::{BenchError, Progress, Result};
use crate::report::Report;
use crate::system::System;
use crate::zipf::{YCSB_THETA, Zipf};
use crate::{delegated, stop, timing};
use rackmem::{Fabric, Node};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over which fabric.
    pub fabric: Fabric,
    /// Which systems.
    pub systems: Vec<System>,
    /// How many nodes.
    pub nodes: usize,
    /// Threads of each.
    pub threads: usize,
    /// Percent of operations that get, of each workload.
    pub reads: Vec<u8>,
    /// Time of one case.
    pub duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            fabric: Fabric::Inline,
            systems: vec![System::Directory, System::Switch, System::Delegate],
            nodes: 4,
            threads: 1,
            reads: vec![95, 50],
            duration: Duration::from_millis(500),
        }
    }
}

const BLOCK: usize = 4096;
const KEYS: usize = 32_768;
/// Bytes of a pair, and pairs of a block.
const PAIR: usize = 8 + 128;
const EACH: usize = BLOCK / PAIR;
/// 2 GB of 8.7.
const CACHE: usize = 1 << 20;
/// Operations between two looks at the clock.
const BATCH: u64 = 32;

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for &reads in &options.reads {
        for &system in &options.systems {
            if stop::requested() {
                return Err(BenchError::Stopped);
            }
            let case = name(options, system, reads);
            progress(&case);
            report.add(&case, measure(options, system, reads)?, "ops/s")?;
        }
    }
    Ok(())
}

fn name(options: &Options, system: System, reads: u8) -> String {
    let (fabric, system) = (options.fabric.name(), system.name());
    let Options { nodes, threads, .. } = options;
    format!("{fabric}/{system}/zipf/nodes-{nodes}/threads-{threads}/reads-{reads}")
}

/// Operations a second of all nodes together.
fn measure(options: &Options, system: System, reads: u8) -> Result<f64> {
    let nodes = options.nodes.max(1);
    let rack = system.builder(nodes).fabric(options.fabric);
    let rack = rack.block_size(BLOCK).cache(CACHE).build()?;
    let bytes = KEYS.div_ceil(EACH).div_ceil(nodes) * BLOCK;
    let parts = (0..nodes).map(|home| rack.node(home).alloc_bytes(bytes));
    let parts = parts.collect::<rackmem::Result<Vec<u64>, rackmem::AllocError>>()?;
    let keys = Zipf::new(KEYS as u64, YCSB_THETA);
    let failed = AtomicU64::new(0);
    let go = |duration| {
        timing::run(nodes * options.threads, duration, |thread| {
            let client = Client {
                node: rack.node(thread % nodes),
                parts: &parts,
                delegates: system == System::Delegate,
            };
            let mut random = fastrand::Rng::with_seed(thread as u64 + 1);
            let failed = &failed;
            move || {
                for _ in 0..BATCH {
                    let key = keys.scrambled(&mut random) as usize;
                    let gets = random.u8(..100) < reads;
                    let done = client.step(key, gets);
                    failed.fetch_add(u64::from(!done), Ordering::Relaxed);
                }
                BATCH
            }
        })
    };
    // Warm caches, and entries where they will stay.
    go(options.duration / 2);
    let done = go(options.duration);
    match failed.load(Ordering::Relaxed) {
        0 => Ok(done.per_second()),
        some => Err(BenchError::Missing(format!("{some} operations failed"))),
    }
}

/// A thread of a node.
struct Client<'a> {
    node: Node,
    parts: &'a [u64],
    delegates: bool,
}

impl Client<'_> {
    /// Gets or puts a pair; whether it could.
    fn step(&self, key: usize, gets: bool) -> bool {
        let (block, nodes) = (key / EACH, self.parts.len());
        let at = block / nodes * BLOCK + key % EACH * PAIR;
        let addr = self.parts[block % nodes] + at as u64;
        let mut pair = [1; PAIR];
        match (self.delegates, gets) {
            (false, true) => self.node.read(addr, &mut pair).is_ok(),
            (false, false) => self.node.write(addr, &pair).is_ok(),
            (true, true) => delegated::load(&self.node, addr).is_ok(),
            (true, false) => delegated::store(&self.node, addr, 1).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_serves_both_mixes() {
        let options = Options {
            nodes: 2,
            duration: Duration::from_millis(20),
            ..Options::default()
        };
        let mut report = Report::new("keys");
        run(&options, &mut report, &mut |_| {}).unwrap();
        for system in ["directory", "switch", "delegate"] {
            for reads in [50, 95] {
                let case = format!("inline/{system}/zipf/nodes-2/threads-1/reads-{reads}");
                assert!(report.case(&case).unwrap().value > 0.0, "{case}");
            }
        }
    }
}
