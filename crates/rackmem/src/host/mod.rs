//! What runs a node: threads, locks and bytes for `rackmem_proto::engine`,
//! and nothing that decides what a packet means.

pub(crate) mod access;
pub(crate) mod agents;
pub(crate) mod ahead;
pub(crate) mod alloc;
pub(crate) mod arenas;
pub(crate) mod askers;
mod atomics;
pub(crate) mod bounded;
pub(crate) mod bulk;
mod by_block;
mod caching;
pub(crate) mod cleaning;
pub(crate) mod driving;
pub(crate) mod families;
mod flight;
mod gathered;
pub(crate) mod groups;
pub(crate) mod here;
pub(crate) mod hot;
pub(crate) mod inner;
pub(crate) mod kept;
mod kept_objects;
mod leaving;
pub(crate) mod locks;
pub(crate) mod magazine;
pub(crate) mod metrics;
pub(crate) mod names;
pub(crate) mod objects;
pub(crate) mod rebuilding;
pub(crate) mod replicated;
pub(crate) mod rows;
mod storing;
pub(crate) mod told;
pub(crate) mod waiting;
