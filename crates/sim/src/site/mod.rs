//! A node of a simulated rack: the engine's sections, with small values in place of the library's
//! bytes, threads and ports.
//!
//! Explorers, seeded worlds, protocols on trial and fuzzers have this one node. It carries nothing
//! out that anybody else sees: what the engine wants done is written down, in order ([`Deed`]), and
//! whoever runs the node sends, tells and judges by that. A step of it is what the library does
//! under its locks: a packet ([`Site::take`]), a tick, a step of an event ([`Site::go_on`]) or of
//! an epoch's beginning.

mod bare;
mod cache;
mod client;
mod copied;
mod host;
mod in_kernel;
mod locks;
mod mutate;
pub mod telling;

pub use bare::Bare;
pub use cache::Cache;
pub use client::{Client, Did, Want};
pub use copied::{Came, Copied};
pub use host::{Deed, Load, Memory, Product, Site, Speaks};
pub use locks::{Cell, Fx, LIFE, LockDeed, Locks, Words};
pub use telling::Before;

use rackmem_proto::wire::{Record, Tag};
use std::fmt::Debug;
use std::hash::Hash;

/// What stands for a block's bytes in a simulation, and for those behind a header.
pub trait Form: Clone + Hash + Debug {
    /// What a packet carries behind its header.
    type Body: Clone + Debug;

    /// A block that nobody has written.
    fn zeroes() -> Self;
    /// Puts a packet's bytes where it says that they belong; what lies outside is left out.
    fn put(&mut self, offset: u32, body: &Self::Body);
    /// Does to a word what a packet says; what the word was before.
    fn operate(&mut self, _body: &Self::Body) -> u64 {
        0
    }
    /// How many bytes there are, as roles count them.
    fn len(body: &Self::Body) -> u32;
    /// The records that they are.
    fn records(body: &Self::Body) -> Vec<Record>;
    /// The words of a lock that they are.
    fn words(_body: &Self::Body) -> &[u64] {
        &[]
    }
    /// Which incarnation of its home an address is of.
    fn incarnation(_tag: Tag) -> u32 {
        1
    }
}
