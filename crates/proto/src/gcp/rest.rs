//! A lock at rest at its home, in one number.
//!
//! A home may have a million locks of which no node keeps anything. While such a lock has nothing
//! under way, and its home has it to write, all that the rest of the epoch needs to know of it is
//! two things: who serves it, and a number that is not below any that its directory has given. What
//! the home had beside that (who had the lock before, what it heard early) says nothing any more:
//! no other node has a right, a promise, or a release that counts.
//!
//! | later comes | and meets | because |
//! |---|---|---|
//! | a release of an earlier tenure | `Over` | its number is below the one with which the home holds the lock |
//! | a grant, or data, of an earlier one | nothing | its number is not above the home's floor |
//! | a request that was numbered, and of which the home never heard | its node asks again | as if the packet had been lost |
//!
//! When the epoch ends even that is not needed: a lock that its home has whole goes on like one
//! that has never been used.

use super::directory::LockPlace;
use super::entry::{Entry, Mode, State};
use super::lock::{Lock, Right};
use super::settle::age;
use super::{Blade, LockDirectory, Regions};
use crate::wire::{NodeId, Reason, Tag};

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rest {
    /// The number with which the home goes on.
    pub number: u64,
    /// Who serves the lock in this epoch.
    pub place: LockPlace,
}

/// What a node remembers, until the epoch ends, of a lock that it has forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Known {
    /// Another node's: what this one gave up last ([`Lock::floor`]).
    Abroad(u64),
    /// This node's.
    Home(Rest),
}

impl Rest {
    /// What to remember of a lock of this home. `None`: it has to stay as it is.
    pub fn of(blade: &Blade, directory: &LockDirectory, tag: Tag) -> Option<Rest> {
        let (entry, place) = directory.entry(tag)?;
        let lock = blade.lock(tag)?;
        let epoch = directory.epoch();
        let settled = blade.epoch() == epoch;
        let number = match place {
            LockPlace::Here | LockPlace::Undecided => {
                let State {
                    version,
                    holder,
                    mode,
                    reason,
                    ..
                } = entry.state;
                let home = tag.home().is_of(NodeId::from(holder)) && mode == Mode::Modified;
                (home && reason == Reason::None).then_some(version)?
            }
            // What the switch has given since the home does not know: a release would be refused,
            // and go on by its number.
            LockPlace::Switch => (lock.seen == lock.since).then_some(lock.since)?,
            LockPlace::Placing => return None,
        };
        let whole = lock.whole()? <= number && lock.seen <= number;
        let told = lock.reason == Reason::None && super::is_of(number, epoch);
        (settled && whole && told && lock.rests()).then_some(Rest { number, place })
    }

    pub(super) fn entry(self, home: NodeId, epoch: u32) -> Entry {
        let mut entry = Entry::new(home, epoch);
        (entry.state.version, entry.state.since) = (self.number, self.number);
        entry
    }

    pub(super) fn lock(self, len: u32) -> Lock {
        let Rest { number, .. } = self;
        Lock {
            right: Right::Modified,
            keeper: true,
            since: number,
            age: age(number, Right::Modified),
            seen: number,
            floor: number.saturating_sub(1),
            ..Lock::new(len)
        }
    }
}

impl Blade {
    /// Makes a lock of this home again of which only [`Rest`] was kept, in the same epoch.
    pub fn wake(&mut self, tag: Tag, regions: Regions, rest: Rest) -> bool {
        self.add(tag, || rest.lock(regions.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcp::{Access, BladeConfig, Steps, first, version, with_version};
    use crate::wire::{Dest, GlobalStatus, Header, Kind, RequesterId, Seq};

    const TAG: Tag = Tag(0x40);

    fn header(kind: Kind, node: NodeId) -> Header {
        let requester = RequesterId { node, slot: 0 };
        let header = Header::request(kind, 1, TAG, requester, Seq(0));
        Header {
            status: GlobalStatus::Modified,
            ..header
        }
    }

    fn home() -> (Blade, LockDirectory) {
        let config = BladeConfig {
            node: 0,
            epoch: 1,
            switch: false,
            cohort: 1,
            locks: 1,
        };
        (Blade::new(config), LockDirectory::new(0, 1))
    }

    #[test]
    fn a_lock_that_rested_goes_on_above_its_numbers() {
        let (mut blade, mut directory) = home();
        blade.create(TAG, Regions::default());
        directory.create(TAG);
        // A request that the home's own lock never hears of: the packet is lost.
        directory.handle(&header(Kind::Acquire, 1));
        let rest = Rest::of(&blade, &directory, TAG).unwrap();
        assert_eq!((rest.number, rest.place), (first(1) + 1, LockPlace::Here));
        let (mut blade, mut directory) = home();
        assert!(blade.wake(TAG, Regions::default(), rest) && directory.wake(TAG, rest));
        assert_eq!(Rest::of(&blade, &directory, TAG), Some(rest));
        // An earlier release is over, and a waiting node asks again and is served.
        let late = with_version(header(Kind::Release, 1), first(1));
        let over = directory.handle(&late);
        assert_eq!(over.iter().next().unwrap().header.kind, Kind::ReleaseAck);
        let asked = directory.handle(&header(Kind::Acquire, 1));
        let wait = asked.iter().next().unwrap();
        assert_eq!(
            (wait.to, version(&wait.header)),
            (Dest::Agent(0), first(1) + 2)
        );
        let mut steps = Steps::new();
        blade.handle(&wait.header, 0, &[], &mut steps);
        assert_eq!(blade.lock(TAG).unwrap().releasing(), Some(first(1) + 2));
    }

    #[test]
    fn a_lock_that_is_used_or_away_does_not_rest() {
        let (mut blade, mut directory) = home();
        blade.create(TAG, Regions::default());
        directory.create(TAG);
        let mut steps = Steps::new();
        blade.enter(TAG, Access::Read, &mut steps);
        assert_eq!(
            Rest::of(&blade, &directory, TAG),
            None,
            "a thread is inside"
        );
        blade.leave(TAG, Access::Read, None, &mut steps);
        assert!(Rest::of(&blade, &directory, TAG).is_some());
        let mut outputs = crate::Outputs::default();
        directory.place(TAG, &mut outputs);
        assert_eq!(Rest::of(&blade, &directory, TAG), None, "nobody serves it");
    }
}
