//! Blocks and locks on the same nodes, through one thing that concerns both:
//! worlds in which it happens, by seeds.

use super::config::{Config, Owners};
use super::failures::Failures;
use super::faults::Faults;
use super::locks::LockSeen;
use super::run::World;
use super::shrink::shrink;
use super::{Mutation, Violation};
use crate::driver::{self, About, Allowance, Case, Ended, Limits, Progress, Suite};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Worlds run to make one that breaks a promise smaller.
const SHRINKS: u64 = 500;
/// Lines of a story at most.
const SHOWN: usize = 100;

/// Something that is to happen: its name, and how often it has in a world.
pub type Occasion = (&'static str, fn(&LockSeen) -> u64);

/// Worlds in which something is to happen.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name: stable, lower case.
    pub name: &'static str,
    /// What it is for.
    pub shows: &'static str,
    /// What they are made of.
    pub config: Config,
    /// How many of them: their seeds begin at 0.
    pub seeds: u64,
    /// What must have happened in some world.
    pub sometimes: &'static [Occasion],
}

const BASE: Config = Config {
    rack: Owners::HomeOnly,
    nodes: 4,
    copies: 0,
    removals: 0,
    homes: 3,
    threads: 2,
    blocks: 5,
    operations: 40,
    cache: 3,
    segment: 16,
    timeout: 12_000,
    locks: 2,
    mix: super::Mix {
        read: 5,
        write: 2,
        add: 3,
        hold: 0,
        alloc: 0,
        fetch: 0,
        store: 0,
        operate: 0,
    },
    faults: Faults::NONE,
    failures: Failures::NONE,
    history: true,
    mutation: None,
};

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "both-owners-die",
        shows: "a node dies that owns a block and a lock: each is rescued, or said to be lost",
        config: Config {
            failures: Failures::NODE,
            ..BASE
        },
        seeds: 60,
        sometimes: &[
            ("a node that owned both died", |seen| {
                seen.owners_of_both_died
            }),
            ("a thread was told of a death", |seen| seen.owner_died),
        ],
    },
    Scenario {
        name: "both-move",
        shows: "the switch dies while entries of blocks and of locks move to it",
        config: Config {
            rack: Owners::TINY_SWITCH,
            locks: 4,
            faults: Faults::LOSS,
            failures: Failures {
                switch: 4,
                ..Failures::SWITCH
            },
            ..BASE
        },
        seeds: 120,
        sometimes: &[
            ("the switch died while both moved", |seen| {
                seen.switches_died_moving_both
            }),
            ("a thread was inside over an epoch", |seen| {
                seen.inside_over_epochs
            }),
        ],
    },
    Scenario {
        name: "both-told",
        shows: "one list of a rebuild tells of blocks and of locks, and a segment of it is lost",
        config: Config {
            locks: 3,
            faults: Faults::LOSS,
            failures: Failures {
                node: 3,
                ..Failures::NODE
            },
            ..BASE
        },
        seeds: 120,
        sometimes: &[("such a segment was lost", |seen| seen.mixed_lists_lost)],
    },
    Scenario {
        name: "both-homes-die",
        shows: "a home dies that owns what is at home elsewhere: its own memory is gone, the other is rescued or lost",
        config: Config {
            homes: 4,
            locks: 4,
            failures: Failures::NODE,
            ..BASE
        },
        seeds: 60,
        sometimes: &[
            ("such a home died", |seen| seen.homes_that_owned_died),
            ("a thread waited for a lock that was gone", |seen| seen.gone),
        ],
    },
    Scenario {
        name: "both-accepted",
        shows: "a program accepts the loss of a block while it is inside a lock",
        config: Config {
            failures: Failures {
                node: 3,
                ..Failures::NODE
            },
            ..BASE
        },
        seeds: 60,
        sometimes: &[
            ("a loss was accepted inside", |seen| seen.accepted_inside),
            ("operations ended inside", |seen| seen.operations_inside),
        ],
    },
    Scenario {
        name: "both-close-epochs",
        shows: "an epoch begins inside the rebuild of the one before, with threads in locks and at blocks",
        config: Config {
            rack: Owners::LARGE_SWITCH,
            faults: Faults::ALL,
            failures: Failures {
                together: 1000,
                node: 2,
                switch: 2,
                ..Failures::ALL
            },
            ..BASE
        },
        seeds: 60,
        sometimes: &[
            ("an epoch began inside a rebuild", |seen| seen.close_epochs),
            ("a thread was told that data is older still", |seen| {
                seen.lost
            }),
        ],
    },
    Scenario {
        name: "both-cut-off",
        shows: "a node is cut off with a thread inside a lock and blocks in its cache, and its lease ends",
        config: Config {
            failures: Failures {
                partition: 3,
                ..Failures::PARTITION
            },
            ..BASE
        },
        seeds: 60,
        sometimes: &[("a lease ended inside", |seen| seen.fenced_inside)],
    },
];

