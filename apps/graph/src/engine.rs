//! How data and sums get from node to node.

use crate::graph::mix;
use std::fmt;
use std::time::Duration;

/// How old what a replica reads may be, unless the program says otherwise: ticks of 2 ms.
pub const DEFAULT_BOUND: Duration = Duration::from_millis(10);
/// Under on-demand quiescence the barrier drops what was modified: the clock is a second line.
pub(crate) const ON_DEMAND_BOUND: Duration = Duration::from_secs(5);

/// How data and sums get from node to node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A batch for each other node and phase is stored in memory of the node that reads it, one
    /// bulk write each; nothing is cached, and each node keeps what it was sent.
    Messages,
    /// Each node's data and sums are in bounded memory of its own. Replicas hold references to the
    /// data of their masters, and read what is old by this time at most. Nothing is asked for at
    /// barriers, so a step may read data of steps before.
    Periodic(Duration),
    /// The same memory; at each barrier a node asks what the others have modified, and drops that.
    OnDemand,
    /// Each node's data and sums are in coherent memory of its own.
    Coherent,
}

impl Engine {
    /// All of them, in the order of comparisons.
    pub const ALL: [Engine; 4] = [
        Engine::Messages,
        Engine::Periodic(DEFAULT_BOUND),
        Engine::OnDemand,
        Engine::Coherent,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Messages => "messages",
            Engine::Periodic(_) => "bi-periodic",
            Engine::OnDemand => "bi-on-demand",
            Engine::Coherent => "coherent",
        }
    }

    /// A number that other engines do not have.
    pub(crate) fn fingerprint(self) -> u64 {
        let bytes = self.name().bytes();
        bytes.fold(0, |sum, byte| mix(sum ^ u64::from(byte)))
    }

    /// Whether a step reads only what the step before has computed.
    pub fn is_synchronous(self) -> bool {
        !matches!(self, Engine::Periodic(_))
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
