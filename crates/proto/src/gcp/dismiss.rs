//! A node gets rid of what it keeps of a lock.
//!
//! What a node has given away it keeps, since it may have to give it again, or be the one whose data is the newest when others die.
//! It need not any more once the lock's home has it: with the home the lock is gone. So a node that needs room asks the home to take
//! the lock (`Yield`), and the home says what it has (`YieldAck`), also unasked.
//!
//! | the node has | it is rid of that | since |
//! |---|---|---|
//! | the lock to write, or a copy that it may be asked for | when the home has the lock to write, and all data | what comes later comes from there |
//! | a copy to read that others were given, too | when the home has a copy to read | the keeper gives it to others, and one copy more lives than would without it |
//! | a copy of before the last writer that it made way for | at once | the keeper has what that writer was given |
//!
//! A home that has the lock to write names the version of its right. If that is not older than anything that the node has had or
//! given up, the node has had no part in the lock since. A home that has a copy to read names the version of the node's right,
//! or of its own if that is later: no writer was inside between them, for both would have had to make way. What a node is rid of it
//! never had, to the directory: it makes way for a writer when it is asked to, without having anything.

use super::lock::{At, Body, Event, Lock, Right, Send, Steps};
use super::settle::Age;
use super::version;
use crate::wire::{Dest, GlobalStatus, Header, Kind};

/// The age of data that is not there.
const NOTHING: Age = 0;

/// What a node keeps of a lock whose home is another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Keeping {
    /// The lock is held, wanted or moving.
    Used,
    /// Nothing.
    Nothing,
    /// What nobody needs.
    Surplus,
    /// A copy to read, of which another node has one, too.
    Copy,
    /// Maybe the only copy.
    Sole,
}

impl Lock {
    /// The version with which this node, the lock's home, has the lock and its data for itself.
    pub fn whole(&self) -> Option<u64> {
        (self.right == Right::Modified).then_some(self.since)
    }

    /// What this node keeps, which is not the lock's home.
    pub fn keeping(&self) -> Keeping {
        match (self.right, self.keeper) {
            _ if !self.rests() => Keeping::Used,
            (Right::None, _) if self.age == NOTHING => Keeping::Nothing,
            (Right::None, false) => Keeping::Surplus,
            (Right::Shared, false) => Keeping::Copy,
            _ => Keeping::Sole,
        }
    }

    /// What it gave up last: all that a node has to remember of a lock that it forgets, until the epoch ends.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Nobody here is inside or wants to be, nobody waits for it, and nothing is under way.
    fn rests(&self) -> bool {
        let wants = self.want.is_some() || self.asked.is_some() || self.promise.is_some();
        let gives = self.owed.is_some() || self.releasing.is_some() || self.contended();
        self.readers == 0 && !self.writer && !wants && !gives
    }

    /// This node needs room. Says what it has kept so far.
    pub(super) fn get_rid(&mut self, at: &At, steps: &mut Steps) -> Keeping {
        let keeping = self.keeping();
        let status = match keeping {
            Keeping::Used | Keeping::Nothing => return keeping,
            Keeping::Surplus => {
                self.forget(self.floor, steps);
                return keeping;
            }
            Keeping::Copy => GlobalStatus::Shared,
            Keeping::Sole => GlobalStatus::Modified,
        };
        let mut header = at.header(Kind::Yield, at.node, self.since);
        header.status = status;
        steps.push(Event::Send(Send {
            to: Dest::Agent(at.tag.home()),
            header,
            body: Body::None,
        }));
        keeping
    }

    /// What its home answers when it is asked to take the lock, if it has what is needed already: what it has, and as of which
    /// version.
    pub fn taken_home(&self, asked: &Header) -> Option<(GlobalStatus, u64)> {
        match (self.right, asked.status) {
            (Right::Modified, _) => Some((GlobalStatus::Modified, self.since)),
            (Right::Shared, GlobalStatus::Shared) => {
                let known = version(asked).max(self.since);
                Some((GlobalStatus::Shared, known))
            }
            _ => None,
        }
    }

    /// The home has it.
    pub(super) fn is_home(&mut self, header: &Header, steps: &mut Steps) {
        let version = version(header);
        let late = version < self.floor || version < self.since;
        match (self.keeping(), header.status) {
            _ if late => {}
            (Keeping::Copy, GlobalStatus::Shared) => self.forget(self.since, steps),
            // With the home to write nobody else has a right.
            (Keeping::Surplus | Keeping::Sole, status)
                if status != GlobalStatus::Shared && self.right == Right::None =>
            {
                self.forget(version, steps);
            }
            _ => {}
        }
    }

    /// Nothing is kept but what was given up last.
    fn forget(&mut self, floor: u64, steps: &mut Steps) {
        *self = Lock {
            floor,
            ..Lock::new(self.len)
        };
        steps.push(Event::Drop);
    }
}
