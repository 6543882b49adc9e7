//! One node's part of `bench micro` on a rack of processes: the same operations by the threads of
//! one process a host.
//!
//! All processes agree through the rack's own memory: where the shared data is by named regions,
//! and when to begin by a counter.

use super::Result;
use super::micro::{BATCH, Options, PRIVATE, SHARED, Worker};
use crate::recorded::{Done, Words};
use crate::system::System;
use crate::timing;
use rackmem::{Config, Node, Rack};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Between two looks at the counter.
const LOOK: Duration = Duration::from_millis(1);
/// How long to wait for the others: they may have to be started by hand.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a node stays when it knows that all are done: the others must be able to know, too.
const LINGER: Duration = Duration::from_millis(300);
/// Tells these regions from others of their name.
const TYPE: u64 = 0x6d69_6372_6f00_0001;

/// What one node did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Which node.
    pub node: usize,
    /// Operations of all its threads.
    pub operations: u64,
    /// The same in a second.
    pub per_second: f64,
    /// Packets that its home agent received meanwhile.
    pub at_home: u64,
    /// Operations that failed.
    pub errors: u64,
}

/// Does this node's part for one sharing ratio, the first of the options',
/// when all nodes of the rack have come.
pub fn run(options: &Options, config: &Config, number: usize) -> Result<Part> {
    let system = options.modes.first().copied().unwrap_or(System::HomeOnly);
    let rack = Rack::join(&system.configure(config.clone()), number)?;
    let node = rack.try_node(number)?;
    let nodes = config.nodes.len();
    let (counter, _) = node.region_on(0, "micro/ready", 8, TYPE)?;
    let together = |times: u64| meet(&node, counter, times * nodes as u64);
    let shared = (0..nodes)
        .map(|home| {
            let name = format!("micro/shared/{home}");
            let (addr, _) = node.region_on(home as u16, &name, SHARED / nodes, TYPE)?;
            Ok(addr)
        })
        .collect::<rackmem::Result<Vec<u64>, rackmem::RegionError>>()?;
    let private = node.alloc_bytes(PRIVATE)?;
    let sharing = options.sharing.first().copied().unwrap_or(0);
    let errors = AtomicU64::new(0);
    let go = |duration, part: usize| {
        timing::run(options.threads, duration, |thread| {
            let client = ((part * nodes + number) * options.threads + thread) as u32;
            let mut worker = Worker {
                words: Words::new(node.clone(), client, "", None),
                shared: &shared,
                private,
                sharing,
                options,
                random: fastrand::Rng::with_seed(u64::from(client) + 1),
                last: private,
            };
            let errors = &errors;
            move || {
                let done = (0..BATCH).filter(|_| match worker.step() {
                    Ok(done) => done == Done::Yes,
                    Err(_) => {
                        errors.fetch_add(1, Relaxed);
                        false
                    }
                });
                done.count() as u64
            }
        })
    };
    let at_home = || rack.metrics().nodes.iter().map(|node| node.at_home).sum();
    together(1)?;
    // Warm caches, and entries where they will stay.
    go(options.duration / 2, 0);
    together(2)?;
    let before: u64 = at_home();
    let done = go(options.duration, 1);
    let after: u64 = at_home();
    together(3)?;
    std::thread::sleep(LINGER);
    Ok(Part {
        node: number,
        operations: done.operations(),
        per_second: done.per_second(),
        at_home: after - before,
        errors: errors.into_inner(),
    })
}

/// Waits until all have come to this point.
fn meet(node: &Node, counter: u64, all: u64) -> Result<()> {
    node.fetch_add(counter, 1)?;
    let end = Instant::now() + PATIENCE;
    while node.load(counter)? < all {
        if Instant::now() > end {
            let waited = PATIENCE.as_secs();
            let why = format!("not every node of the rack has come within {waited} s");
            return Err(super::BenchError::Missing(why));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_nodes_of_a_rack_do_their_part() {
        let [one, two] = rackmem_hosts::addresses(2)[..] else {
            panic!("two addresses");
        };
        let text =
            format!("nodes = [\"{one}\", \"{two}\"]\ncache = 4194304\nmemory = 1073741824\n");
        let config = Config::parse(&text).unwrap();
        let options = Options {
            sharing: vec![100],
            duration: Duration::from_millis(50),
            ..Options::default()
        };
        let parts = std::thread::scope(|scope| {
            let parts = [0, 1].map(|number| {
                let (options, config) = (&options, &config);
                scope.spawn(move || run(options, config, number).unwrap())
            });
            parts.map(|part| part.join().unwrap())
        });
        for (number, part) in parts.iter().enumerate() {
            assert_eq!((part.node, part.errors), (number, 0));
            assert!(part.operations > 0 && part.per_second > 0.0, "{part:?}");
        }
        assert!(parts.iter().any(|part| part.at_home > 0), "{parts:?}");
    }
}
