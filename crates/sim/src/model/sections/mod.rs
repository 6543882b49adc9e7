//! Critical sections (Soul, §5): threads think, acquire a lock, access all of its data,
//! and release it, again and again.
//!
//! As in Soul's rack a memory blade, the last node, is the home of everything and runs no threads.

mod acting;
mod figures;
mod locks;
mod memory;

pub use acting::Acting;
pub use figures::SectionFigures;
pub use memory::Memory;

use super::layout::Layout;
use super::program::Program;
use super::{BLOCK, Experiment, Platform, Thread, Workload};
use crate::world::Random;
use rackmem_baselines::locks::{Algorithm, Shape};
use rackmem_proto::wire::RequesterId;

/// What protects the data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheme {
    /// GCP: the data travels with the lock, and both stay where they were used last.
    Gcp,
    /// GCP, but the data comes by coherence after the lock (§5.3).
    Separate,
    /// GCP, but the lock and its data go back to the memory blade after each critical section
    /// (§5.3).
    Evicted,
    /// A lock above coherent memory, or a service of locks.
    Compared(Algorithm),
}

impl Scheme {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Scheme> {
        let ours = [Scheme::Gcp, Scheme::Separate, Scheme::Evicted];
        let compared = Algorithm::ALL.map(|row| Scheme::Compared(row.0));
        ours.into_iter().chain(compared)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Gcp => "gcp",
            Scheme::Separate => "gcp-separate-data",
            Scheme::Evicted => "gcp-no-locality",
            Scheme::Compared(algorithm) => algorithm.name(),
        }
    }

    /// The lock above coherent memory.
    pub fn compared(self) -> Option<Algorithm> {
        match self {
            Scheme::Compared(algorithm) => Some(algorithm),
            _ => None,
        }
    }

    /// Whether the lock brings the data along.
    pub fn combines(self) -> bool {
        matches!(self, Scheme::Gcp | Scheme::Evicted)
    }
}

/// Which locks, and how they are used.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sections {
    /// What protects the data.
    pub scheme: Scheme,
    /// Locks, each with `groups` times `pages` blocks of data.
    pub locks: u32,
    /// Groups of blocks of a lock. A section draws one of them.
    pub groups: u32,
    /// Blocks of a group. A section accesses each, one after the other. Where the lock brings the
    /// data along there is one group of one block.
    pub pages: u32,
    /// Time of a section beside its accesses, in nanoseconds.
    pub work: u64,
    /// Keys, drawn by Zipf's law and spread over the locks; with as many as there are locks,
    /// each has one.
    pub keys: u32,
    /// The law's exponent; 0 for keys that are equally popular.
    pub theta: f64,
    /// Time of an operation outside of its critical section, in nanoseconds.
    pub think: u64,
}

/// Buckets of the store, which the paper does not tell.
const BUCKETS: u32 = 1024;
/// Keys of the store, likewise.
const KEYS: u32 = 100_000;
/// Of the 80 threads' 37.1 Mops of YCSB-C (§5.1), where everything is at hand,
/// what is not locking or the data.
const THINK: u64 =
    80_000 * 10 / 371 - 2 * Platform::ETHERNET.costs.hit - Platform::ETHERNET.costs.touch;

/// Blocks that a transaction writes of its warehouse, which the paper does not tell.
const TRANSACTION_PAGES: u32 = 16;
/// What a transaction takes beside them, likewise.
const TRANSACTION_WORK: u64 = 20_000;

impl Sections {
    /// Blocks of the data of each lock.
    fn blocks_of_data(&self) -> u32 {
        self.groups * self.pages
    }
}

impl Workload<Sections> {
    /// §5.2: a thread a blade, one lock over 4 KiB, no pause.
    pub fn contended(scheme: Scheme, nodes: u16, reads: u8) -> Self {
        Workload {
            nodes,
            threads: 1,
            reads,
            program: Sections {
                scheme,
                locks: 1,
                groups: 1,
                pages: 1,
                work: 0,
                keys: 1,
                theta: 0.0,
                think: 0,
            },
        }
    }

