//! `bench failover --sim`: the death of the switch in a seeded world, in virtual time.
//!
//! Everything but the lease is the protocol's: the world's members notice after its lease (150 µs,
//! and as much again until the exclusion), packets take 1 to 2 µs, and the roles are those that
//! ship. Its processors cost nothing, so its times are what the steps of a recovery take on the
//! network alone.

use super::{BenchError, Result};
use crate::report::Report;
use rackmem_sim::world::{Config, Failures, Owners, Sample, World};

/// What to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Nodes.
    pub nodes: u16,
    /// The world's seed: when the switch dies, and everything else.
    pub seed: u64,
}

/// Between two looks at the world, in virtual nanoseconds.
const STEP: u64 = 20_000;
/// Application threads of a node, and blocks that all of them share, as far as a world bears.
const THREADS: u16 = 4;
const BLOCKS: u32 = 64;
const CACHE: usize = 40;
/// Operations of a thread.
const OPERATIONS: u32 = 1500;
/// The share of before that counts as all of it.
const BACK: f64 = 0.9;
/// Steps that a speed is taken over.
const WINDOW: usize = 5;

/// Runs it: the figures, and a plot of the throughput.
pub fn run(options: &Options, report: &mut Report) -> Result<String> {
    let config = Config {
        rack: Owners::LARGE_SWITCH,
        nodes: options.nodes,
        threads: THREADS,
        blocks: BLOCKS,
        cache: CACHE,
        operations: OPERATIONS,
        failures: Failures {
            switch: 1,
            ..Failures::NONE
        },
        ..Config::default()
    };
    let samples = World::timeline(options.seed, &config, STEP)
        .map_err(|violation| BenchError::NotLinearizable(violation.to_string()))?;
    let missing =
        || BenchError::Missing("the switch died too late in this world: try another --seed".into());
    let told = Story::of(&samples).ok_or_else(missing)?;
    for (name, ns) in told.figures(&samples) {
        report.add(&format!("sim/switch/{name}"), ns / 1000.0, "us")?;
    }
    for (name, from, to) in told.phases(samples.len()) {
        let rate = rate(&samples, from, to);
        report.add(&format!("sim/switch/throughput/{name}"), rate, "ops/s")?;
    }
    Ok(plot(&samples, &told))
}

/// When what happened, as numbers of samples.
struct Story {
    died: usize,
    known: usize,
    served: usize,
    fresh: usize,
    hot: Option<usize>,
    full: Option<usize>,
}

impl Story {
    fn of(samples: &[Sample]) -> Option<Story> {
        let after = |from: usize, so: &dyn Fn(&Sample) -> bool| {
            let rest = samples.get(from..)?;
            rest.iter().position(so).map(|at| from + at)
        };
        let died = after(0, &|s| s.died > 0)?;
        let before = samples.get(died.checked_sub(1)?)?;
        let known = after(died, &|s| !s.switch)?;
        let served = after(known, &|s| s.rebuilds > before.rebuilds)?;
        let fresh = after(known, &|s| s.switch)?;
        let owned = before.in_switch as f64 * BACK;
        let hot = after(fresh, &|s| s.in_switch as f64 >= owned);
        let speed = rate(samples, 0, died) * BACK;
        let full = (fresh..samples.len().saturating_sub(WINDOW))
            .find(|&at| rate(samples, at, at + WINDOW) >= speed);
        Some(Story {
            died,
            known,
            served,
            fresh,
            hot,
            full,
        })
    }

    fn figures(&self, samples: &[Sample]) -> Vec<(&'static str, f64)> {
        let between = |from: usize, to: usize| (samples[to].time - samples[from].time) as f64;
        let mut figures = vec![
            ("detection", between(self.died, self.known)),
            ("service", between(self.died, self.served)),
            ("rebuild", between(self.known, self.served)),
        ];
        let hot = self
            .hot
            .map(|at| ("hot-blocks-back", between(self.fresh, at)));
        let full = self.full.map(|at| ("full-speed", between(self.fresh, at)));
        figures.extend(hot.into_iter().chain(full));
        figures
    }

    fn phases(&self, end: usize) -> [(&'static str, usize, usize); 4] {
        [
            ("before", 0, self.died),
            ("unnoticed", self.died, self.known),
            ("without", self.served, self.fresh),
            ("after", self.fresh, end - 1),
        ]
    }
}

/// Operations a second of virtual time between two samples.
fn rate(samples: &[Sample], from: usize, to: usize) -> f64 {
    let (Some(a), Some(b)) = (samples.get(from), samples.get(to)) else {
        return 0.0;
    };
    let seconds = b.time.saturating_sub(a.time) as f64 / 1e9;
    if seconds == 0.0 {
        return 0.0;
    }
    (b.operations - a.operations) as f64 / seconds
}

fn plot(samples: &[Sample], told: &Story) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const LINE: usize = 80;
    let done: Vec<u64> = samples
        .windows(2)
        .map(|pair| pair[1].operations - pair[0].operations)
        .collect();
    let most = done.iter().copied().max().unwrap_or(0).max(1);
    let marks = [
        (told.died, "died"),
        (told.known, "known"),
        (told.fresh, "another"),
    ];
    let mut text = format!("switch, simulated: {} µs a bar\n", STEP / 1000);
    for (row, line) in done.chunks(LINE).enumerate() {
        let from = row * LINE;
        let bar = |count: &u64| BARS[(count * 8).div_ceil(most).min(8) as usize];
        let bars: String = line.iter().map(bar).collect();
        let time = samples[from].time / 1000;
        text += &format!("{time:>6} µs {bars}\n");
        for (at, what) in marks {
            if (from..from + LINE).contains(&at) {
                text += &format!("{:>9} {}↑ {what}\n", "", " ".repeat(at - from));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_switch_dies_and_another_one_takes_over() {
        let mut report = Report::new("failover-sim");
        let plot = run(&Options { nodes: 4, seed: 1 }, &mut report).unwrap();
        let json = report.to_json().unwrap();
        for name in ["detection", "service", "rebuild", "hot-blocks-back"] {
            assert!(json.contains(&format!("sim/switch/{name}")), "{name}");
        }
        assert!(plot.contains("died") && plot.contains("another"));
    }
}
