//! A world's throughput over time, while its switch dies and another one comes.

use super::config::Config;
use super::run::World;
use super::violation::Violation;

/// A world at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Virtual time in nanoseconds.
    pub time: u64,
    /// Operations that have ended.
    pub operations: u64,
    /// Entries that the switch has.
    pub in_switch: usize,
    /// The epoch of the newest view.
    pub epoch: u32,
    /// Whether the newest view has a switch.
    pub switch: bool,
    /// Switches that have died.
    pub died: u64,
    /// Times that a home has made its entries anew, in all.
    pub rebuilds: u64,
}

impl World {
    /// Runs a world as [`World::run`] does, and looks at it every so many nanoseconds until its
    /// work is done.
    pub fn timeline(seed: u64, config: &Config, every: u64) -> Result<Vec<Sample>, Box<Violation>> {
        let mut world = World::new(seed, config, None);
        world.start();
        let mut samples = Vec::new();
        let mut next = 0;
        while let Some(what) = world.fabric.next() {
            world.happen(what);
            world.check()?;
            if world.fabric.now >= next {
                samples.push(world.sample());
                next = world.fabric.now + every.max(1);
            }
            if world.turn_page()? {
                break;
            }
        }
        Ok(samples)
    }

    fn sample(&self) -> Sample {
        Sample {
            time: self.fabric.now,
            operations: self.threads.iter().map(|t| t.judged.work.operations).sum(),
            in_switch: self.switch.as_ref().map_or(0, |s| s.program.entries()),
            epoch: self.view.epoch,
            switch: self.view.switch.is_some(),
            died: self.broken.switches,
            rebuilds: self.nodes.iter().map(|node| node.seen.rebuilds).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Failures, Owners};

    #[test]
    fn work_goes_on_after_the_switch_has_died_and_another_has_come() {
        let config = Config {
            rack: Owners::LARGE_SWITCH,
            operations: 400,
            failures: Failures {
                switch: 1,
                ..Failures::NONE
            },
            ..Config::default()
        };
        let mut used = false;
        for seed in 0..8 {
            let samples = World::timeline(seed, &config, 10_000).unwrap_or_else(|v| panic!("{v}"));
            let died = samples.iter().position(|s| s.died > 0).expect("it dies");
            used |= samples[..died].iter().any(|s| s.in_switch > 0);
            let without = samples.iter().find(|s| !s.switch).expect("it is noticed");
            let fresh = samples
                .iter()
                .find(|s| s.switch && s.epoch > without.epoch)
                .expect("another comes");
            let last = samples.last().expect("there are samples");
            assert!(without.operations <= fresh.operations && fresh.operations < last.operations);
            assert!(samples.windows(2).all(|w| w[0].time < w[1].time));
        }
        assert!(used, "no switch had anything before it died");
    }
}
