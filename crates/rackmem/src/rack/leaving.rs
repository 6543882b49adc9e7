//! A node leaves: everything in its cache goes home.

use crate::backoff::Backoff;
use crate::error::{AccessError, LeaveError, LockError, RackError};
use crate::host::locks;
use crate::locked::BlockLock;
use crate::node::Node;
use rackmem_proto::wire::Tag;

impl Node {
    /// Whether others have memory of this node, which is lost if it goes.
    pub(crate) fn is_in_use(&self) -> bool {
        let agents = &self.inner.access.agents;
        let serves = agents.names.is_some() || agents.kept.has_any();
        let keeps = serves && agents.standing.keeper() == Some(self.inner.id);
        keeps || agents.books(|home| home.has_given())
    }

    /// Serves on until the others have given back what they have of its memory,
    /// as they do when they
    /// [close](crate::Rack::close); not for ever.
    pub(crate) fn linger(&self) {
        let agents = &self.inner.access.agents;
        let mut backoff = Backoff::new(self.inner.access.patience);
        while agents.is_held_elsewhere() && backoff.wait() {}
    }

    /// Writes everything in its cache home, so that this node can go.
    /// New misses of other threads get in the way.
    /// `epoch_follows`: see [`locks::bring_home`].
    pub(crate) fn bring_home(&self, epoch_follows: bool) -> Result<(), LeaveError> {
        let agents = &self.inner.access.agents;
        let patience = self.inner.access.patience;
        self.inner.allocator.give_all_back(&self.inner.access);
        locks::bring_home(&self.inner.access, patience, epoch_follows)?;
        let copies: Vec<Tag> = agents.cache.copies().map(|copy| copy.0).collect();
        for tag in copies {
            self.evict(tag.0)?;
        }
        // Who was given a block holds its lock until it has the data; till then only this node can
        // send it again.
        for tag in agents.given() {
            let lock = BlockLock::attach(self, tag.0);
            match lock.and_then(|lock| Ok(lock.write_within(patience)?.map(drop))) {
                Ok(Some(()))
                | Err(
                    LockError::Rack(RackError::NodeLost { .. })
                    | LockError::Access(AccessError::Lost { .. }),
                ) => {}
                Err(LockError::Rack(error)) => return Err(error.into()),
                Err(LockError::Access(error)) => return Err(error.into()),
                Ok(None) | Err(_) => return Err(AccessError::Busy { addr: tag.0 }.into()),
            }
        }
        self.inner.access.requesters.drain();
        let mut backoff = Backoff::new(patience);
        while !agents.rebuilding.all_told() && backoff.wait() {}
        Ok(())
    }
}
