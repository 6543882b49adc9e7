//! How rackmem's packets move.
//!
//! | fabric | for | a packet costs |
//! |---|---|---|
//! | [`inline`] | all nodes in one process | a function call: the receiver's handler runs in the sender's thread |
//! | [`shm`] | a process a node, all on one host | a copy into the receiver's memory |
//! | [`udp`] | a process a node, any network | a datagram |
//!
//! Agents and the switch are [`Handler`]s. A requester sends through its [`Port`],
//! which also brings it what comes back. Sending never fails and never blocks for long: a packet
//! that cannot be sent is a lost packet, which the protocols mend; it is counted.
//!
//! A [`Wrapping`] puts [`Faults`] and taps ([`Trace`], [`Pcap`]) between the ends and any fabric.

pub mod awake;
mod body;
mod burst;
mod fault;
pub mod inline;
mod late;
mod pcap;
mod poll;
mod service;
mod serving;
pub mod shm;
mod stats;
mod sync;
mod trace;
mod turns;
pub mod udp;
mod whole;
pub mod words;
mod work;
mod wrap;

pub use body::Body;
pub use fault::{BadFaults, FaultControl, FaultCounts, Faults};
pub use pcap::Pcap;
pub use service::Service;
pub use stats::{Counters, PacketCounts, PacketStats};
pub use trace::Trace;
pub use turns::short_turns;
pub use whole::Whole;
pub use work::Work;
pub use wrap::{End, Fate, Packet, Tap, Taps, Wrapping};

use rackmem_wire::{Dest, Header};
use std::time::Duration;

/// Where an agent or a requester puts packets.
pub trait Net {
    /// Sends a packet to one destination: a multicast is as many, and a home is on a node
    /// ([`Dest::hosted`]). `reply` is whoever waits in this thread for what comes of it: the inline
    /// fabric delivers there, before it returns, whatever is for a requester.
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, reply: &mut dyn Receiver);

    /// Bytes of a block of so many bytes that one packet carries.
    fn segment(&self, block: usize) -> usize {
        block
    }
}

/// A requester that waits for packets.
pub trait Receiver {
    /// Takes one.
    fn receive(&mut self, header: &Header, body: Body<'_>);
}

/// A requester that expects nothing: what comes is dropped.
pub struct Nobody;

impl Receiver for Nobody {
    fn receive(&mut self, _: &Header, _: Body<'_>) {}
}

/// A switch, or a node's home and cache agent.
pub trait Handler: Send + Sync {
    /// Takes a packet and sends what it causes through `net`.
    fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver);

    /// Called every few milliseconds on fabrics that can lose packets.
    fn tick(&self, net: &dyn Net) {
        let _ = net;
    }
}

/// A requester's end of the fabric.
pub trait Port: Net + Send {
    /// Waits for one packet, at most this long, and gives it to `reply`. Says whether one came.
    fn wait(&mut self, at_most: Duration, reply: &mut dyn Receiver) -> bool;

    /// What requests carry so that answers find their way; zero where nothing is needed.
    fn reply_port(&self) -> u16;

    /// Whether packets can be lost, duplicated or delayed.
    fn lossy(&self) -> bool;
}
