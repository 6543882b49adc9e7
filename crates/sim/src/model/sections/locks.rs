//! What critical sections do with the locks of their node, and what they can tell of them before
//! they pay for anything.

use super::super::fabric::Fabric;
use super::super::node::ModelNode;
use rackmem_proto::engine::{Gcp, LockCommand, LockHost, Protocol};
use rackmem_proto::gcp::{Access, Lock, Right};
use rackmem_proto::wire::Tag;

impl ModelNode {
    /// A thread wants to enter a lock, or leaves it.
    pub fn command(&mut self, lock: Tag, command: LockCommand<u16>, stays: bool) {
        if matches!(command, LockCommand::Leave(_)) && !stays {
            self.worn.insert(lock);
        }
        Gcp::command(&mut self.site, 0, (lock, command));
        self.forget_gone(lock);
    }

    /// A lock that is gone is as good as new when it comes again.
    pub fn forget_gone(&mut self, lock: Tag) {
        if self.is_worn(lock) && self.lock(lock).is_none_or(|l| l.right() == Right::None) {
            self.worn.remove(&lock);
        }
    }

    /// The home takes a lock back as soon as nobody is inside.
    pub fn take_back(&mut self, lock: Tag, fabric: &mut Fabric) {
        self.site.lock(lock, |lock, fx| {
            let here = lock.lock().is_some_and(|l| l.right() == Right::Modified);
            if !here && lock.waiting() == 0 {
                lock.bring(Access::Write, fx);
            }
        });
        self.follow(Some(fabric.now()), fabric);
    }

    /// Whether a thread may enter at once, and tell nobody: the lock is here, free,
    /// and nobody else wants it.
    pub fn at_hand(&self, lock: Tag, access: Access) -> bool {
        let worn = self.is_worn(lock);
        let stays = self.lock(lock).is_some_and(|l| l.releasing().is_none());
        let cell = self.site.locks.cells.get(&lock).filter(|_| stays && !worn);
        cell.is_some_and(|cell| cell.lock.at_hand(access))
    }

    /// Whether a lock that does not stay has been used here, and is still here.
    pub fn is_worn(&self, lock: Tag) -> bool {
        self.worn.contains(&lock)
    }

    /// Whether leaving concerns another node.
    pub fn is_waited_for(&self, lock: Tag) -> bool {
        self.lock(lock).is_some_and(Lock::contended)
    }

    fn lock(&self, lock: Tag) -> Option<&Lock> {
        self.site.locks.cells.get(&lock)?.lock.lock()
    }
}
