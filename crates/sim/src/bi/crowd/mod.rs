//! Seeded worlds of many members that read and write the items of a home, in virtual time, over a
//! network that loses, doubles and delays, with members that sleep, die and come back, while epochs
//! begin at one node after the other.
//!
//! The shipped values run at every node ([`rackmem_proto::bi::cached`]), as in the explorer's small
//! racks ([`super::cached`]). What threads were told is a history, and the
//! [judge of ages](crate::staleness) says whether all of it was current within the bound; nothing
//! in here knows what it should be.

mod member;
mod world;

use crate::history::Operation;
use crate::staleness::{AgePromise, Ages, NoVerdict, check};
use crate::world::Random;
use rackmem_proto::bi::cached::{Defect, MEMBER_BOUND};

/// What a world is made of. Rates are in a thousand; times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrowdConfig {
    /// Members; the first one is the home, too.
    pub nodes: u16,
    /// Of each member.
    pub threads: u8,
    /// Items of the region.
    pub items: u32,
    /// Of each thread.
    pub operations: u32,
    /// How many of them are writes.
    pub writes: u32,
    /// Packets that are lost.
    pub loss: u32,
    /// Packets that come twice.
    pub doubled: u32,
    /// Packets that are under way for several ticks.
    pub late: u32,
    /// Steps of a member after which it sleeps, for a part of the bound or several.
    pub sleeps: u32,
    /// Steps of a thread after which its member dies, but for the home. It comes back with nothing.
    pub deaths: u32,
    /// Writes that the home remembers.
    pub remembered: usize,
    /// Items that its news name, and bytes of them that are items and values.
    pub told: (usize, usize),
    /// A tick.
    pub tick: u64,
    /// A rule that is broken.
    pub broken: Option<Defect>,
}

impl CrowdConfig {
    /// The world of a seed: 8 to 32 members.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xb1);
        let mut one = |all: &[u32]| all[random.below(all.len() as u64) as usize];
        CrowdConfig {
            nodes: one(&[8, 9, 12, 16, 24, 32]) as u16,
            threads: one(&[1, 2, 3]) as u8,
            items: one(&[1, 3, 16, 200]),
            operations: 120,
            writes: one(&[10, 50, 300]),
            loss: one(&[0, 10, 100]),
            doubled: one(&[0, 10, 100]),
            late: one(&[0, 20, 100]),
            sleeps: one(&[0, 1, 10]),
            remembered: one(&[4, 64, 4096]) as usize,
            told: (one(&[1, 8, 256]) as usize, one(&[0, 100, 3072]) as usize),
            tick: 500_000,
            deaths: one(&[0, 0, 1, 5]),
            broken: None,
        }
    }

    /// What is promised there.
    pub fn promise(&self) -> AgePromise {
        let bound = MEMBER_BOUND;
        AgePromise {
            bound: bound.ticks() * self.tick,
            section: Some(bound.section * self.tick),
            onward: true,
        }
    }
}

/// What became of a world.
#[derive(Clone, Debug, Default)]
pub struct CrowdReport {
    /// What its threads asked for, and were told.
    pub history: Vec<Operation>,
    /// Packets that were sent.
    pub packets: u64,
    /// Reads of a copy that was there.
    pub hits: u64,
    /// Reads that were refused, for what they had was too old.
    pub refused: u64,
    /// Times that a member had to drop everything.
    pub everything: u64,
    /// Times that a member slept.
    pub slept: u64,
    /// Times that a member died.
    pub died: u64,
}

/// Why a world is no good.
#[derive(Clone, Debug)]
pub enum CrowdFailure {
    /// Not all operations have ended.
    NeverEnds,
    /// The judge's.
    Judged(NoVerdict),
}

impl std::fmt::Display for CrowdFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CrowdFailure::NeverEnds => f.write_str("operations never end"),
            CrowdFailure::Judged(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for CrowdFailure {}

/// Runs the world of a seed, and judges it.
///
/// # Errors
/// [`CrowdFailure`].
pub fn run(seed: u64, config: &CrowdConfig) -> Result<(CrowdReport, Ages), CrowdFailure> {
    let report = world::World::new(seed, config).run();
    let report = report.ok_or(CrowdFailure::NeverEnds)?;
    let ages = check(&report.history, config.promise()).map_err(CrowdFailure::Judged)?;
    Ok((report, ages))
}
