//! How fast locks would be on the paper's hardware (Soul, §5): the timed model of [`crate::model`], for locks.
//!
//! [`simulate`] runs the roles that ship in virtual time: GCP's directory at the switch
//! ([`LockProgram`](rackmem_proto::switch::LockProgram)) or at the memory blade
//! ([`LockDirectory`](rackmem_proto::gcp::LockDirectory)) and a [`Blade`](rackmem_proto::gcp::Blade) a node, and FlowCC's roles
//! for what locks above coherent memory do. Nothing is lost, so nothing is sent twice. As in Soul's rack a memory blade is the home of
//! everything and runs no threads.
//!
//! What takes time is in [`Platform`], what threads do in [`Workload`]. A seed decides a run. Where the numbers are from, and
//! what of the paper's figures does not come out, is in `docs/simulation.md`.

mod above;
mod draw;
mod locks;
mod memory;
mod node;
mod outcome;
mod params;
mod run;
mod thread;

pub use outcome::Outcome;
pub use params::{Costs, Platform, Scheme, Workload};
pub use rackmem_baselines::locks::Algorithm;
pub use run::{Experiment, simulate};

/// Epoch of every model's rack.
const EPOCH: u32 = 1;
/// Bytes of a block: MIND's unit of coherence is a page (§4.1).
const BLOCK: u32 = 4096;
/// Nothing is lost in the model, so nothing is sent again.
const NEVER: u64 = u64::MAX / 4;
