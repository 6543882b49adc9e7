//! The key-value store of Concordia's §7.3: buckets in coherent memory, keys as popular as Zipf's
//! law has it.
//!
//! An operation is what the text says, "a series of DSM calls": to lock the key's bucket, to read
//! or write the pair, to unlock. A bucket's lock is its block, as GAM's is: who reads holds a copy,
//! who writes owns it. So the three calls are one access and two looks at a block that is there.
//! Over delegation the operation is one question to the home of the key.

use super::accesses::SWITCH_SETS;
use super::accessing::{self, AccessFigures, Accessing, Draws, Operation, Sizes};
use super::draw::Chances;
use super::layout::Layout;
use super::program::{Goal, Program};
use super::{Agents, BLOCK, Experiment, Platform, System, Thread, Workload};
use crate::world::Random;
use rackmem_proto::wire::RequesterId;

/// The paper's keys, each with its value: so many bytes.
const PAPER_KEYS: u32 = 64 << 20;
const PAIR: u32 = 8 + 128;
/// The paper's cache, in blocks: 2 GB a node.
pub(super) const PAPER_CACHE: u32 = 2 << 18;
/// The paper's skew.
const THETA: f64 = 0.99;
/// Calls after the one that locks: the pair, and the unlock.
const MORE_CALLS: u64 = 2;
/// Operations that a core of Grappa has under way where it has tasks to hide latency: so many that
/// cores never wait.
const TASKS: u16 = 64;
/// Operations of each task before the measurement.
const WAITS: u64 = 64;

/// How large the store is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Keys {
    /// Every size and the migration's period are the paper's divided by this.
    pub scale: u32,
}

impl Keys {
    /// Keys.
    pub fn keys(&self) -> u32 {
        PAPER_KEYS / self.scale
    }

    /// Blocks that the keys are in.
    pub fn blocks(&self) -> u32 {
        self.keys().div_ceil(BLOCK / PAIR)
    }

    /// Blocks that a node's cache holds.
    pub fn cache(&self) -> u32 {
        PAPER_CACHE / self.scale
    }

    /// Entries of each of the switch's ways.
    pub fn switch_sets(&self) -> usize {
        (SWITCH_SETS / self.scale) as usize
    }
}

impl Experiment<Keys> {
    /// A system under a workload, with its own costs, long enough for its caches to fill.
    pub fn store(system: System, workload: Workload<Keys>, seed: u64) -> Self {
        let blocks = u64::from(workload.program.cache()) * u64::from(workload.nodes);
        let cached = system != System::Delegate;
        Experiment {
            platform: system.platform(),
            workload,
            warm_up: if cached { 8 * blocks } else { blocks },
            measured: 2 * blocks,
            seed,
        }
    }

    /// The same over delegation with many tasks a thread: each of the workload's threads is a core
    /// that serves its part of the keys, and sends and takes what its own tasks ask, one after the
    /// other.
    pub fn with_tasks(mut self) -> Self {
        self.platform.agents = Agents::Owners(self.workload.threads);
        self.platform.through_agents = true;
        self.workload.threads *= TASKS;
        // Until as many wait for the core that has the most popular key as will.
        let all = u64::from(self.workload.threads) * u64::from(self.workload.nodes);
        self.warm_up = self.warm_up.max(WAITS * all);
        self
    }
}

impl Program for Keys {
    type Thread = Accessing<Popular>;
    type Figures = AccessFigures;
    const COUNTS_ENDING: bool = true;

    fn layout(platform: &Platform, workload: &Workload<Self>) -> Layout {
        let program = workload.program;
        let sizes = Sizes {
            blocks: (0, program.blocks()),
            cache: program.cache(),
            sets: program.switch_sets(),
            scale: program.scale,
        };
        accessing::layout(platform, workload.nodes, sizes)
    }

    fn shared(workload: &Workload<Self>, _: &Layout) -> Chances {
        let program = workload.program;
        Chances::new(program.blocks(), program.keys(), THETA)
    }

    fn thread(
        platform: &Platform,
        workload: &Workload<Self>,
        _: RequesterId,
        random: Random,
    ) -> Accessing<Popular> {
        let popular = Popular {
            reads: workload.reads,
            look: platform.costs.cold + MORE_CALLS * platform.costs.hit,
            random,
        };
        Accessing::new(popular, true)
    }

    fn figures<'t>(
        nodes: impl Iterator<Item = &'t [Thread<Accessing<Popular>>]>,
    ) -> (AccessFigures, f64) {
        accessing::figures(nodes.flatten().map(|thread| thread.program.tally))
    }
}

/// Draws the blocks of popular keys.
pub struct Popular {
    reads: u8,
    look: u64,
    random: Random,
}

impl Draws for Popular {
    type Shared = Chances;

    fn draw(&mut self, chances: &mut Chances) -> Operation {
        Operation {
            goal: Goal {
                block: chances.draw(&mut self.random),
                writes: !self.random.per_mille(u32::from(self.reads) * 10),
            },
            look: self.look,
            warms: false,
        }
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
    }
}
