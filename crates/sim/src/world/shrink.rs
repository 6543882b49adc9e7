//! Making a violation small: fewer operations, threads, nodes, blocks, faults and failures, as long
//! as the same promise breaks.

use super::config::{Config, Mix};
use super::failures::Failures;
use super::faults::Faults;
use super::run::World;
use super::violation::Violation;

/// Seeds tried with each smaller world, besides the one that broke last:
/// what is smaller is another run altogether.
const SEEDS: u64 = 24;

/// The smallest world found that breaks a promise.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// What it is made of.
    pub config: Config,
    /// What it breaks, with its seed.
    pub violation: Violation,
    /// Worlds run to find it.
    pub runs: u64,
}

/// Looks for a smaller world that breaks the same promise, in so many runs at most.
/// `stop` is asked before each run, with the operations of the smallest world so far;
/// true ends the search.
pub fn shrink(
    config: &Config,
    violation: &Violation,
    runs: u64,
    stop: &mut dyn FnMut(u64) -> bool,
) -> Shrunk {
    let mut best = Shrunk {
        config: *config,
        violation: violation.clone(),
        runs: 0,
    };
    'smaller: loop {
        for candidate in smaller(&best.config, best.violation.invariant) {
            let first = best.violation.seed;
            for seed in (0..=SEEDS).map(|n| first.wrapping_add(n)) {
                if best.runs == runs || stop(best.config.total()) {
                    return best;
                }
                best.runs += 1;
                match World::run(seed, &candidate) {
                    Err(found) if found.invariant == best.violation.invariant => {
                        best.config = candidate;
                        best.violation = *found;
                        continue 'smaller;
                    }
                    _ => {}
                }
            }
        }
        return best;
    }
}

/// Worlds that are smaller in one respect, the greatest steps first.
fn smaller(config: &Config, invariant: &str) -> Vec<Config> {
    let now = *config;
    let mut found = Vec::new();
    let mut offer = |candidate: Config| {
        let fits = candidate.nodes >= u16::from(candidate.copies).max(2)
            && candidate.homes >= 1
            && candidate.threads >= 1
            && candidate.blocks >= 1
            && candidate.operations >= 1;
        if fits && candidate != now {
            found.push(candidate);
        }
    };
    for operations in [now.operations / 4, now.operations / 2] {
        offer(Config { operations, ..now });
    }
    offer(Config { threads: 1, ..now });
    for failures in fewer_failures(&now) {
        offer(Config { failures, ..now });
    }
    for faults in fewer_faults(now.faults) {
        offer(Config { faults, ..now });
    }
    let nodes = now.nodes - 1;
    let homes = now.homes().min(nodes);
    offer(Config {
        nodes,
        homes,
        ..now
    });
    for blocks in [1, now.blocks / 2, now.blocks - 1] {
        offer(Config { blocks, ..now });
    }
    for locks in [0, 1, now.locks / 2] {
        if locks < now.locks {
            offer(Config { locks, ..now });
        }
    }
    offer(Config { homes: 1, ..now });
    for mix in [
        Mix { hold: 0, ..now.mix },
        Mix {
            alloc: 0,
            ..now.mix
        },
        Mix {
            fetch: 0,
            ..now.mix
        },
        Mix {
            store: 0,
            ..now.mix
        },
        Mix {
            operate: 0,
            ..now.mix
        },
    ] {
        if mix.sum() > 0 {
            offer(Config { mix, ..now });
        }
    }
    let segment = Config::WHOLE_BLOCKS;
    offer(Config { segment, ..now });
    let history = now.history && invariant == "linearizable";
    offer(Config { history, ..now });
    let threads = now.threads - 1;
    offer(Config { threads, ..now });
    for operations in [now.operations * 3 / 4, now.operations - 1] {
        offer(Config { operations, ..now });
    }
    found
}

fn fewer_faults(now: Faults) -> [Faults; 5] {
    [
        Faults {
            late_by: now.late_by,
            ..Faults::NONE
        },
        Faults { loss: 0, ..now },
        Faults {
            duplication: 0,
            ..now
        },
        Faults { late: 0, ..now },
        Faults { one_way: 0, ..now },
    ]
}

fn fewer_failures(config: &Config) -> Vec<Failures> {
    let now = config.failures;
    let mut found = vec![
        Failures {
            together: now.together,
            ..Failures::NONE
        },
        Failures { switch: 0, ..now },
        Failures { node: 0, ..now },
        Failures { shadow: 0, ..now },
        Failures { leave: 0, ..now },
        Failures {
            partition: 0,
            ..now
        },
        Failures { slow: 0, ..now },
        Failures { stop: 0, ..now },
    ];
    if now.any() {
        let kinds =
            now.switch + now.node + now.shadow + now.leave + now.partition + now.slow + now.stop;
        let left = (0..kinds.min(64)).filter(|number| now.omit >> number & 1 == 0);
        found.extend(left.map(|number| Failures {
            omit: now.omit | 1 << number,
            ..now
        }));
    }
    found
}