    /// §5.1, MIND-KVS: ten threads a blade, a lock over each bucket's first 4 KiB, YCSB's keys.
    pub fn store(scheme: Scheme, nodes: u16, reads: u8) -> Self {
        Workload {
            nodes,
            threads: 10,
            reads,
            program: Sections {
                scheme,
                locks: BUCKETS,
                groups: 1,
                pages: 1,
                work: 0,
                keys: KEYS,
                theta: 0.99,
                think: THINK,
            },
        }
    }

    /// §5.1, Kyoto Cabinet with TPC-C: ten threads a blade, one lock that all transactions hold
    /// alone, a group of blocks for each warehouse.
    pub fn database(scheme: Scheme, nodes: u16, warehouses: u32) -> Self {
        Workload {
            nodes,
            threads: 10,
            reads: 0,
            program: Sections {
                scheme,
                locks: 1,
                groups: warehouses,
                pages: TRANSACTION_PAGES,
                work: TRANSACTION_WORK,
                keys: 1,
                theta: 0.0,
                think: 0,
            },
        }
    }

    /// Blocks of the data of all locks.
    fn data_blocks(&self) -> u32 {
        self.program.locks * self.program.blocks_of_data()
    }

    /// Blocks that the words of each lock need.
    fn blocks_each(&self) -> u32 {
        let compared = self.program.scheme.compared();
        let shape = Shape::new(self.nodes, self.threads);
        let blocks = compared.zip(shape).map(|(lock, shape)| lock.blocks(shape));
        blocks.map_or(0, u32::from)
    }
}

impl Experiment<Sections> {
    /// Long enough for figures to settle.
    pub fn new(platform: Platform, workload: Workload<Sections>, seed: u64) -> Self {
        let each = match (workload.program.locks, workload.program.pages) {
            (1, 1) => 10_000,
            (1, _) => 4_000,
            _ => 50_000,
        };
        Experiment {
            platform,
            workload,
            warm_up: each / 2,
            measured: each,
            seed,
        }
    }
}

impl Program for Sections {
    type Thread = Acting;
    type Figures = SectionFigures;
    const COUNTS_ENDING: bool = false;

    fn layout(_: &Platform, workload: &Workload<Self>) -> Layout {
        let Workload { nodes, program, .. } = *workload;
        let Sections { scheme, locks, .. } = program;
        // The data of all locks, and then their words.
        let blocks = workload.data_blocks() + locks * workload.blocks_each();
        let of_gcp = scheme.compared().map_or(locks, |_| 0);
        let len = if scheme.combines() { BLOCK } else { 0 };
        Layout {
            nodes: nodes + 1,
            homes: (nodes, 1),
            private: 0,
            shared: blocks,
            // Nothing is evicted.
            cache: (blocks, blocks),
            locks: (of_gcp, len),
            locks_stay: scheme != Scheme::Evicted,
            evicts_ahead: false,
            moves: None,
        }
    }

    fn shared(workload: &Workload<Self>, layout: &Layout) -> Memory {
        Memory::new(&workload.program, *layout)
    }

    fn thread(
        platform: &Platform,
        workload: &Workload<Self>,
        id: RequesterId,
        random: Random,
    ) -> Acting {
        Acting::new(platform.costs, *workload, id, random)
    }

    fn figures<'t>(nodes: impl Iterator<Item = &'t [Thread<Acting>]>) -> (SectionFigures, f64) {
        let mut figures = SectionFigures::default();
        let (mut least, mut most) = (u64::MAX, 0);
        for threads in nodes {
            let of_threads = threads.iter().map(|thread| &thread.program.figures);
            let mut acquisitions = 0;
            for of_thread in of_threads {
                acquisitions += of_thread.latencies.len() as u64;
                figures.add(of_thread);
            }
            (least, most) = (least.min(acquisitions), most.max(acquisitions));
        }
        figures.latencies.sort_unstable();
        (figures, least as f64 / most.max(1) as f64)
    }
}
