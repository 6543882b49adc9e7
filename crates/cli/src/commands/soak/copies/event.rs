//! What is done to the rack while its lines are used.

use super::Soak;
use crate::failure::Result;
use crate::stop::Stop;
use clap::ValueEnum;
use rackmem::Durability;
use std::time::Duration;

/// A defect that is planted, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Planted {
    /// A process that has forgotten its copy counts at once, without a fill
    Forgetful,
    /// All nodes are killed, and their stores are as they were some time before
    Rollback,
}

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Killed {
    /// Any node, and what else is done to regions with copies
    Any,
    /// The node that serves the region
    Homes,
}

/// Something that is done, and how long it lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// SIGKILL to a node, which starts again after this time.
    Kill(usize, Duration),
    /// SIGSTOP to a node, and SIGCONT after this time.
    Pause(usize, Duration),
    /// A live member's copies are given to another node.
    Replace(u16, u16),
    /// SIGKILL to the switch, which starts again after this time.
    Switch(Duration),
    /// The region is to have so many copies.
    Grow(u8),
    /// A defect: two members are killed, and count when they start again, though they have
    /// forgotten.
    Forget(u16, u16),
    /// SIGKILL to all nodes at once, which start again.
    All,
}

impl Event {
    pub fn name(&self) -> &'static str {
        match self {
            Event::Kill(..) => "killed",
            Event::Pause(..) => "paused",
            Event::Replace(..) => "replaced",
            Event::Switch(_) => "switch restarts",
            Event::Grow(_) => "grown",
            Event::Forget(..) => "made to forget",
            Event::All => "all killed",
        }
    }

    /// Who it is done to.
    pub fn victims(&self) -> Vec<String> {
        match self {
            Event::Kill(node, time) | Event::Pause(node, time) => {
                vec![format!("node {node} for {} ms", time.as_millis())]
            }
            Event::Replace(old, new) => vec![format!("node {old} by node {new}")],
            Event::Switch(time) => vec![format!("switch for {} ms", time.as_millis())],
            Event::Grow(copies) => vec![format!("to {copies} copies")],
            Event::Forget(one, other) => vec![format!("nodes {one} and {other}")],
            Event::All => vec!["every node that may die".into()],
        }
    }
}

impl Soak {
    /// The next event: it grows, then one of each kind, so that a short run has them all. None:
    /// there is nobody to do it to.
    pub(super) fn next(&mut self, number: u64) -> Option<Event> {
        let random = &mut self.random;
        let time = |random: &mut fastrand::Rng| Duration::from_millis(random.u64(..2500));
        if let Some(planted) = self.planted {
            let members = self.rack.members().ok()?;
            return Some(match planted {
                Planted::Rollback => Event::All,
                // Readers repair one that has forgotten: of three copies, two have to.
                Planted::Forgetful => {
                    let nth =
                        |nth: u64| members.get((number + nth) as usize % members.len().max(1));
                    Event::Forget(*nth(0)?, *nth(1)?)
                }
            });
        }
        if self.objects == Some(Killed::Homes) {
            let time = time(random);
            return Some(Event::Kill(self.rack.keeper()?, time));
        }
        let grows = self.copies > 1 && self.objects.is_none();
        // It begins with two copies less than are asked for; one copy survives nothing.
        if number == 0 && grows {
            return Some(Event::Grow(self.copies));
        }
        let (number, kinds) = (number - u64::from(grows), 5);
        let kind = match number {
            0..5 => number,
            _ => random.u64(..kinds),
        };
        Some(match kind {
            1 => Event::Pause(random.usize(..self.rack.mortal), time(random)),
            2 => self.rack.replacement(random)?,
            3 if self.rack.switch => Event::Switch(time(random)),
            4 if self.durability != Durability::Memory => Event::All,
            _ => Event::Kill(random.usize(..self.rack.mortal), time(random)),
        })
    }

    /// Does it, while nodes go on. `false` when told to stop.
    pub(super) fn carry_out(&mut self, event: &Event, stop: &Stop) -> Result<bool> {
        match *event {
            Event::Kill(node, time) => {
                self.rack.kill(false, &[node]);
                Ok(self.sleep(time, stop) && self.rack.restart(false, &[node], stop)?)
            }
            Event::Forget(one, other) => {
                let both = [one, other].map(usize::from);
                self.rack.kill(false, &both);
                if !self.rack.restart(false, &both, stop)? {
                    return Ok(false);
                }
                self.rack.count_forgetful(&[one, other])?;
                Ok(true)
            }
            Event::Pause(node, time) => {
                let paused = self.rack.pause(node, time)?;
                let goes_on = self.sleep(time, stop);
                drop(paused);
                Ok(goes_on)
            }
            Event::Replace(old, new) => {
                self.rack.replace(old, new)?;
                Ok(true)
            }
            Event::Grow(copies) => {
                self.rack.grow(copies)?;
                Ok(true)
            }
            Event::Switch(time) => {
                self.rack.kill(true, &[]);
                Ok(self.sleep(time, stop) && self.rack.restart(true, &[], stop)?)
            }
            Event::All => {
                let rolls_back = self.planted == Some(Planted::Rollback);
                if rolls_back {
                    self.rack.keep_stores()?;
                    if !self.sleep(Duration::from_secs(1), stop) {
                        return Ok(false);
                    }
                }
                let all: Vec<usize> = (0..self.rack.mortal).collect();
                self.rack.kill(false, &all);
                if rolls_back {
                    self.rack.roll_back()?;
                }
                self.rack.restart(false, &all, stop)
            }
        }
    }
}
