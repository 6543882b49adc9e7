//! Another way for a home to answer what it has granted: the seam at which a baseline takes the
//! place of FlowCC's answers.

use crate::Outputs;
use crate::wire::{Header, NodeId};
use alloc::boxed::Box;
use core::fmt::Debug;
use core::hash::Hasher;

/// Answers, in place of those who have a block, what a home has granted:
/// it sends the request on with
/// [`Flags::GATHER`](crate::wire::Flags::GATHER), and those who have the block answer to home
/// (`GatherAck`, or a `WriteBack`).
pub trait Answering: Debug + Send {
    /// An event has been granted.
    fn grant(&mut self, granted: &Header, me: NodeId, outputs: &mut Outputs);
    /// One of those who have the block has answered, and all that it sent has come.
    /// Whether that was awaited.
    fn answered(&mut self, header: &Header, me: NodeId, outputs: &mut Outputs) -> bool;
    /// The entries are made anew: what was granted is over.
    fn clear(&mut self);
    /// Everything that decides what it will say.
    fn fingerprint(&self, into: &mut dyn Hasher);
    /// A copy, for explorers.
    fn copy(&self) -> Box<dyn Answering>;
}

/// Makes that of a home.
pub type MakeAnswering = fn() -> Box<dyn Answering>;

impl Clone for Box<dyn Answering> {
    fn clone(&self) -> Self {
        self.copy()
    }
}
