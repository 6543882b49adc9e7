//! A node gets rid of what it keeps of a lock.
//!
//! What a node has given away it keeps, since it may have to give it again, or be the one whose
//! data is the newest when others die. It need not any more once the lock's home has it: with the
//! home the lock is gone. So a node that needs room asks the home to take the lock (`Yield`), and
//! the home says what it has (`YieldAck`), also unasked.
//!
//! | the node has | it is rid of that | since |
//! |---|---|---|
//! | the lock to write, or a copy that it may be asked for | when the home has the lock to write, and all data | what comes later comes from there |
//! | a copy to read that others were given, too | when the home has a copy to read | the keeper gives it to others, and one copy more lives than would without it |
//! | a copy of before the last writer that it made way for | at once | the keeper has what that writer was given |
//!
//! A home that has the lock to write names the version of its right. If that is not older than
//! anything that the node has had or given up, the node has had no part in the lock since. A home
//! that has a copy to read names the version of the node's right, or of its own if that is later:
//! no writer was inside between them, for both would have had to make way. What a node is rid of it
//! never had, to the directory: it makes way for a writer when it is asked to,
//! without having anything.

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
    /// Unneeded state.
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

    /// What it gave up last: all that a node has to remember of a lock that it forgets,
    /// until the epoch ends.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// No thread here holds or wants the lock, no node waits for it, and nothing is under way.
    pub(super) fn rests(&self) -> bool {
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
            to: Dest::Home(at.tag.home()),
            header,
            body: Body::None,
        }));
        keeping
    }

    /// What its home answers when it is asked to take the lock, if it has what is needed already:
    /// what it has, and as of which version.
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
            // While the home has it to write no other node has a right.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcp::{Access, Blade, BladeConfig, Regions, first, with_version};
    use crate::wire::{Copyset, Flags, NodeId, RequesterId, Seq, Tag};

    const TAG: Tag = Tag(0x40);

    fn header(kind: Kind, status: GlobalStatus, ahead: u64) -> Header {
        let requester = RequesterId { node: 1, slot: 0 };
        let header = Header::request(kind, 1, TAG, requester, Seq(0));
        with_version(Header { status, ..header }, first(1) + ahead)
    }

    fn blade(node: NodeId) -> Blade {
        let config = BladeConfig {
            node,
            epoch: 1,
            switch: false,
            cohort: 0,
            locks: 1,
        };
        let mut blade = Blade::new(config);
        match node {
            0 => blade.create(TAG, Regions::default()),
            _ => blade.open(TAG, Regions::default()),
        };
        blade
    }

    /// Node 1, which has been given a copy to read as of `ahead`, and whose reader has left.
    fn reader(ahead: u64) -> Blade {
        let (mut blade, mut steps) = (blade(1), Steps::new());
        blade.enter(TAG, Access::Read, &mut steps);
        let mut grant = header(Kind::Grant, GlobalStatus::Shared, ahead);
        grant.copyset = Copyset::of(1);
        blade.handle(&grant, 0, &[], &mut steps);
        let give = header(Kind::Give, GlobalStatus::Shared, ahead);
        blade.handle(&give, 0, &[], &mut steps);
        assert!(steps.iter().any(|step| matches!(step, Event::Enter(_))));
        assert_eq!(blade.lock(TAG).unwrap().keeping(), Keeping::Used);
        blade.leave(TAG, Access::Read, None, &mut steps);
        blade
    }

    fn told(blade: &mut Blade, status: GlobalStatus, ahead: u64) -> bool {
        let mut steps = Steps::new();
        blade.handle(&header(Kind::YieldAck, status, ahead), 0, &[], &mut steps);
        steps.contains(&Event::Drop)
    }

    #[test]
    fn a_copy_goes_when_the_home_has_one_as_new() {
        let mut blade = reader(5);
        let mut steps = Steps::new();
        assert_eq!(blade.get_rid(TAG, &mut steps), Keeping::Copy);
        let [Event::Send(send)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(send.to, Dest::Home(send.header.tag.home()));
        assert_eq!(
            send.header,
            Header {
                sender: 1,
                ..header(Kind::Yield, GlobalStatus::Shared, 5)
            }
        );
        assert_eq!(blade.lock(TAG).unwrap().right(), Right::Shared, "not yet");
        assert!(
            !told(&mut blade, GlobalStatus::Shared, 4),
            "of before the last writer"
        );
        assert!(told(&mut blade, GlobalStatus::Shared, 5));
        let lock = blade.lock(TAG).unwrap();
        assert_eq!(
            (lock.keeping(), lock.floor()),
            (Keeping::Nothing, first(1) + 5)
        );
        // To the directory it still has a copy: it makes way for a writer without having anything.
        let mut steps = Steps::new();
        let mut way = header(Kind::Invalidate, GlobalStatus::Modified, 6);
        (way.requester.node, way.copyset) = (2, Copyset::of(1));
        blade.handle(&way, 0, &[], &mut steps);
        assert!(matches!(&steps[..], [Event::Send(send)] if send.header.kind == Kind::InvAck));
    }

    #[test]
    fn a_copy_that_is_asked_for_or_used_stays() {
        // The directory has named it as the one who gives the data.
        let (mut keeper, mut steps) = (blade(1), Steps::new());
        keeper.enter(TAG, Access::Read, &mut steps);
        let mut grant = header(Kind::Grant, GlobalStatus::Shared, 5);
        (grant.copyset, grant.flags) = (Copyset::of(1), Flags::PROVIDER);
        keeper.handle(&grant, 0, &[], &mut steps);
        keeper.leave(TAG, Access::Read, None, &mut steps);
        steps.clear();
        assert_eq!(keeper.get_rid(TAG, &mut steps), Keeping::Sole);
        assert!(!told(&mut keeper, GlobalStatus::Shared, 9));
        // A thread has come back.
        let mut used = reader(5);
        assert!(used.enter(TAG, Access::Read, &mut steps).0.is_some());
        assert!(!told(&mut used, GlobalStatus::Shared, 9));
    }

    #[test]
    fn a_home_answers_when_it_has_what_is_asked_for() {
        let asked = |status| header(Kind::Yield, status, 7);
        let (shared, modified) = (GlobalStatus::Shared, GlobalStatus::Modified);
        let home = blade(0);
        let lock = home.lock(TAG).unwrap();
        assert_eq!(lock.taken_home(&asked(shared)), Some((modified, first(1))));
        let reads = reader(5);
        let lock = reads.lock(TAG).unwrap();
        assert_eq!(
            lock.taken_home(&asked(shared)),
            Some((shared, first(1) + 7))
        );
        assert_eq!(lock.taken_home(&asked(modified)), None);
        let nothing = blade(1);
        assert_eq!(nothing.lock(TAG).unwrap().taken_home(&asked(shared)), None);
    }
}
