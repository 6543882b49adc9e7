//! What a node's threads do with its guest.

use super::Node;
use crate::error::{AccessError, RackError};
use crate::guest::{Guest, Net};
#[cfg(doc)]
use rackmem_proto::wire::Kind;
use std::any::Any;
use std::sync::atomic::Ordering::Relaxed;

impl Node {
    /// This node's guest, if it has one of this type.
    pub fn guest<G: Guest>(&self) -> Option<&G> {
        let guest: &dyn Any = self.inner.access.agents.guest.as_deref()?;
        guest.downcast_ref()
    }

    /// Asks the guest of a node, again until it answers, and returns the first word of the answer:
    /// a [`Kind::GuestTell`] that answers the question's header. A question may arrive several
    /// times, and then has the same number; it has 16 bytes at least.
    ///
    /// # Errors
    /// [`RackError::NoSuchNode`], [`RackError::NodeLost`]; [`RackError::Timeout`] when none
    /// answers in time.
    pub fn ask(&self, to: u16, question: &[u8]) -> Result<u64, AccessError> {
        self.open()?;
        if usize::from(to) >= self.inner.nodes {
            return Err(AccessError::Rack(RackError::NoSuchNode { node: to.into() }));
        }
        self.inner.access.ask_guest(to, question)
    }

    /// Sends packets of this node's guest from this thread: `f` gets a port, and the epoch that
    /// they are of. Answers go to the guest.
    ///
    /// # Errors
    /// Those of having no socket.
    pub fn as_guest<R>(&self, f: impl FnOnce(&dyn Net, u32) -> R) -> Result<R, AccessError> {
        let access = &self.inner.access;
        let slot = access.requesters.borrow()?;
        Ok(f(slot.net(), access.standing.epoch()))
    }

    /// Whether there is still a rack to wait in.
    ///
    /// # Errors
    /// [`RackError::Closed`], [`RackError::Fenced`].
    pub fn check(&self) -> Result<(), AccessError> {
        if self.inner.closed.load(Relaxed) {
            return Err(AccessError::Rack(RackError::Closed));
        }
        match self.inner.access.standing.is_fenced() {
            true => Err(AccessError::Rack(RackError::Fenced)),
            false => Ok(()),
        }
    }
}
