//! The micro benchmark of §7.2: threads access blocks, one after the other.

use super::layout::{Layout, Moves};
use super::node::ModelNode;
use super::program::{Goal, Next, Program, Steps};
use super::{Experiment, Outcome, Platform, System, Thread, Workload};
use crate::world::Random;
use rackmem_proto::engine::Then;
use rackmem_proto::wire::RequesterId;

/// The paper's footprint, in blocks of 4 KiB: 8 GB for 8 nodes, of which 250 MB shared;
/// 1 GB of cache a node.
const PAPER_WORKING_SET: u32 = 8 << 18;
const PAPER_NODES: u32 = 8;
const PAPER_SHARED: u32 = 64_000;
const PAPER_CACHE: u32 = 1 << 18;
/// Entries of a set of the cache (§6).
const WAYS: u32 = 8;
/// Entries of a way of the switch as it ships, for the paper's footprint.
const SWITCH_SETS: u32 = 32_768;
/// The paper's epoch of the migration, in nanoseconds.
const PERIOD: u64 = 10_000_000;

/// What is accessed, and how large everything is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Accesses {
    /// Percent of operations on data that all nodes share.
    pub sharing: u8,
    /// Percent of operations on the block of the one before.
    pub locality: u8,
    /// How often the switch's entries are halved: some racks have more hot blocks than their switch
    /// has room for.
    pub halvings: u32,
    /// Every size and the migration's period are the paper's divided by this.
    pub scale: u32,
}

impl Default for Accesses {
    /// The paper's, scaled by 1/32.
    fn default() -> Self {
        Accesses {
            sharing: 0,
            locality: 0,
            halvings: 0,
            scale: 32,
        }
    }
}

impl Accesses {
    /// Blocks that only one node accesses, of each node. The footprint of a node does not depend on
    /// how many there are.
    pub fn private(&self) -> u32 {
        (PAPER_WORKING_SET - PAPER_SHARED) / PAPER_NODES / self.scale
    }

    /// Blocks that all nodes access.
    pub fn shared(&self) -> u32 {
        PAPER_SHARED / self.scale
    }

    /// Blocks that a node's cache holds.
    pub fn cache(&self) -> u32 {
        PAPER_CACHE / self.scale
    }

    /// Entries of each of the switch's ways.
    pub fn switch_sets(&self) -> usize {
        (SWITCH_SETS / self.scale) as usize >> self.halvings.min(SWITCH_SETS.ilog2())
    }
}

impl Default for Workload<Accesses> {
    /// The paper's.
    fn default() -> Self {
        Workload {
            nodes: 8,
            threads: 4,
            reads: 50,
            program: Accesses::default(),
        }
    }
}

impl Workload<Accesses> {
    /// The same on so much shared data.
    pub fn sharing(mut self, percent: u8) -> Self {
        self.program.sharing = percent;
        self
    }
}

impl Experiment<Accesses> {
    /// A system under a workload, with its own costs, long enough for figures to settle:
    /// blocks that were read first and are written much later are upgraded once,
    /// and that must be over.
    pub fn new(system: System, workload: Workload<Accesses>, seed: u64) -> Self {
        let blocks = u64::from(workload.program.cache()) * u64::from(workload.nodes);
        let cached = system != System::Delegate;
        Experiment {
            platform: system.platform(),
            workload,
            warm_up: if cached { 8 * blocks } else { 0 },
            measured: if cached { 2 * blocks } else { blocks },
            seed,
        }
    }
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

impl Program for Accesses {
    type Thread = Accessing;
    type Figures = AccessFigures;
    const COUNTS_ENDING: bool = true;

    fn layout(platform: &Platform, workload: &Workload<Self>) -> Layout {
        let Workload { nodes, program, .. } = *workload;
        let ways = match platform.fully_associative {
            true => program.cache(),
            false => WAYS,
        };
        let moves = Moves {
            scale: program.scale,
            sets: program.switch_sets(),
            period: PERIOD / u64::from(program.scale),
        };
        Layout {
            nodes,
            homes: (0, nodes),
            private: program.private(),
            shared: program.shared(),
            cache: (program.cache(), ways),
            locks: (0, 0),
            locks_stay: true,
            moves: (platform.system == System::Switch).then_some(moves),
        }
    }

    fn shared(_: &Workload<Self>, _: &Layout) {}

    fn thread(
        platform: &Platform,
        workload: &Workload<Self>,
        id: RequesterId,
        random: Random,
    ) -> Accessing {
        let (hit, cold) = (platform.costs.hit, platform.costs.cold);
        Accessing {
            stream: Stream::new(*workload, id, random),
            costs: (hit, cold),
            began: None,
            tally: Tally::default(),
            ended: 0,
            warm: false,
            stops: false,
        }
    }

