//! What the model assumes of the hardware and of programs. `docs/simulation.md` says where each
//! number comes from.

use rackmem_proto::wire::{HEADER_LEN, Kind};

/// The network between the nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Network {
    /// Bandwidth of a node's link, each way, in Gb/s.
    pub gigabits: f64,
    /// From a node's memory to the switch, and from the switch to a node's memory, in nanoseconds.
    pub wire: u64,
    /// Through the switch, in nanoseconds. It keeps up with every link,
    /// so it has no queue of its own.
    pub switch: u64,
    /// Between two threads of one node, in nanoseconds.
    pub local: u64,
}

/// Ethernet with preamble and gap 38, IPv4 20, UDP 8, and our header.
const OVERHEAD: u32 = 38 + 20 + 8 + HEADER_LEN as u32;

impl Network {
    /// 100 Gb/s adapters and a Tofino: 1.3 µs one way.
    pub const ETHERNET: Network = Network {
        gigabits: 100.0,
        wire: 400,
        switch: 500,
        local: 100,
    };

    /// How long a packet with a body of so many bytes occupies a link, in nanoseconds.
    pub fn serialization(&self, body: u32) -> u64 {
        (f64::from((OVERHEAD + body) * 8) / self.gigabits).ceil() as u64
    }
}

/// Who orders the accesses to a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum System {
    /// FlowCC with the switch: the paper's Concordia.
    Switch,
    /// FlowCC without: the paper's Concordia-base.
    HomeOnly,
    /// A directory whose home gathers: after GAM.
    Directory,
    /// No cache, the operation travels: after Grappa.
    Delegate,
}

impl System {
    /// All of them, as the library's modes are named.
    pub const ALL: [(System, &'static str); 4] = [
        (System::Switch, "switch"),
        (System::HomeOnly, "home-only"),
        (System::Directory, "directory"),
        (System::Delegate, "delegate"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|row| row.0 == self)
            .map_or("", |row| row.1)
    }

    /// What the Concordia paper measured it on.
    pub fn platform(self) -> Platform {
        let platform = match self {
            System::Switch | System::HomeOnly => Platform::CONCORDIA,
            System::Directory => Platform::GAM,
            System::Delegate => Platform::GRAPPA,
        };
        Platform {
            system: self,
            ..platform
        }
    }
}

/// What work costs, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// A look at what is in the node's memory and was used last, or at a lock that is there.
    pub hit: u64,
    /// A look at any other block: the processor's own caches miss.
    pub cold: u64,
    /// To read or to write the data of a lock that is in the node's memory.
    pub touch: u64,
    /// From a program into what asks the network: a page fault.
    pub trap: u64,
    /// Back into the program when what it waited for is there.
    pub wake: u64,
    /// To take a message of full weight and act on it ([`Costs::message`]).
    pub handle: u64,
    /// To send a packet.
    pub send: u64,
    /// Before a packet leaves: time spent waiting for others to go with it.
    pub aggregate: u64,
}

impl Costs {
    /// What taking a message of this kind costs. The weights are guesses that were made before
    /// anything was calibrated: owners lock, check and forward, and holders look into the cache or
    /// give up a lock; the rest is bookkeeping.
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

/// Who serves a node's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agents {
    /// A thread for what others ask of the node's memory, and one for what it holds of theirs.
    HomeAndCache,
    /// So many threads, each for everything.
    Pool(u16),
    /// So many threads, each for its own part of the memory, and for what is sent and answered to
    /// its own requesters.
    Owners(u16),
}

/// Hardware and programs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Platform {
    /// Its name.
    pub name: &'static str,
    /// The network between nodes.
    pub network: Network,
    /// What work costs.
    pub costs: Costs,
    /// Threads that serve a node's messages.
    pub agents: Agents,
    /// Application threads hand their misses to the agents and get the answers from them.
    pub through_agents: bool,
    /// Any block may be in any entry of the cache; otherwise a set has eight.
    pub fully_associative: bool,
    /// Who orders the accesses to a block.
    pub system: System,
    /// The directory of locks is in the switch; otherwise at their home.
    pub locks_in_switch: bool,
}

