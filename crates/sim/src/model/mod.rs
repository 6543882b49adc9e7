//! A performance model: how fast a rack with the paper's hardware would be, by the protocols as they ship.
//!
//! [`simulate`] runs the very roles that ship ([`SwitchProgram`](rackmem_proto::switch::SwitchProgram),
//! [`HomeAgent`](rackmem_proto::flowcc::HomeAgent), [`react`](rackmem_proto::flowcc::cache_agent::react),
//! [`Requester`](rackmem_proto::flowcc::Requester)) in virtual time under the micro benchmark of the paper's
//! §7.2. Blocks have a size and no bytes. Nothing is lost, so nothing is sent twice.
//!
//! What takes time:
//! - the network: a queue and a bandwidth each way at every node, a delay, and the switch's latency ([`Network`]);
//! - agents: threads that serve one message after another from a bounded queue ([`Costs`]);
//! - application threads: a hit, and every packet they send and take.
//!
//! [`System::costs`] has what distinguishes the systems, each difference by its name. A seed decides a run. How
//! the costs were calibrated, and what the model does not reproduce, is in `docs/simulation.md`.

pub(crate) mod agenda;
mod cache;
pub(crate) mod fabric;
mod here;
mod migration;
mod node;
pub(crate) mod outcome;
mod params;
mod run;
mod thread;
mod workload;

pub use outcome::{Outcome, Use};
pub use params::{Agents, Costs, Network, System};
pub use run::{Experiment, simulate};
pub use workload::Workload;

/// Epoch of every model's rack.
const EPOCH: u32 = 1;
/// Bytes of a block, the paper's.
const BLOCK: u32 = 4096;
