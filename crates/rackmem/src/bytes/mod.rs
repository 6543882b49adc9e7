//! Where a node's bytes are: copies of others' blocks in its cache,
//! and its own part of the rack's memory.

pub(crate) mod cache;
pub(crate) mod desk;
pub(crate) mod lent;
pub(crate) mod mapped;
pub(crate) mod memory;
pub(crate) mod mirror;
pub(crate) mod node_cache;
pub(crate) mod objects;
pub(crate) mod pages;
pub(crate) mod pending;
pub(crate) mod pins;
mod runs;
pub(crate) mod shelf;
pub(crate) mod shown;
pub(crate) mod table;
pub(crate) mod twins;
pub(crate) mod value;
pub(crate) mod whole;
pub mod window;
mod written;
