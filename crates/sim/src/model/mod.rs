//! A cost model: how fast a rack with the papers' hardware would be, by the protocols as they ship.
//!
//! [`simulate`] runs in virtual time what ships: the engine of each node with FlowCC and GCP, the
//! requester's side of every access ([`Requester`](rackmem_proto::flowcc::Requester),
//! [`Access`](rackmem_proto::engine::Access)), and the switch's programs. Blocks have a size and no
//! bytes. Nothing is lost, so nothing is sent twice.
//!
//! What takes time is in [`Platform`]:
//! - the network: a queue and a bandwidth each way at every node, a delay,
//!   and the switch's latency ([`Network`]);
//! - agents: threads that serve one message after another from a bounded queue ([`Agents`]);
//! - application threads: a look at a block or a lock, the way into the kernel and back, and every
//!   packet they send and take ([`Costs`]).
//!
//! What threads do, and so what it is a model of, is a [`Program`]:
//!
//! | program | threads | paper | figures |
//! |---|---|---|---|
//! | [`Accesses`] | access blocks, one after the other | Concordia §7.2 | `bench micro --sim` |
//! | [`Keys`] | get and put popular keys | Concordia §7.3 | `repro --figure concordia-14` |
//! | [`Transactions`] | run TPC-C under two-phase locking | Concordia §7.4 | `repro --figure concordia-15` |
//! | [`Sections`] | enter a lock, access its data, leave | Soul §5 | `bench lock --sim` |
//!
//! A seed decides a run. Where the numbers are from, and what of the papers' figures does not come
//! out, is in `docs/simulation.md`.

mod accesses;
mod accessing;
mod agenda;
mod draw;
mod fabric;
mod guest;
mod keys;
mod layout;
mod node;
mod occupied;
mod outcome;
mod params;
mod processor;
mod program;
mod run;
mod sections;
mod servers;
mod thread;
mod transactions;
mod working;

pub use accesses::Accesses;
pub use accessing::AccessFigures;
pub use keys::Keys;
pub use outcome::{Outcome, Traffic, Use};
pub use params::{Agents, Costs, Experiment, Network, Platform, System, Workload};
pub use program::Program;
pub use rackmem_baselines::locks::Algorithm;
pub use run::simulate;
pub use sections::{Scheme, SectionFigures, Sections};
pub use transactions::{TransactionFigures, Transactions};

/// What transactions of the model lock: `rackmem-txn` compares it with what its own do.
pub mod taken {
    pub use super::transactions::{Index, Kind, Table, Taken, What, taken};
}

use thread::Thread;

/// Epoch of every model's rack.
const EPOCH: u32 = 1;
/// Bytes of a block, the papers'.
const BLOCK: u32 = 4096;
