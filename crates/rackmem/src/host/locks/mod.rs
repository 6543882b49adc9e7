//! A node's locks: what threads and packets do to them, their bytes,
//! and what is kept of those that nobody uses.
//!
//! Each lock is a [`cell::Cell`] behind a mutex of its own, found in the [`table::Locks`]. What
//! programs hold is in [`crate::locked`].

pub(crate) mod arrays;
pub(crate) mod cell;
mod clock;
pub(crate) mod content;
pub(crate) mod fast;
pub(crate) mod forgetting;
pub(crate) mod host;
pub(crate) mod leaving;
pub(crate) mod ledger;
pub(crate) mod outbox;
pub(crate) mod places;
pub(crate) mod pressure;
pub(crate) mod seat;
pub(crate) mod slab;
pub(crate) mod status;
pub(crate) mod table;
mod taking;
pub(crate) mod watch;

pub(crate) use leaving::{bring_home, bring_one_home};
pub(crate) use pressure::{Effort, IN_A_TICK, IN_AN_ENTRY};
pub(crate) use table::Locks;

/// Independent parts of what a node knows of locks.
const SHARDS: usize = 64;
