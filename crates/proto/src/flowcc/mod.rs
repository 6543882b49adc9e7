//! FlowCC, the protocol of the `Coherent` contract (Concordia §5).
//!
//! Lay [`tables`] beside the paper's Tables 2 and 3 and Figure 6. Departures from the paper,
//! with reasons, are in `docs/protocols/flowcc.md`.

mod answering;
pub mod cache_agent;
pub mod desk;
mod directory;
mod event;
pub mod forward;
mod giving;
mod heat;
mod home_agent;
pub mod in_kernel;
mod in_place;
pub mod lock;
pub mod migration;
mod operating;
pub mod rebuild;
mod removal;
mod requester;
pub mod score;
mod settle;
mod shadow;
mod shards;
mod storing;
pub mod tables;
pub mod twin;

pub use answering::{Answering, MakeAnswering};
pub use cache_agent::LocalStatus;
pub use directory::ChunkKind;
pub use event::{Accept, Event, Grant, Step};
pub use giving::Wipe;
pub use heat::Heat;
pub use home_agent::{HomeAction, HomeAgent, HomeConfig, HomeCounters};
pub use migration::Migration;
pub use operating::Operating;
pub use rebuild::{Heard, Members, Next, Open, Rebuild};
pub use removal::{KeptBlocks, Whereabouts};
pub use requester::{Interrupted, Requester, RequesterConfig, STORE_AGAIN};
pub use settle::{Settled, copy_record};
pub use shadow::{Shadow, ShadowConfig, ShadowCounters};
pub use shards::{News, Shards};
pub use storing::Storing;
