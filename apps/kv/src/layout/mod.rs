//! How the store lies in memory. Integers are little-endian.

pub(crate) mod counters;
pub(crate) mod kind;
pub(crate) mod page;
pub(crate) mod page_mut;
pub(crate) mod superblock;
