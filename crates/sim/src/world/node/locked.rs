//! What threads of a node do with its locks.

use super::WorldNode;
use crate::world::fabric::Fabric;
use rackmem_proto::engine::{Gcp, LockCommand, Protocol};
use rackmem_proto::gcp::Access;
use rackmem_proto::wire::Tag;

impl WorldNode {
    /// A thread of this node wants to enter a lock. `false`: the lock is not there.
    pub fn enter_lock(&mut self, tag: Tag, slot: u16, access: Access, fabric: &mut Fabric) -> bool {
        if !tag.home().is_of(self.id) && self.knows(tag) {
            self.open_lock(tag);
        }
        Gcp::command(&mut self.site, 0, (tag, LockCommand::Enter(slot, access)));
        self.follow(fabric);
        self.locks.get(tag).is_some()
    }

    /// It leaves one.
    pub fn leave_lock(&mut self, tag: Tag, access: Access, fabric: &mut Fabric) {
        Gcp::command(&mut self.site, 0, (tag, LockCommand::Leave(access)));
        self.follow(fabric);
    }
}
