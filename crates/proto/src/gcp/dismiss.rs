//! A lock is home, and another node may forget what it keeps of it.
//!
//! What a node has given away it keeps, since it may have to give it again, or be the one whose data is the newest when others die.
//! It need not any more once the lock's home has the lock to write, and the data whole: what comes later comes from there, and with
//! the home the lock is gone. The home says so with the version of its right (`YieldAck`). If that is not older than anything
//! that the node has had or given up, the node has had no part in the lock since.

use super::lock::{Event, Lock, Right, Steps};
use super::settle::Age;

/// The age of data that is not there.
const NOTHING: Age = 0;

impl Lock {
    /// The version with which this node, the lock's home, has the lock and its data for itself.
    pub fn whole(&self) -> Option<u64> {
        (self.right == Right::Modified).then_some(self.since)
    }

    /// Whether it has been told that its data is not needed, and nothing has happened since.
    pub fn dismissed(&self) -> bool {
        self.age == NOTHING && self.floor > 0 && self.rests()
    }

    /// What it gave up last: all that a node has to remember of a lock that it forgets, until the epoch ends.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// It has no right, nobody here wants one, and nothing is under way.
    fn rests(&self) -> bool {
        let wants = self.want.is_some() || self.asked.is_some() || self.promise.is_some();
        let gives = self.owed.is_some() || self.releasing.is_some();
        self.right == Right::None && self.readers == 0 && !self.writer && !wants && !gives
    }

    /// The lock is home as of this version.
    pub(super) fn dismiss(&mut self, version: u64, steps: &mut Steps) {
        if version < self.floor || version < self.since || !self.rests() || self.age == NOTHING {
            return;
        }
        *self = Lock {
            floor: version,
            ..Lock::new(self.len)
        };
        steps.push(Event::Drop);
    }
}
