//! What a node's threads do with its guest.

use super::Node;
use crate::error::{AccessError, RackError};
use crate::guest::{Body, Guest, Net};
use crate::ports::requester::{Bytes, Sink};
#[cfg(doc)]
use rackmem_proto::wire::Kind;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::Relaxed;

/// An answer with all of its bytes.
#[derive(Default)]
struct Whole(RefCell<Vec<u8>>);

impl Sink for Whole {
    fn take(&self, body: Body<'_>) {
        if let Body::Bytes(bytes) = body {
            self.0.replace(bytes.to_vec());
        }
    }
}

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
        let answer = Cell::new(0);
        self.ask_guest(to, Bytes::Operand(question, &answer))?;
        Ok(answer.get())
    }

    /// The same, with all bytes of the answer, the 16 of its own included: at most as many as a
    /// packet has.
    ///
    /// # Errors
    /// Those of [`Node::ask`].
    pub fn ask_for_bytes(&self, to: u16, question: &[u8]) -> Result<Vec<u8>, AccessError> {
        let answer = Whole::default();
        self.ask_guest(to, Bytes::Question(question, &answer))?;
        Ok(answer.0.into_inner())
    }

    fn ask_guest(&self, to: u16, bytes: Bytes<'_>) -> Result<(), AccessError> {
        self.open()?;
        if usize::from(to) >= self.inner.nodes {
            return Err(AccessError::Rack(RackError::NoSuchNode { node: to.into() }));
        }
        self.inner.access.ask_guest(to, bytes)
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