    fn figures<'t>(nodes: impl Iterator<Item = &'t [Thread<Accessing>]>) -> (AccessFigures, f64) {
        let tallies: Vec<Tally> = nodes.flatten().map(|t| t.program.tally).collect();
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
}

#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    operations: u64,
    hits: u64,
    refused: u64,
    /// Time from the beginning of operations to their end, together and at most.
    waited: u64,
    longest: u64,
}

/// A thread that accesses one block after the other.
pub struct Accessing {
    stream: Stream,
    costs: (u64, u64),
    began: Option<u64>,
    tally: Tally,
    ended: u64,
    warm: bool,
    stops: bool,
}

impl Steps for Accessing {
    type Shared = ();
    const FORGETS_REFUSALS: bool = true;

    fn next(&mut self, now: u64, missed: bool, _: &ModelNode, (): &mut ()) -> Next {
        if let Some(began) = self.began.take() {
            let tally = &mut self.tally;
            tally.operations += 1;
            tally.hits += u64::from(!missed);
            tally.waited += now - began;
            tally.longest = tally.longest.max(now - began);
            self.ended += 1;
        }
        if self.stops {
            return Next::Stop;
        }
        let Operation { goal, cold, warms } = self.stream.draw();
        self.warm |= !warms;
        self.began = Some(now);
        Next::Access(goal, if cold { self.costs.1 } else { self.costs.0 })
    }

    fn refused(&mut self, _: Then) {
        self.tally.refused += 1;
    }

    fn random(&mut self) -> &mut Random {
        &mut self.stream.random
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

/// One operation: an access to eight bytes of a block.
#[derive(Clone, Copy, Debug)]
struct Operation {
    goal: Goal,
    /// Whether it is on another block than the operation before.
    cold: bool,
    /// Whether it belongs to the pass that warms the caches.
    warms: bool,
}

/// A thread's operations.
struct Stream {
    workload: Workload<Accesses>,
    random: Random,
    last: Option<u32>,
    warm: Warm,
}

/// A first pass, so that caches are full soon: a thread's part of the shared blocks,
/// then its part of its node's.
struct Warm {
    shared: u32,
    shared_step: u32,
    private: u32,
    private_step: u32,
}

impl Stream {
    fn new(workload: Workload<Accesses>, id: RequesterId, random: Random) -> Self {
        let threads = u32::from(workload.threads);
        let first = u32::from(id.node) * threads + u32::from(id.slot);
        let skips = workload.program.sharing == 0;
        Stream {
            workload,
            random,
            last: None,
            warm: Warm {
                shared: if skips {
                    workload.program.shared()
                } else {
                    first
                },
                shared_step: u32::from(workload.nodes) * threads,
                private: id.slot.into(),
                private_step: threads,
            },
        }
    }

    fn draw(&mut self) -> Operation {
        let (block, warms) = match self.warm.next(&self.workload.program) {
            Some(block) => (block, true),
            None => (self.any(), false),
        };
        let cold = self.last != Some(block);
        self.last = Some(block);
        let writes = !self.percent(self.workload.reads);
        Operation {
            goal: Goal { block, writes },
            cold,
            warms,
        }
    }

    fn any(&mut self) -> u32 {
        let program = self.workload.program;
        let stays = self.percent(program.locality);
        if let Some(last) = self.last
            && stays
        {
            return last;
        }
        let (private, shared) = (program.private(), program.shared());
        if self.percent(program.sharing) {
            private + self.random.below(shared.into()) as u32
        } else {
            self.random.below(private.into()) as u32
        }
    }

    fn percent(&mut self, percent: u8) -> bool {
        self.random.per_mille(u32::from(percent) * 10)
    }
}

impl Warm {
    fn next(&mut self, of: &Accesses) -> Option<u32> {
        if self.shared < of.shared() {
            let block = of.private() + self.shared;
            self.shared += self.shared_step;
            return Some(block);
        }
        if of.sharing < 100 && self.private < of.private() {
            let block = self.private;
            self.private += self.private_step;
            return Some(block);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_keep_their_proportions() {
        let workload = Workload {
            reads: 70,
            program: Accesses {
                sharing: 20,
                locality: 40,
                scale: 256,
                ..Accesses::default()
            },
            ..Workload::default()
        };
        let id = RequesterId { node: 0, slot: 0 };
        let mut stream = Stream::new(workload, id, Random::new(1));
        while stream.draw().warms {}
        let drawn: Vec<Operation> = (0..100_000).map(|_| stream.draw()).collect();
        let share = |f: fn(&Operation) -> bool| {
            drawn.iter().filter(|operation| f(operation)).count() as f64 / 1e5
        };
        assert!((share(|o| !o.goal.writes) - 0.7).abs() < 0.01);
        assert!((share(|o| !o.cold) - 0.4).abs() < 0.02);
        let private = workload.program.private();
        let shared = drawn.iter().filter(|o| o.goal.block >= private);
        assert!((shared.count() as f64 / 1e5 - 0.2).abs() < 0.01);
    }
}
