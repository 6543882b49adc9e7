//! A node leaves: everything in its cache goes home.

use crate::backoff::Backoff;
use crate::error::{AccessError, LeaveError, RackError};
use crate::host::locks;
use crate::node::Node;
use rackmem_proto::wire::Tag;

impl Node {
    /// Writes everything in its cache home, so that this node can go.
    /// New misses of other threads get in the way.
    pub(crate) fn vacate(&self) -> Result<(), LeaveError> {
        let agents = &self.inner.access.agents;
        if agents.books(|home| home.has_given()) {
            return Err(LeaveError::InUse {
                node: self.inner.id,
            });
        }
        let patience = self.inner.access.patience;
        self.inner.allocator.give_all_back(&self.inner.access);
        locks::bring_home(&self.inner.access, patience)?;
        let copies: Vec<Tag> = agents.cache.copies().map(|copy| copy.0).collect();
        for tag in copies {
            self.evict(tag.0)?;
        }
        // Who was given a block holds its lock until it has the data; till then only this node can
        // send it again.
        for tag in agents.given() {
            match self.attach_lock(tag.0)?.write_within(patience) {
                Ok(Some(_))
                | Err(AccessError::Rack(RackError::NodeLost { .. }) | AccessError::Lost { .. }) => {
                }
                Ok(None) => return Err(AccessError::Busy { addr: tag.0 }.into()),
                Err(error) => return Err(error.into()),
            }
        }
        self.inner.access.requesters.drain();
        let mut backoff = Backoff::new(patience);
        while !agents.rebuilding.all_told() && backoff.wait() {}
        Ok(())
    }
}