impl Platform {
    /// Concordia, base or not (paper §6: a thread each for home agent and cache agent).
    pub const CONCORDIA: Platform = Platform {
        name: "concordia",
        network: Network::ETHERNET,
        costs: Costs {
            hit: 240,
            cold: 533,
            touch: 0,
            trap: 0,
            wake: 0,
            handle: 650,
            send: 325,
            aggregate: 0,
        },
        agents: Agents::HomeAndCache,
        through_agents: false,
        fully_associative: false,
        system: System::Switch,
        locks_in_switch: false,
    };

    /// GAM (§7.1: two background threads; §7.2: four locks and LRU lists an access,
    /// a fully associative cache).
    pub const GAM: Platform = Platform {
        name: "gam",
        costs: Costs {
            hit: 1391,
            cold: 2000,
            handle: 2000,
            send: 1000,
            ..Self::CONCORDIA.costs
        },
        agents: Agents::Pool(2),
        through_agents: true,
        fully_associative: true,
        system: System::Directory,
        ..Self::CONCORDIA
    };

    /// Grappa (§7.1: delegated to the owner's threads, packets aggregated).
    pub const GRAPPA: Platform = Platform {
        name: "grappa",
        costs: Costs {
            hit: 0,
            cold: 0,
            handle: 1000,
            send: 500,
            aggregate: 20_000,
            ..Self::CONCORDIA.costs
        },
        agents: Agents::Pool(4),
        system: System::Delegate,
        ..Self::CONCORDIA
    };

    /// Soul's (§5): 100 Gb/s adapters, a Tofino, page faults. The network and what messages cost
    /// are those that the model of Concordia was calibrated with; `trap` and `wake` make a
    /// transaction last 7.5 µs, the middle of the 5–10 µs of §1.
    pub const ETHERNET: Platform = Platform {
        name: "ethernet",
        costs: Costs {
            hit: 100,
            cold: 100,
            touch: 400,
            trap: 1_470,
            wake: 1_470,
            ..Self::CONCORDIA.costs
        },
        fully_associative: true,
        locks_in_switch: true,
        ..Self::CONCORDIA
    };

    /// The same above a substrate as the paper draws it (Fig. 1): a blade that has changed a block
    /// gives it to the directory, which gives it to the one that asked. `trap` and `wake` make that
    /// last 10 µs; what nobody has changed then takes 5.5.
    pub const GATHERED: Platform = Platform {
        name: "ethernet-gathered",
        costs: Costs {
            trap: 470,
            wake: 470,
            ..Self::ETHERNET.costs
        },
        system: System::Directory,
        ..Self::ETHERNET
    };

    /// GCP in hardware (§6): 300 ns from a request to its answer, directories at the memory
    /// devices; PCIe 6.0's bandwidth.
    pub const CXL: Platform = Platform {
        name: "cxl",
        network: Network {
            gigabits: 512.0,
            wire: 40,
            switch: 50,
            local: 20,
        },
        costs: Costs {
            trap: 0,
            wake: 0,
            handle: 20,
            send: 0,
            ..Self::ETHERNET.costs
        },
        system: System::HomeOnly,
        locks_in_switch: false,
        ..Self::ETHERNET
    };
}

/// Who runs, and how often they read: what all programs have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Workload<P> {
    /// Nodes with application threads, `1..=32`.
    pub nodes: u16,
    /// Threads of each.
    pub threads: u16,
    /// Percent of operations that read.
    pub reads: u8,
    /// What the threads do.
    pub program: P,
}

/// One point of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Experiment<P> {
    /// On what.
    pub platform: Platform,
    /// Doing what.
    pub workload: Workload<P>,
    /// Operations of the whole rack before the measurement, and after the first pass if there is
    /// one.
    pub warm_up: u64,
    /// Operations that are measured.
    pub measured: u64,
    /// Decides the run.
    pub seed: u64,
}
