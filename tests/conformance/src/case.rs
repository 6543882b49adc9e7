//! What a golden case is made of.

use rackmem_proto::switch::{LockConfig, Register, SwitchConfig};
use rackmem_proto::wire::NodeId;

/// How a switch is set up: small, so that tags collide and a reader can follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Epoch of the rack.
    pub epoch: u32,
    /// Candidate locations of a tag.
    pub ways: u8,
    /// Entries in each way.
    pub sets: u32,
    /// Nodes of the rack.
    pub nodes: u16,
    /// Requesters of each node.
    pub requesters: u16,
    /// Decides which sharer provides data.
    pub seed: u32,
    /// Who is told of every migration.
    pub shadow: Option<NodeId>,
    /// Candidate locations of a lock.
    pub lock_ways: u8,
    /// Locks in each of them.
    pub lock_sets: u32,
    /// Ports of the switch when several nodes share one: node `n` is behind port `n % ports`. None:
    /// one port a node.
    pub ports: Option<u16>,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            epoch: 7,
            ways: 2,
            sets: 4,
            nodes: 4,
            requesters: 2,
            seed: 0,
            shadow: Some(3),
            lock_ways: 2,
            lock_sets: 2,
            ports: None,
        }
    }
}

impl Setup {
    /// As the Rust program takes it.
    pub fn config(&self) -> SwitchConfig {
        SwitchConfig {
            epoch: self.epoch,
            ways: self.ways,
            sets: self.sets as usize,
            seed: self.seed,
            shadow: self.shadow,
            nodes: self.nodes,
            requesters: self.requesters,
        }
    }

    /// The port that a node is behind.
    pub fn port_of(&self, node: NodeId) -> u16 {
        self.ports.map_or(node, |ports| node % ports.max(1))
    }

    /// Whether some port has several nodes behind it.
    pub fn shares_ports(&self) -> bool {
        self.ports.is_some_and(|ports| ports < self.nodes)
    }

    /// The directory of locks, as the Rust program takes it.
    pub fn locks(&self) -> LockConfig {
        LockConfig {
            epoch: self.epoch,
            ways: self.lock_ways,
            sets: self.lock_sets as usize,
        }
    }
}

/// Where a packet leaves. What is below it (addresses, checksums) is the carrier's business.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Port {
    /// To the agents of a node.
    Agent(NodeId),
    /// To a requester: its node, and the header's `reply_port`.
    Requester {
        /// The node it runs on.
        node: NodeId,
        /// The UDP port it listens at.
        port: u16,
    },
}

/// A packet that leaves. A multicast is as many as it has copies.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sent {
    /// By which port.
    pub port: Port,
    /// Header and body.
    pub bytes: Vec<u8>,
}

/// What becomes of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// These leave; their order does not count. None: it is dropped.
    Sent(Vec<Sent>),
    /// The switch's control plane gets it.
    ControlPlane,
}

impl Reply {
    /// With its packets in the order of their ports, which is the form that is compared.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        if let Reply::Sent(packets) = &mut self {
            packets.sort();
        }
        self
    }
}

/// A packet and what must become of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Header and body as they come.
    pub packet: Vec<u8>,
    /// What must become of it.
    pub reply: Reply,
}

/// One golden case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// Its name, unique in all files.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// How the switch is set up.
    pub setup: Setup,
    /// Packets that bring an empty switch to `before`; none if no packets do (`before` must be
    /// loaded then).
    pub prefix: Option<Vec<Step>>,
    /// All registers that are not zero before the packets.
    pub before: Vec<Register>,
    /// Whether the control plane freezes the switch between `prefix` and `steps`.
    pub frozen: bool,
    /// The packets that it is about.
    pub steps: Vec<Step>,
    /// All registers that are not zero in the end.
    pub after: Vec<Register>,
}
