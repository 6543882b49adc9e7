//! What the model assumes of the hardware and of the systems' programs. `docs/simulation.md` says where each
//! number comes from.

use rackmem_proto::wire::{HEADER_LEN, Kind};

/// The network between the nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Network {
    /// Bandwidth of a node's link, each way, in Gb/s.
    pub gigabits: f64,
    /// From a node's memory to the switch, and from the switch to a node's memory, in nanoseconds.
    pub wire: u64,
    /// Through the switch, in nanoseconds. It keeps up with every link, so it has no queue of its own.
    pub switch: u64,
    /// Between two threads of one node, in nanoseconds.
    pub local: u64,
}

impl Default for Network {
    /// 100 Gb/s adapters and a Tofino: 1.3 µs one way.
    fn default() -> Self {
        Network {
            gigabits: 100.0,
            wire: 400,
            switch: 500,
            local: 100,
        }
    }
}

/// Ethernet with preamble and gap 38, IPv4 20, UDP 8, and our header.
const OVERHEAD: u32 = 38 + 20 + 8 + HEADER_LEN as u32;

impl Network {
    /// How long a packet with a body of so many bytes occupies a link, in nanoseconds.
    pub fn serialization(&self, body: u32) -> u64 {
        (f64::from((OVERHEAD + body) * 8) / self.gigabits).ceil() as u64
    }
}

/// Which system.
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

    /// What its programs cost.
    pub fn costs(self) -> Costs {
        match self {
            System::Switch | System::HomeOnly => Costs::CONCORDIA,
            System::Directory => Costs::GAM,
            System::Delegate => Costs::GRAPPA,
        }
    }
}

/// What the work of one system's threads costs. Times are in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// A hit on the block of the operation before.
    pub hit: u64,
    /// A hit on any other block: the processor's own caches miss.
    pub cold: u64,
    /// To take a message of full weight and act on it ([`Costs::message`]).
    pub handle: u64,
    /// To send a packet.
    pub send: u64,
    /// Before a packet leaves: time spent waiting for others to go with it.
    pub aggregate: u64,
    /// Threads that serve a node's messages.
    pub agents: Agents,
    /// Application threads hand their misses to the agents and get the answers from them.
    pub through_agents: bool,
    /// Any block may be in any entry of the cache; otherwise a set has eight.
    pub fully_associative: bool,
}

/// Who serves a node's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agents {
    /// A thread for the home agent and one for the cache agent.
    HomeAndCache,
    /// So many threads, each for everything.
    Pool(u16),
}

impl Costs {
    /// Concordia, base or not (paper §6: a thread each for home agent and cache agent).
    pub const CONCORDIA: Costs = Costs {
        hit: 240,
        cold: 533,
        handle: 650,
        send: 325,
        aggregate: 0,
        agents: Agents::HomeAndCache,
        through_agents: false,
        fully_associative: false,
    };

    /// GAM (§7.1: two background threads; §7.2: four locks and LRU lists an access, a fully associative cache).
    pub const GAM: Costs = Costs {
        hit: 1391,
        cold: 2000,
        handle: 2000,
        send: 1000,
        aggregate: 0,
        agents: Agents::Pool(2),
        through_agents: true,
        fully_associative: true,
    };

    /// Grappa (§7.1: delegated to the owner's threads, packets aggregated).
    pub const GRAPPA: Costs = Costs {
        hit: 0,
        cold: 0,
        handle: 1000,
        send: 500,
        aggregate: 20_000,
        agents: Agents::Pool(4),
        through_agents: false,
        fully_associative: false,
    };

    /// What taking a message of this kind costs. The weights are guesses that were made before anything was
    /// calibrated: owners lock, check and forward and holders look into the cache; the rest is bookkeeping.
    pub fn message(&self, kind: Kind) -> u64 {
        let full = kind.is_request() || kind == Kind::GuestAsk;
        if full { self.handle } else { self.handle / 2 }
    }
}
