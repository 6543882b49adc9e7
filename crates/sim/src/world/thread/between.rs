//! When a thread of a world may leave a lock.

use super::Thread;

impl Thread {
    /// Whether it is between two operations, or will begin none any more.
    pub fn between(&self) -> bool {
        self.dead || self.operation.is_none()
    }
}
