//! What the model assumes of the hardware, of the programs, and of those who use locks. `docs/simulation.md` says where each
//! number comes from.

use crate::model::Network;
use rackmem_baselines::locks::Algorithm;
use rackmem_proto::wire::Kind;

/// What work costs on a platform, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// An operation on a lock or a word that is in the node's memory: a few of the processor's own cache misses.
    pub hit: u64,
    /// To read or to write the data of a lock that is in the node's memory.
    pub touch: u64,
    /// From a program into whatever asks the network: a page fault.
    pub trap: u64,
    /// Back into the program when what it waited for is there.
    pub wake: u64,
    /// To take a message of full weight and act on it; half of it where there is only bookkeeping to do.
    pub handle: u64,
    /// To send a packet.
    pub send: u64,
}

impl Costs {
    /// What taking a packet costs: requests, and what makes a node give up a lock or a copy, have full weight.
    pub fn message(&self, kind: Kind) -> u64 {
        let full = kind.is_request()
            || matches!(
                kind,
                Kind::Acquire
                    | Kind::Release
                    | Kind::Wait
                    | Kind::Invalidate
                    | Kind::Grant
                    | Kind::GuestAsk
            );
        if full { self.handle } else { self.handle / 2 }
    }
}

/// Hardware and programs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Platform {
    /// Its name.
    pub name: &'static str,
    /// The network between blades.
    pub network: Network,
    /// What work costs.
    pub costs: Costs,
    /// Directories are in the switch; otherwise at the memory blade.
    pub switch: bool,
    /// That of blocks is at the memory blade in any case, and what a blade has changed goes by way of it.
    pub gathers: bool,
}

impl Platform {
    /// Soul's (§5): 100 Gb/s adapters, a Tofino, page faults. The network and what messages cost are those that the model of
    /// Concordia was calibrated with; `trap` and `wake` make a transaction last 7.5 µs, the middle of the 5–10 µs of §1.
    pub const ETHERNET: Platform = Platform {
        name: "ethernet",
        network: Network {
            gigabits: 100.0,
            wire: 400,
            switch: 500,
            local: 100,
        },
        costs: Costs {
            hit: 100,
            touch: 400,
            trap: 1_470,
            wake: 1_470,
            handle: 650,
            send: 325,
        },
        switch: true,
        gathers: false,
    };

    /// The same above a substrate as the paper draws it (Fig. 1): a blade that has changed a block gives it to the directory, which gives it to
    /// whoever asked. `trap` and `wake` make that last 10 µs; what nobody has changed then takes 5.5.
    pub const GATHERED: Platform = Platform {
        name: "ethernet-gathered",
        costs: Costs {
            trap: 470,
            wake: 470,
            ..Self::ETHERNET.costs
        },
        gathers: true,
        ..Self::ETHERNET
    };

    /// GCP in hardware (§6): 300 ns from a request to its answer, directories at the memory devices; PCIe 6.0's bandwidth.
    pub const CXL: Platform = Platform {
        name: "cxl",
        network: Network {
            gigabits: 512.0,
            wire: 40,
            switch: 50,
            local: 20,
        },
        costs: Costs {
            hit: 100,
            touch: 400,
            trap: 0,
            wake: 0,
            handle: 20,
            send: 0,
        },
        switch: false,
        gathers: false,
    };

    /// Whether the directory of blocks is in the switch.
    pub fn blocks_in_switch(&self) -> bool {
        self.switch && !self.gathers
    }
}

/// What protects the data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheme {
    /// GCP: the data travels with the lock, and both stay where they were used last.
    Gcp,
    /// GCP, but the data comes by coherence after the lock (§5.3).
    Separate,
    /// GCP, but the lock and its data go back to the memory blade after each critical section (§5.3).
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

/// What threads do, again and again: they think, acquire a lock, access all of its data, and release it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Workload {
    /// Compute blades. There is a memory blade beside them.
    pub nodes: u16,
    /// Threads of each.
    pub threads: u16,
    /// Locks, each with a block of data.
    pub locks: u32,
    /// Percent of acquisitions to read.
    pub reads: u8,
    /// Keys, drawn by Zipf's law and spread over the locks; with as many as there are locks, each has one.
    pub keys: u32,
    /// The law's exponent; 0 for keys that are equally popular.
    pub theta: f64,
    /// Time of an operation outside of its critical section, in nanoseconds.
    pub think: u64,
}

impl Workload {
    /// §5.2: a thread a blade, one lock over 4 KiB, no pause.
    pub fn contended(nodes: u16, reads: u8) -> Self {
        Workload {
            nodes,
            threads: 1,
            locks: 1,
            reads,
            keys: 1,
            theta: 0.0,
            think: 0,
        }
    }

    /// §5.1, MIND-KVS: ten threads a blade, a lock over each bucket's first 4 KiB, YCSB's keys.
    pub fn store(nodes: u16, reads: u8) -> Self {
        Workload {
            nodes,
            threads: 10,
            locks: BUCKETS,
            reads,
            keys: KEYS,
            theta: 0.99,
            think: THINK,
        }
    }

    /// The memory blade: the home of all locks and blocks.
    pub fn memory(&self) -> u16 {
        self.nodes
    }
}

/// Buckets of the store, which the paper does not tell.
const BUCKETS: u32 = 1024;
/// Keys of the store, likewise.
const KEYS: u32 = 100_000;
/// Of the 80 threads' 37.1 Mops of YCSB-C (§5.1), where everything is at hand, what is not locking or the data.
const THINK: u64 =
    80_000 * 10 / 371 - 2 * Platform::ETHERNET.costs.hit - Platform::ETHERNET.costs.touch;
