//! FlowCC, the protocol of the `Coherent` contract (Concordia §5).
//!
//! Lay [`tables`] beside the paper's Tables 2 and 3 and Figure 6. Departures from the paper, with reasons,
//! are in `docs/protocols/flowcc.md`.

pub mod assembly;
pub mod cache_agent;
mod directory;
pub mod forward;
mod home_agent;
mod last_executed;
pub mod lock;
pub(crate) mod per_requester;
mod requester;
mod rtt;
pub mod score;
pub mod tables;

pub use cache_agent::LocalStatus;
pub use home_agent::{HomeAction, HomeAgent, HomeConfig, HomeCounters, Style};
pub use last_executed::{Executed, LastExecuted};
pub use requester::{Accept, Event, Grant, Requester, RequesterConfig, Step};
pub use rtt::RoundTrip;
