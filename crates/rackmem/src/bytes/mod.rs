//! Where a node's bytes are: copies of others' blocks in its cache,
//! and its own part of the rack's memory.

pub(crate) mod cache;
pub(crate) mod memory;
pub(crate) mod pages;
pub(crate) mod pending;
pub mod window;