/// Blocks and locks together.
pub const SUITE: Suite = Suite {
    name: "joint",
    scenarios: || SCENARIOS.iter().map(|s| s as &dyn Case).collect(),
    defects: || Mutation::played().map(Mutation::name).collect(),
};

impl Scenario {
    /// What never happened in these worlds.
    fn missing(&self, seen: &[u64]) -> Vec<String> {
        let wanted = self.sometimes.iter().zip(seen);
        let missing = wanted.filter(|(_, count)| **count == 0);
        missing.map(|((name, _), _)| (*name).to_owned()).collect()
    }

    fn run(&self, config: &Config, seeds: u64, limits: &mut Limits<'_>) -> driver::Report {
        let began = Instant::now();
        let mut seen = vec![0; self.sometimes.len()];
        let (mut packets, mut operations, mut worlds) = (0, 0, 0);
        let mut ended = Ended::Seeds;
        for seed in 0..seeds {
            let time = began.elapsed();
            let progress = Progress {
                states: worlds,
                expanded: worlds,
                depth: 0,
                time,
            };
            if (limits.stop)(&progress) {
                ended = Ended::Stopped;
                break;
            }
            if limits.time.is_some_and(|most| time >= most) {
                ended = Ended::Limit;
                break;
            }
            worlds += 1;
            match World::run(seed, config) {
                Ok(report) => {
                    packets += report.traffic.packets;
                    operations += report.work.operations + report.locks.entries;
                    for (sum, (_, count)) in seen.iter_mut().zip(self.sometimes) {
                        *sum += count(&report.locks);
                    }
                }
                Err(violation) => {
                    ended = Ended::Broken(told(config, &violation));
                    break;
                }
            }
        }
        let names = self.sometimes.iter().zip(&seen);
        let found = names.filter(|(_, count)| **count > 0);
        driver::Report {
            states: 0,
            expanded: 0,
            transitions: 0,
            depth: 0,
            ends: 0,
            figures: vec![
                ("worlds", worlds as u64),
                ("packets", packets),
                ("operations", operations),
            ],
            bytes: 0,
            time: began.elapsed().max(Duration::from_nanos(1)),
            seen: found.map(|((name, _), _)| (*name).to_owned()).collect(),
            missing: self.missing(&seen),
            ended,
        }
    }
}

/// A broken promise, in a world as small as is found, with the end of its story.
fn told(config: &Config, violation: &Violation) -> driver::Violation {
    let small = shrink(config, violation, SHRINKS, &mut |_| false);
    let lines = Rc::new(RefCell::new(VecDeque::new()));
    let kept = lines.clone();
    let watcher: super::Watcher = Box::new(move |scene| {
        let mut lines = kept.borrow_mut();
        if lines.len() == SHOWN {
            lines.pop_front();
        }
        lines.push_back(scene.to_string().trim_end().to_owned());
    });
    // What comes of it is known: it is run again for its story.
    let _ = World::watch(small.violation.seed, &small.config, watcher);
    let story = lines.take().into();
    let Violation {
        invariant,
        section,
        detail,
        ..
    } = small.violation;
    driver::Violation {
        invariant,
        section,
        detail,
        story,
    }
}

impl Case for Scenario {
    fn about(&self, deep: bool) -> About {
        let Failures {
            switch,
            node,
            shadow,
            leave,
            partition,
            slow,
            ..
        } = self.config.failures;
        let rows = [
            ("switches", "switch dies", switch + shadow),
            ("nodes", "node dies", node),
            ("leaves", "node leaves", leave),
            ("partitions", "partition", partition),
            ("slow", "slow node", slow),
            ("lost_per_mille", "‰ lost", self.config.faults.loss),
            (
                "doubled_per_mille",
                "‰ doubled",
                self.config.faults.duplication,
            ),
            ("delayed_per_mille", "‰ delayed", self.config.faults.late),
            ("worlds", "worlds", self.worlds(deep) as u32),
        ];
        About {
            name: self.name,
            shows: self.shows,
            rack: match self.config.rack {
                Owners::Switch { ways, sets } => format!("switch of {sets} sets of {ways}"),
                _ => "home-only".into(),
            },
            nodes: self.config.nodes.into(),
            blocks: self.config.blocks as usize,
            locks: self.config.locks as usize,
            threads: usize::from(self.config.nodes * self.config.threads),
            budget: rows
                .map(|(key, words, count)| Allowance {
                    key,
                    words,
                    count: count as usize,
                })
                .to_vec(),
            sometimes: self.sometimes.len(),
        }
    }

    fn explore(
        &self,
        deep: bool,
        defect: Option<&str>,
        limits: &mut Limits<'_>,
    ) -> Result<driver::Report, &'static str> {
        let named = |name: &str| Mutation::played().find(|defect| defect.name() == name);
        let config = Config {
            mutation: defect.and_then(named),
            ..self.config
        };
        Ok(self.run(&config, self.worlds(deep), limits))
    }
}

impl Scenario {
    fn worlds(&self, deep: bool) -> u64 {
        if deep { self.seeds * 20 } else { self.seeds }
    }
}
