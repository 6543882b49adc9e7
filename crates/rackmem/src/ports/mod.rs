//! How threads of this process reach the rack: places on a network,
//! and requesters with an inbox each.

pub(crate) mod place;
pub(crate) mod requester;
pub(crate) mod slots;
pub(crate) mod wires;
