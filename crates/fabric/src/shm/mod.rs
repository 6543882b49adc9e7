//! Shared memory: processes on one host, or the parts of one process.
//!
//! Every member of a rack (a node, the switch) has a piece of memory in which others leave packets
//! for it: an inbox for its agents and one for each requester, and in an inbox a lane for everyone
//! who may send to it. A receiver looks for a while and then sleeps on a futex;
//! a sender wakes it only then.
//!
//! Packets are neither duplicated nor reordered, and a full lane is waited for;
//! but a process can die at any instruction, and what was on its way to it is lost. So the
//! protocols treat this fabric as one that loses packets.
//! `docs/decisions/0008-a-lane-for-each-pair.md` says why no death leaves anything broken.

mod bell;
mod folder;
mod hub;
mod lane;
mod layout;
mod map;
mod port;
mod receiving;
mod segment;
mod sender;
mod service;
mod shared;
mod system;

pub use folder::sweep;
pub use hub::{Hub, Member};
pub use layout::Geometry;
pub use port::ShmPort;
pub use service::{Outlet, serve};
pub use shared::{FRONT, Lent, Published, Seen};
