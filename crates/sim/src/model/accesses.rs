//! The micro benchmark of §7.2: threads access blocks, one after the other.

use super::accessing::{self, AccessFigures, Accessing, Draws, Operation, Sizes};
use super::layout::Layout;
use super::program::{Goal, Program};
use super::{Experiment, Platform, System, Thread, Workload};
use crate::world::Random;
use rackmem_proto::wire::RequesterId;

/// The paper's footprint, in blocks of 4 KiB: 8 GB for 8 nodes, of which 250 MB shared;
/// 1 GB of cache a node.
const PAPER_WORKING_SET: u32 = 8 << 18;
const PAPER_NODES: u32 = 8;
const PAPER_SHARED: u32 = 64_000;
const PAPER_CACHE: u32 = 1 << 18;
/// Entries of a way of the switch as it ships, for the paper's footprint.
pub(super) const SWITCH_SETS: u32 = 32_768;

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
    /// How often the caches are.
    pub cache_halvings: u32,
    /// Every size and the migration's period are the paper's divided by this.
    pub scale: u32,
    /// Blocks leave full sets beside misses, so that the next ones find room.
    pub evicts_ahead: bool,
}

impl Default for Accesses {
    /// The paper's, scaled by 1/32.
    fn default() -> Self {
        Accesses {
            sharing: 0,
            locality: 0,
            halvings: 0,
            cache_halvings: 0,
            scale: 32,
            evicts_ahead: false,
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
        (PAPER_CACHE / self.scale) >> self.cache_halvings
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

impl Program for Accesses {
    type Thread = Accessing<Stream>;
    type Figures = AccessFigures;
    const COUNTS_ENDING: bool = true;

    fn layout(platform: &Platform, workload: &Workload<Self>) -> Layout {
        let program = workload.program;
        let sizes = Sizes {
            blocks: (program.private(), program.shared()),
            cache: program.cache(),
            sets: program.switch_sets(),
            scale: program.scale,
        };
        Layout {
            evicts_ahead: program.evicts_ahead,
            ..accessing::layout(platform, workload.nodes, sizes)
        }
    }

    fn shared(_: &Workload<Self>, _: &Layout) {}

    fn thread(
        platform: &Platform,
        workload: &Workload<Self>,
        id: RequesterId,
        random: Random,
    ) -> Accessing<Stream> {
        let costs = (platform.costs.hit, platform.costs.cold);
        Accessing::new(Stream::new(*workload, costs, id, random), false)
    }

    fn figures<'t>(
        nodes: impl Iterator<Item = &'t [Thread<Accessing<Stream>>]>,
    ) -> (AccessFigures, f64) {
        accessing::figures(nodes.flatten().map(|thread| thread.program.tally))
    }
}

/// A thread's operations.
pub struct Stream {
    workload: Workload<Accesses>,
    /// A look at the block of the operation before, and at any other.
    costs: (u64, u64),
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
    fn new(
        workload: Workload<Accesses>,
        costs: (u64, u64),
        id: RequesterId,
        random: Random,
    ) -> Self {
        let threads = u32::from(workload.threads);
        let first = u32::from(id.node) * threads + u32::from(id.slot);
        let skips = workload.program.sharing == 0;
        Stream {
            workload,
            costs,
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

impl Draws for Stream {
    type Shared = ();

    fn draw(&mut self, (): &mut ()) -> Operation {
        let (block, warms) = match self.warm.next(&self.workload.program) {
            Some(block) => (block, true),
            None => (self.any(), false),
        };
        let cold = self.last != Some(block);
        self.last = Some(block);
        let writes = !self.percent(self.workload.reads);
        Operation {
            goal: Goal { block, writes },
            look: if cold { self.costs.1 } else { self.costs.0 },
            warms,
        }
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
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
        let mut stream = Stream::new(workload, (1, 2), id, Random::new(1));
        while stream.draw(&mut ()).warms {}
        let drawn: Vec<Operation> = (0..100_000).map(|_| stream.draw(&mut ())).collect();
        let share = |f: fn(&Operation) -> bool| {
            drawn.iter().filter(|operation| f(operation)).count() as f64 / 1e5
        };
        assert!((share(|o| !o.goal.writes) - 0.7).abs() < 0.01);
        assert!((share(|o| o.look == 1) - 0.4).abs() < 0.02);
        let private = workload.program.private();
        let shared = drawn.iter().filter(|o| o.goal.block >= private);
        assert!((shared.count() as f64 / 1e5 - 0.2).abs() < 0.01);
    }
}
