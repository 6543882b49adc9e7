//! A thread that accesses one block after the other, and what is measured of it. Which block is
//! next is for what [draws](Draws) it to say.

use super::layout::{Layout, Moves};
use super::node::ModelNode;
use super::program::{Goal, Next, Steps};
use super::{Outcome, Platform, System};
use crate::world::Random;
use rackmem_proto::engine::Then;

/// Entries of a set of the cache (§6).
const WAYS: u32 = 8;
/// The paper's epoch of the migration, in nanoseconds.
const PERIOD: u64 = 10_000_000;

/// Sizes of a rack whose threads access blocks.
pub(super) struct Sizes {
    /// Blocks that only one node accesses, of each node, and those that all do.
    pub blocks: (u32, u32),
    /// Blocks that a node's cache holds.
    pub cache: u32,
    /// Entries of each of the switch's ways.
    pub sets: usize,
    /// Every size and the migration's period are the paper's divided by this.
    pub scale: u32,
}

/// What such a rack has. Every node is the home of its part.
pub(super) fn layout(platform: &Platform, nodes: u16, sizes: Sizes) -> Layout {
    let moves = Moves {
        scale: sizes.scale,
        sets: sizes.sets,
        period: PERIOD / u64::from(sizes.scale),
    };
    let (private, shared) = sizes.blocks;
    let ways = match platform.fully_associative {
        true => sizes.cache,
        false => WAYS,
    };
    Layout {
        nodes,
        homes: (0, nodes),
        private,
        shared,
        cache: (sizes.cache, ways),
        locks: (0, 0),
        locks_stay: true,
        evicts_ahead: false,
        moves: (platform.system == System::Switch).then_some(moves),
    }
}

/// Says what a thread accesses next.
pub trait Draws {
    /// What all threads share.
    type Shared;

    /// The next operation.
    fn draw(&mut self, shared: &mut Self::Shared) -> Operation;
    /// Chance.
    fn random(&mut self) -> &mut Random;
}

/// One operation: an access to a block.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// To which.
    pub goal: Goal,
    /// What the thread's own work on it takes, in nanoseconds.
    pub look: u64,
    /// Whether it belongs to the pass that warms the caches.
    pub warms: bool,
}

/// What is measured of accesses.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct AccessFigures {
    /// Of the operations, without an event of their own.
    pub hits: u64,
    /// Events that an owner refused, to be tried again.
    pub refused: u64,
    /// Time from an operation's beginning to its end, in nanoseconds: mean.
    pub mean_wait: f64,
    /// The longest of any thread.
    pub longest_wait: u64,
}

impl Outcome<AccessFigures> {
    /// Of the operations, how many hit, from 0 to 1.
    pub fn hit_rate(&self) -> f64 {
        self.per_operation(self.of.hits)
    }
}

/// The figures of all threads; operations of the one that had fewest, by those of the one that had
/// most.
pub(super) fn figures(threads: impl Iterator<Item = Tally>) -> (AccessFigures, f64) {
    let tallies: Vec<Tally> = threads.collect();
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let most = |of: fn(&Tally) -> u64| tallies.iter().map(of).max().unwrap_or(0);
    let fewest = tallies.iter().map(|tally| tally.operations).min();
    let operations = sum(|tally| tally.operations).max(1);
    let figures = AccessFigures {
        hits: sum(|tally| tally.hits),
        refused: sum(|tally| tally.refused),
        mean_wait: sum(|tally| tally.waited) as f64 / operations as f64,
        longest_wait: most(|tally| tally.longest),
    };
    let most = most(|tally| tally.operations).max(1);
    (figures, fewest.unwrap_or(0) as f64 / most as f64)
}

/// What is counted of a thread's operations.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tally {
    operations: u64,
    hits: u64,
    /// Events that were refused.
    pub refused: u64,
    /// Time from the beginning of operations to their end, together and at most.
    waited: u64,
    longest: u64,
}

impl Tally {
    /// An operation ends that took so long.
    pub fn ends(&mut self, took: u64, missed: bool) {
        self.operations += 1;
        self.hits += u64::from(!missed);
        self.waited += took;
        self.longest = self.longest.max(took);
    }
}

/// A thread that accesses one block after the other.
pub struct Accessing<D> {
    draws: D,
    began: Option<u64>,
    pub(super) tally: Tally,
    ended: u64,
    warm: bool,
    stops: bool,
}

impl<D> Accessing<D> {
    /// One that has accessed nothing. Unless it is warm, its first pass is yet to come.
    pub fn new(draws: D, warm: bool) -> Self {
        Accessing {
            draws,
            began: None,
            tally: Tally::default(),
            ended: 0,
            warm,
            stops: false,
        }
    }
}

impl<D: Draws> Steps for Accessing<D> {
    type Shared = D::Shared;
    const FORGETS_REFUSALS: bool = true;

    fn next(&mut self, now: u64, missed: bool, _: &ModelNode, shared: &mut D::Shared) -> Next {
        if let Some(began) = self.began.take() {
            self.tally.ends(now - began, missed);
            self.ended += 1;
        }
        if self.stops {
            return Next::Stop;
        }
        let Operation { goal, look, warms } = self.draws.draw(shared);
        self.warm |= !warms;
        self.began = Some(now);
        Next::Access(goal, look)
    }

    fn refused(&mut self, _: Then) {
        self.tally.refused += 1;
    }

    fn random(&mut self) -> &mut Random {
        self.draws.random()
    }

    fn is_warm(&self) -> bool {
        self.warm
    }

    fn ended(&mut self) -> u64 {
        std::mem::take(&mut self.ended)
    }

    fn reset(&mut self) {
        self.tally = Tally::default();
    }

    fn stop(&mut self) {
        self.stops = true;
    }
}
